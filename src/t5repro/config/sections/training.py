"""Settings that pre-training and fine-tuning share (paper section 3.1.2)."""

from typing import Literal

from pydantic import Field, model_validator

from t5repro.config.field import Section


class LearningRate(Section):
    """Learning rate as a function of the step."""

    schedule: Literal["inverse_square_root", "constant", "cosine"] = "inverse_square_root"
    """Schedule: `factor` / sqrt(max(step, `warmup_steps`)), `factor` at every step, or a cosine
    from `factor` after the warm-up to `final_factor` at the end of the stage.
    """
    factor: float = Field(1.0, gt=0)
    """Factor of the schedule."""
    warmup_steps: int = Field(10_000, ge=1)
    """Steps with a constant rate at the start of `inverse_square_root`; of `cosine`, steps in which
    the rate rises from half of `factor` to all of it.
    """
    final_factor: float = Field(0.0, ge=0)
    """Learning rate at the end of `cosine`."""

    @model_validator(mode="after")
    def _cosine_falls(self) -> "LearningRate":
        if self.schedule == "cosine" and self.final_factor > self.factor:
            raise ValueError(
                f"final_factor {self.final_factor} is more than factor {self.factor}; the rate of "
                "a cosine falls"
            )
        return self


class TrainingSettings(Section):
    """Settings that pre-training and fine-tuning share (paper section 3.1.2)."""

    steps: int = Field(524_288, ge=0)
    """Optimizer steps. If 0, the stage writes its initial weights."""
    batch_size: int = Field(128, ge=1)
    """Batch size; packed rows."""
    inputs_length: int = Field(512, ge=4)
    """Length of the inputs of a row; tokens."""
    targets_length: int = Field(512, ge=4)
    """Length of the targets of a row; tokens."""
    dropout_rate: float = Field(0.1, ge=0, lt=1)
    """Dropout rate of every layer."""
    z_loss: float = Field(1e-4, ge=0)
    """Weight of the term log(Z)^2 in the training loss."""
    loss_normaliser: Literal["padded_size", "target_tokens"] = "padded_size"
    """Divisor of the summed loss of a batch: the number of target positions with padding, as in the
    released code, or without padding.
    """
    micro_batches: int = Field(1, ge=1)
    """Number of equal parts into which a batch is split to save memory. Their gradients are
    accumulated, so the update is the same up to rounding.
    """
    optimizer: Literal["adafactor", "adamw"] = "adafactor"
    """Optimizer: Adafactor as in the paper, or AdamW with steps scaled by the root mean square of a
    weight, as in nanoT5.
    """
    weight_decay: float = Field(0.0, ge=0)
    """Weight decay of `adamw`: share of a matrix that a step subtracts, times the learning rate."""
    learning_rate: LearningRate = LearningRate()
    """Learning rate."""
    checkpoint_every_steps: int = Field(5000, ge=1)
    """Interval of checkpoints; steps."""
    repeat: int = Field(0, ge=0)
    """Number of the repetition. Each number gives other initial weights, noise and order of inputs,
    with the same vocabulary and data.
    """
    log_every_steps: int = Field(100, ge=1)
    """Interval of the rows of the history; steps."""
    keep_checkpoints: Literal["last", "all"] = "last"
    """Weights to keep: those of the last step, or those of every checkpoint, too, in
    `step-<n>/weights.safetensors`.
    """

    @property
    def packed_inputs_length(self) -> int:
        """Tokens of inputs in a packed row; 0 if the objective has no inputs."""
        return self.inputs_length

    @property
    def kept_steps(self) -> tuple[int, ...]:
        """Steps whose weights are kept, in addition to the final weights."""
        if self.keep_checkpoints == "last":
            return ()
        every = range(self.checkpoint_every_steps, self.steps, self.checkpoint_every_steps)
        return (*every, self.steps) if self.steps else ()

    @model_validator(mode="after")
    def _rows_divide(self) -> "TrainingSettings":
        if self.batch_size % self.micro_batches:
            raise ValueError(
                f"batch_size {self.batch_size} is not a multiple of micro_batches "
                f"{self.micro_batches}; the parts of a batch must have equal sizes"
            )
        return self

    @model_validator(mode="after")
    def _optimizer_fits(self) -> "TrainingSettings":
        if self.weight_decay and self.optimizer != "adamw":
            raise ValueError(
                f"weight_decay is {self.weight_decay}, which optimizer {self.optimizer} does not "
                "have; set it to 0, or optimizer to adamw"
            )
        warmup_steps = self.learning_rate.warmup_steps
        if self.learning_rate.schedule == "cosine" and self.steps and warmup_steps >= self.steps:
            raise ValueError(
                f"learning_rate.warmup_steps {warmup_steps} of the schedule cosine must be less "
                f"than steps {self.steps}"
            )
        return self
