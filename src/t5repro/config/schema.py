"""All settings of a run, and the checks of settings of several sections.

The defaults are the paper's baseline. The sections are in `config/sections`, one module
each. `configs/base.yaml`, `configs/schema.json` and `docs/settings.md` are generated from them
(`make generate`).
"""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from t5repro.config.family_checks import check_family
from t5repro.config.field import Name, Pattern, Section, check_names, repeated
from t5repro.config.mesh_checks import check_mesh
from t5repro.config.sections.c4 import C4Settings, check_languages
from t5repro.config.sections.contamination import ContaminationSettings
from t5repro.config.sections.corpus import CorpusSettings, check_text_source
from t5repro.config.sections.data import DataSettings
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.evaluate import EvaluateSettings, check_evaluation
from t5repro.config.sections.finetune import GroupedFinetuneSettings, check_finetuning
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainSettings, check_sentinels
from t5repro.config.sections.tasks import TasksSettings
from t5repro.config.sections.tokens import TokensSettings
from t5repro.config.sections.training import check_checkpoints
from t5repro.config.sections.vocab import RunVocab
from t5repro.published.tables import check_row

MAX_SEED = 2**31 - 1
PresetName = Annotated[str, Pattern("^[a-z0-9_]+/[a-z0-9._-]+$", "a preset, such as 'sizes/small'")]


class Logger(Section):
    """A logger of another project, as a Keras callback."""

    callback: Annotated[
        str,
        Pattern(
            r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$", "a class, such as 'dvclive.keras.DVCLiveCallback'"
        ),
    ]
    """Dotted name of the class, such as `dvclive.keras.DVCLiveCallback`."""
    arguments: dict[str, Any] = {}
    """Keyword arguments of the class; `{folder}` in a text is the folder of the training's log."""


class Samples(Section):
    """Predictions for a few validation examples while a model is fine-tuned."""

    every_steps: int = Field(0, ge=0)
    """Interval of the predictions; steps. If 0, none are made. A change between 0 and another value
    reruns `finetune`, which reads the validation examples; its results stay the same.
    """
    examples: int = Field(2, ge=1)
    """Number of examples of each task, from the first. A change reruns nothing."""


class RunSettings(Section):
    """The run as a whole."""

    name: Name = "base"
    """Name of the run and of its folder in `results/`."""
    resume_changed: bool = False
    """Whether an interrupted training resumes from a checkpoint of other settings, inputs or code.
    If false, such a checkpoint is set aside. The manifest records a resumption. A change reruns
    nothing.
    """
    check_memory: bool = True
    """Whether a run on this machine is refused at its start if a training or prediction on the CPU
    needs more memory than there is, by the estimate. A change reruns nothing.
    """
    loggers: list[Logger] = []
    """Keras callbacks that receive the losses and speeds of every training. A change reruns
    nothing.
    """
    samples: Samples = Samples()
    """Predictions for a few validation examples while a model is fine-tuned."""


def _published_row(name: str) -> str:
    if name:
        check_row(name)
    return name


class Experiment(Section):
    """One experiment of the run: the settings that it changes."""

    name: Name
    """Name of the experiment."""
    row: Annotated[str, AfterValidator(_published_row)] = ""
    """Row of a published table that the experiment reproduces, as `t5repro paper rows` prints it:
    of T5's tables by its name, of another system's with the table, such as `RoBERTa 1: static`. If
    empty, none; an experiment with the settings of a system's row is shown in it all the same.
    """
    change: dict[str, Any] = {}
    """Dotted setting -> its value in this experiment."""
    seeds: list[Annotated[int, Field(ge=0, le=MAX_SEED)]] = []
    """Seeds, one training each. The first experiment keeps its name, the others are called
    `NAME_seed_N`. If empty, the run's seed is used.
    """

    @model_validator(mode="after")
    def _seeds_differ(self) -> "Experiment":
        if twice := repeated(self.seeds):
            raise ValueError(f"seeds of experiment {self.name!r} repeat {twice}")
        if self.seeds and "seed" in self.change:
            raise ValueError(
                f"experiment {self.name!r} sets both seeds {self.seeds} and change.seed "
                f"{self.change['seed']}; keep one of them"
            )
        return self


class Settings(Section):
    """All settings of a run."""

    run: RunSettings = RunSettings()
    """The run as a whole."""
    seed: int = Field(0, ge=0, le=MAX_SEED)
    """Seed of every random stream except the vocabulary's sample."""
    use: list[PresetName] = []
    """Presets: named fragments of settings (`docs/presets.md`), such as `systems/bert`, at most one
    of each group. Stated settings replace their values. An experiment or a group of tasks may use
    others in its changes; they replace presets of the same group.
    """
    data: DataSettings = DataSettings()
    """Raw inputs."""
    corpus: CorpusSettings = CorpusSettings()
    """Own text instead of a crawl."""
    c4: C4Settings = C4Settings()
    """Corpus."""
    vocab: RunVocab = RunVocab()
    """Vocabulary."""
    tokens: TokensSettings = TokensSettings()
    """Tokenized corpus."""
    model: ModelSettings = ModelSettings()
    """Model."""
    pretrain: PretrainSettings = PretrainSettings()
    """Pre-training."""
    tasks: TasksSettings = TasksSettings()
    """Downstream tasks."""
    finetune: GroupedFinetuneSettings = GroupedFinetuneSettings()
    """Fine-tuning."""
    evaluate: EvaluateSettings = EvaluateSettings()
    """Prediction and scores."""
    contamination: ContaminationSettings = ContaminationSettings()
    """Evaluated rows in the corpus."""
    devices: DevicesSettings = DevicesSettings()
    """Devices."""
    experiments: list[Experiment] = [Experiment(name="baseline")]
    """Experiments of the run, in the order of the report."""

    @property
    def reads_corpus(self) -> bool:
        """Whether a stage reads the corpus: not if weights and vocabulary come from elsewhere.

        They come from files or from another experiment, and fine-tuning draws tasks only.
        """
        return (
            self.pretrain.reads_corpus
            or not (self.vocab.model_file or self.vocab.from_experiment)
            or self.finetune.corpus_examples > 0
        )

    @model_validator(mode="after")
    def _sections_fit_together(self) -> "Settings":
        check_experiment_names(self.experiments)
        check_languages(self.c4, self.tokens, self.vocab)
        check_text_source(self.corpus, self.c4)
        # Own text can be pre-trained on without tasks; a run on the crawl reproduces the paper.
        check_names("tasks.names", self.tasks.names, required=not self.corpus.files)
        trainings = {"pretrain": self.pretrain, "finetune": self.finetune}
        for name, training in trainings.items():
            check_checkpoints(name, training, self.devices)
        check_mesh(self.devices.mesh, self.model, self.vocab.embedding_rows, trainings)
        check_family(self)
        check_sentinels(self.pretrain, self.vocab)
        check_finetuning(self.finetune, self.pretrain, self.model, self.tasks)
        check_evaluation(self.evaluate, self.finetune, self.tasks)
        return self


class ReportStage(Section):
    """Settings of `report`, which shows all settings."""

    settings: Settings


def check_experiment_names(experiments: Sequence[Experiment]) -> None:
    """Refuse a run without experiments, or with two of one name.

    Raises:
        ValueError: the names are not unique.
    """
    check_names("experiments", [experiment.name for experiment in experiments], required=True)
