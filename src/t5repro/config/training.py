"""Settings that pre-training and fine-tuning share, and those of fine-tuning."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from t5repro.config.field import Name, Section, setting

Weight = Annotated[float, Field(gt=0)]


class LearningRate(Section):
    """Learning rate as a function of the step."""

    schedule: Literal["inverse_square_root", "constant"] = setting(
        "inverse_square_root", "1/sqrt(max(step, warmup)) times the factor, or the factor itself"
    )
    factor: float = setting(1.0, "multiplies the schedule", gt=0)
    warmup_steps: int = setting(10_000, "steps during which the rate is flat", ge=1)


class TrainingSettings(Section):
    """What pre-training and fine-tuning share (paper section 3.1.2)."""

    steps: int = setting(524_288, "optimizer steps; 0: the stage only hands on weights", ge=0)
    batch_rows: int = setting(128, "packed rows in a batch", ge=1)
    inputs_length: int = setting(512, "tokens of a row of inputs", ge=4)
    targets_length: int = setting(512, "tokens of a row of targets", ge=4)
    dropout_rate: float = setting(0.1, "dropout in every layer", ge=0, lt=1)
    z_loss: float = setting(1e-4, "weight of log(Z)^2 in the training loss", ge=0)
    loss_normaliser: Literal["padded_size", "target_tokens"] = setting(
        "padded_size",
        "what the summed loss of a batch is divided by: all target positions, padding included, "
        "as the released code does, or the target tokens alone",
    )
    micro_batches: int = setting(
        1,
        "parts that a batch is computed in, one after another, to save memory; the update is the "
        "same; parts",
        ge=1,
    )
    learning_rate: LearningRate = setting(LearningRate(), "learning rate")
    checkpoint_every_steps: int = setting(5000, "steps between checkpoints", ge=1)
    repeat: int = setting(
        0,
        "number of this repetition of the stage: another one has other fresh weights, noise and "
        "order of inputs, from the same vocabulary and data",
        ge=0,
    )
    log_every_steps: int = setting(100, "steps between rows of the history", ge=1)
    keep_checkpoints: Literal["last", "all"] = setting(
        "last",
        "weights that the stage hands on: those of the last step, or also those of every "
        "checkpoint, in `step-<n>/weights.safetensors`, to choose from later",
    )

    @property
    def inputs_room(self) -> int:
        """Tokens of inputs in a row; fewer than `inputs_length` where an objective has none."""
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


class FinetuneSettings(TrainingSettings):
    """Multi-task fine-tuning (paper sections 3.1.2 and 3.5.2)."""

    steps: int = setting(262_144, "optimizer steps", ge=0)
    learning_rate: LearningRate = setting(
        LearningRate(schedule="constant", factor=0.001), "learning rate"
    )
    method: Literal["all", "adapters", "gradual_unfreezing"] = setting(
        "all",
        "what trains: every weight, adapters added to each block and norms, or the top block of "
        "each stack first and one more in each episode",
    )
    adapter_width: int = setting(
        2048, "inner width of the adapters; the paper has 32, 128, 512, 2048; features", ge=1
    )
    adapter_norms: Literal["all", "own"] = setting(
        "all",
        "norms that train beside adapters: all as in the paper's text, or the adapters' own as in "
        "the released code (D-046)",
    )
    unfreezing_episodes: int = setting(
        0, "episodes of gradual unfreezing; 0: as many as a stack has blocks", ge=0
    )
    start_from: Annotated[str, StringConstraints(pattern=r"^([a-z][a-z0-9_]*)?$")] = setting(
        "",
        "experiment whose fine-tuning this one goes on from; it stands before this one; empty: "
        "from pre-training",
    )
    optimizer_state: Literal["continue", "fresh"] = setting(
        "continue",
        "Adafactor's second moments and step: taken over from pre-training, as the released code "
        "does, or begun anew",
    )
    mixture: Literal["proportional", "equal"] = setting(
        "proportional", "how often each task is drawn: by its examples, or all alike"
    )
    mixture_limit: int = setting(
        524_288, "K: examples from which a task counts no more; examples", ge=1
    )
    mixture_temperature: float = setting(1.0, "T: rates are raised to 1/T after the limit", gt=0)
    mixture_examples: Literal["rows", "released"] = setting(
        "rows",
        "what a task's examples are: the rows at hand, or the constants of the released GLUE and "
        "SuperGLUE mixtures where there is one (D-040)",
    )
    corpus_examples: float = setting(
        0,
        "examples that the corpus counts for where it is drawn beside the tasks, "
        "as rows of the objective of `pretrain`; 0: tasks alone",
        ge=0,
    )
    corpus_rate: Literal["limited", "stated"] = setting(
        "limited",
        "`limited`: K and T apply to `corpus_examples` as to a task's; `stated`: it is the rate "
        "itself, as in the released `en_mix` and `all_mix`",
    )
    mixture_weights: dict[Name, Weight] = setting(
        {}, "task -> examples that it counts for, in place of its own number, before K and T"
    )

    @model_validator(mode="after")
    def _episodes_have_steps(self) -> "FinetuneSettings":
        if self.method == "gradual_unfreezing" and self.steps < self.unfreezing_episodes:
            raise ValueError(
                f"unfreezing_episodes {self.unfreezing_episodes} is more than the steps "
                f"{self.steps}; an episode has at least one step"
            )
        return self
