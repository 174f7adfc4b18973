"""Settings of fine-tuning (`finetune.*`) and of the stage `finetune`."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from t5repro.config.field import Name, Section
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.model import AddedLayers, ModelSettings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.tasks import TaskNames
from t5repro.config.sections.training import LearningRate, TrainingSettings
from t5repro.config.sections.vocab import VocabSettings

Weight = Annotated[float, Field(gt=0)]


class FinetuneSettings(TrainingSettings, AddedLayers):
    """Multi-task fine-tuning (paper sections 3.1.2 and 3.5.2)."""

    steps: int = Field(262_144, ge=0)
    """Optimizer steps."""
    learning_rate: LearningRate = LearningRate(schedule="constant", factor=0.001)
    """Learning rate."""
    adapter_norms: Literal["all", "own"] = "all"
    """Norms that train beside adapters: all as in the paper's text, or the adapters' own as in the
    released code (D-046).
    """
    unfreezing_episodes: int = Field(0, ge=0)
    """Episodes of gradual unfreezing; 0: as many as a stack has blocks."""
    start_from: Annotated[str, StringConstraints(pattern=r"^([a-z][a-z0-9_]*)?$")] = ""
    """Experiment whose fine-tuning this one goes on from; it stands before this one; empty: from
    pre-training.
    """
    optimizer_state: Literal["continue", "fresh"] = "continue"
    """Adafactor's second moments and step: taken over from pre-training, as the released code does,
    or begun anew.
    """
    mixture: Literal["proportional", "equal"] = "proportional"
    """How often each task is drawn: by its examples, or all alike."""
    mixture_limit: int = Field(524_288, ge=1)
    """K: examples from which a task counts no more; examples."""
    mixture_temperature: float = Field(1.0, gt=0)
    """T: rates are raised to 1/T after the limit."""
    mixture_examples: Literal["rows", "released"] = "rows"
    """What a task's examples are: the rows at hand, or the constants of the released GLUE and
    SuperGLUE mixtures where there is one (D-040).
    """
    corpus_examples: float = Field(0, ge=0)
    """Examples that the corpus counts for where it is drawn beside the tasks, as rows of the
    objective of `pretrain`; 0: tasks alone.
    """
    corpus_rate: Literal["limited", "stated"] = "limited"
    """`limited`: K and T apply to `corpus_examples` as to a task's; `stated`: it is the rate
    itself, as in the released `en_mix` and `all_mix`.
    """
    mixture_weights: dict[Name, Weight] = {}
    """Task -> examples that it counts for, in place of its own number, before K and T."""

    @model_validator(mode="after")
    def _episodes_have_steps(self) -> "FinetuneSettings":
        if self.method == "gradual_unfreezing" and self.steps < self.unfreezing_episodes:
            raise ValueError(
                f"unfreezing_episodes {self.unfreezing_episodes} is more than the steps "
                f"{self.steps}; an episode has at least one step"
            )
        return self


class FinetuneStage(Section):
    """Settings of `finetune`."""

    seed: int
    vocab: VocabSettings
    model: ModelSettings
    tasks: TaskNames
    pretrain: PretrainSettings = PretrainSettings()
    finetune: FinetuneSettings
    devices: DevicesSettings
