"""Settings that pre-training and fine-tuning share (paper section 3.1.2)."""

from typing import Literal

from pydantic import Field, model_validator

from t5repro.config.field import Section


class LearningRate(Section):
    """Learning rate as a function of the step."""

    schedule: Literal["inverse_square_root", "constant"] = "inverse_square_root"
    """1/sqrt(max(step, warmup)) times the factor, or the factor itself."""
    factor: float = Field(1.0, gt=0)
    """Multiplies the schedule."""
    warmup_steps: int = Field(10_000, ge=1)
    """Steps during which the rate is flat."""


class TrainingSettings(Section):
    """Settings that pre-training and fine-tuning share (paper section 3.1.2)."""

    steps: int = Field(524_288, ge=0)
    """Optimizer steps; 0: the stage only hands on weights."""
    batch_rows: int = Field(128, ge=1)
    """Packed rows in a batch."""
    inputs_length: int = Field(512, ge=4)
    """Tokens of a row of inputs."""
    targets_length: int = Field(512, ge=4)
    """Tokens of a row of targets."""
    dropout_rate: float = Field(0.1, ge=0, lt=1)
    """Dropout in every layer."""
    z_loss: float = Field(1e-4, ge=0)
    """Weight of log(Z)^2 in the training loss."""
    loss_normaliser: Literal["padded_size", "target_tokens"] = "padded_size"
    """What the summed loss of a batch is divided by: all target positions, padding included, as the
    released code does, or the target tokens alone.
    """
    micro_batches: int = Field(1, ge=1)
    """Parts that a batch is computed in, one after another, to save memory; the update is the same;
    parts.
    """
    learning_rate: LearningRate = LearningRate()
    """Learning rate."""
    checkpoint_every_steps: int = Field(5000, ge=1)
    """Steps between checkpoints."""
    repeat: int = Field(0, ge=0)
    """Number of this repetition of the stage: another one has other fresh weights, noise and order
    of inputs, from the same vocabulary and data.
    """
    log_every_steps: int = Field(100, ge=1)
    """Steps between rows of the history."""
    keep_checkpoints: Literal["last", "all"] = "last"
    """Weights that the stage hands on: those of the last step, or also those of every checkpoint,
    in `step-<n>/weights.safetensors`, to choose from later.
    """

    @property
    def packed_inputs_length(self) -> int:
        """Tokens of inputs in a packed row; 0 if the objective has no inputs."""
        return self.inputs_length

    @property
    def kept_steps(self) -> tuple[int, ...]:
        """Steps of this stage whose weights are kept beside the last ones; known before a run."""
        if self.keep_checkpoints == "last":
            return ()
        every = range(self.checkpoint_every_steps, self.steps, self.checkpoint_every_steps)
        return (*every, self.steps) if self.steps else ()

    @model_validator(mode="after")
    def _rows_divide(self) -> "TrainingSettings":
        if self.batch_rows % self.micro_batches:
            raise ValueError(
                f"batch_rows {self.batch_rows} is no multiple of micro_batches "
                f"{self.micro_batches}; the parts of a batch must be of one shape"
            )
        return self
