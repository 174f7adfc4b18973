"""Settings that pre-training and fine-tuning share (paper section 3.1.2)."""

from typing import Literal

from pydantic import Field, model_validator

from t5repro.config.field import Section
from t5repro.config.sections.devices import DevicesSettings


class LearningRate(Section):
    """Learning rate as a function of the step."""

    schedule: Literal[
        "inverse_square_root", "constant", "cosine", "linear", "bert_linear", "gpt_linear"
    ] = "inverse_square_root"
    """Schedule: `factor` / sqrt(max(step, `warmup_steps`)), `factor` at every step, or after a
    warm-up a fall to `final_factor` at the end of the stage: half a cosine, a line (RoBERTa), the
    line that begins at step 0 (BERT), or a line to 0 with a warm-up of 0.2 % (GPT's fine-tuning).
    """
    factor: float = Field(1.0, gt=0)
    """Factor of the schedule."""
    warmup_steps: int = Field(10_000, ge=0)
    """Steps with a constant rate at the start of `inverse_square_root`, at least 1; of `cosine`,
    `linear` and `bert_linear`, steps in which the rate rises to `factor`.
    """
    warmup_share: float = Field(0.0, ge=0, lt=1)
    """Share of the steps of the stage in which the rate rises, in place of `warmup_steps`; of
    `cosine`, `linear` and `bert_linear`. 0 means that `warmup_steps` are used.
    """
    warmup_start: float = Field(0.5, ge=0, le=1)
    """Share of `factor` at the first step of `cosine`; `linear` and `bert_linear` rise from 0."""
    final_factor: float = Field(0.0, ge=0)
    """Learning rate at the end of `cosine`, `linear` and `bert_linear`."""

    def warmup_of(self, steps: int) -> int:
        """Return the steps of warm-up in a stage of so many steps, at least 1."""
        if not self.warmup_share:
            return self.warmup_steps
        return max(1, round(self.warmup_share * steps))

    @property
    def warms_up(self) -> bool:
        """Whether the rate falls after `warmup_steps`, so that the stage must be longer."""
        return self.schedule in ("cosine", "linear", "bert_linear")

    @model_validator(mode="after")
    def _root_is_finite(self) -> "LearningRate":
        if not self.warmup_steps and self.schedule == "inverse_square_root":
            raise ValueError(
                "warmup_steps is 0, but the schedule inverse_square_root divides by the root of "
                "it; at least 1"
            )
        return self

    @model_validator(mode="after")
    def _rate_falls(self) -> "LearningRate":
        if self.warms_up and self.final_factor > self.factor:
            raise ValueError(
                f"final_factor {self.final_factor} is more than factor {self.factor}; the rate of "
                f"schedule {self.schedule} falls"
            )
        if self.warmup_share and not self.warms_up:
            raise ValueError(
                f"warmup_share {self.warmup_share} is not read by the schedule {self.schedule}; "
                "set it to 0, or the schedule to cosine, linear or bert_linear"
            )
        return self


class TrainingSettings(Section):
    """Settings that pre-training and fine-tuning share (paper section 3.1.2)."""

    steps: int = Field(524_288, ge=0)
    """Optimizer steps. If 0, the stage writes its initial weights."""
    batch_size: int = Field(128, ge=1, le=1_048_576)
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
    optimizer: Literal[
        "adafactor",
        "adamw",
        "adam_bert",
        "adam_fairseq",
        "adam_gpt",
        "lamb",
        "adamax",
        "adamax_mt_dnn",
    ] = "adafactor"
    """Optimizer: Adafactor as in the paper; AdamW with steps scaled by the root mean square of a
    weight, as in nanoT5; Adam as BERT, fairseq (RoBERTa) or GPT have it; LAMB as ALBERT has it; or
    Adamax, with its bias corrected, or as MT-DNN's first release has it (`docs/recent_recipes.md`).
    """
    weight_decay: float = Field(0.0, ge=0)
    """Weight decay, not of `adafactor`: share of a matrix that a step subtracts, times the learning
    rate; of `adam_fairseq`, of every weight.
    """
    adam_beta1: float = Field(0.9, ge=0, lt=1)
    """Decay of the first moment; not of `adafactor`."""
    adam_beta2: float = Field(0.999, ge=0, lt=1)
    """Decay of the second moment; not of `adafactor`."""
    adam_epsilon: float = Field(1e-6, gt=0)
    """Constant added to the root of the second moment, of Adamax to the absolute value of a
    gradient; not of `adafactor`.
    """
    optimizer_state: Literal["continue", "fresh"] = "continue"
    """Moments and step of the optimizer, if the initial weights are those of another training:
    continued from it, as in the released code of T5, or reinitialised.
    """
    max_grad_norm: float = Field(0.0, ge=0)
    """Norm of all gradients together, to which larger ones are scaled down. 0 means never."""
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
    """Weights to keep: of the last step, or of every checkpoint, too, in
    `step-<n>/weights.safetensors`.
    """

    @property
    def packed_inputs_length(self) -> int:
        """Tokens of inputs in a packed row; 0 if the objective has no inputs."""
        return self.inputs_length

    @property
    def row_kinds(self) -> int:
        """Kinds of rows, which take turns in a batch."""
        return 1

    @property
    def kept_steps(self) -> tuple[int, ...]:
        """Steps with weights to keep, in addition to the final weights."""
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
        if self.optimizer == "adafactor":
            for name in ("weight_decay", "adam_beta1", "adam_beta2", "adam_epsilon"):
                default = type(self).model_fields[name].default
                if getattr(self, name) != default:
                    raise ValueError(
                        f"{name} is {getattr(self, name)}, which optimizer adafactor does not "
                        f"have; set it to {default}, or optimizer to adamw"
                    )
        rate = self.learning_rate
        warmup_steps = rate.warmup_of(self.steps)
        if rate.warms_up and self.steps and warmup_steps >= self.steps:
            raise ValueError(
                f"learning_rate.warmup_steps {warmup_steps} of the schedule {rate.schedule} "
                f"must be less than steps {self.steps}"
            )
        return self


def check_checkpoints(name: str, training: TrainingSettings, devices: DevicesSettings) -> None:
    """Raise ValueError if a checkpoint to keep falls between two executions of a device."""
    steps = devices.steps_per_execution
    if training.kept_steps and training.checkpoint_every_steps % steps:
        raise ValueError(
            f"{name}.checkpoint_every_steps {training.checkpoint_every_steps} is not a "
            f"multiple of devices.steps_per_execution {steps}; "
            f"{name}.keep_checkpoints 'all' requires one"
        )
