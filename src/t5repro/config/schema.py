"""All settings of a run, with the paper's baseline as defaults.

The sections are in `config/sections`, one module each. This module composes them and checks
settings that depend on each other. `configs/base.yaml`, `configs/schema.json` and
`docs/settings.md` are generated from them (`make generate`).
"""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, StringConstraints, model_validator

from t5repro.config.family_checks import check_family
from t5repro.config.field import Name, Section, repeated
from t5repro.config.sections.c4 import C4Settings
from t5repro.config.sections.corpus import CorpusSettings
from t5repro.config.sections.data import DataSettings
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.evaluate import EvaluateSettings
from t5repro.config.sections.finetune import GroupedFinetuneSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.tasks import TasksSettings
from t5repro.config.sections.tokens import TokensSettings
from t5repro.config.sections.vocab import VocabSettings

MAX_SEED = 2**31 - 1


class Logger(Section):
    """A logger of another project, as a Keras callback."""

    callback: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$")]
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
    loggers: list[Logger] = []
    """Keras callbacks that receive the losses and speeds of every training. A change reruns
    nothing.
    """
    samples: Samples = Samples()
    """Predictions for a few validation examples while a model is fine-tuned."""


class Experiment(Section):
    """One experiment of the run: the settings that it changes."""

    name: Name
    """Name of the experiment."""
    row: str = ""
    """Row of the paper's tables that the experiment reproduces. If empty, none."""
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


class RunVocab(VocabSettings):
    """The vocabulary, its own or that of another experiment. Stages receive `VocabSettings`."""

    from_experiment: str = ""
    """Earlier experiment whose vocabulary an experiment uses, with all other settings of `vocab`,
    such as that of the baseline for another corpus. If empty, it has its own.
    """


class Settings(Section):
    """All settings of a run."""

    run: RunSettings = RunSettings()
    """The run as a whole."""
    seed: int = Field(0, ge=0, le=MAX_SEED)
    """Seed of every random stream except the vocabulary's sample."""
    system: str = ""
    """Recipe of a system before T5: `bert`, `roberta`, `albert`, `spanbert` or `gpt`. Sets the
    objective, optimizers, rates and losses of `pretrain` and `finetune`, and a `model.published` if
    the run file has none (`docs/systems.md`). If empty, no recipe is taken.
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
    devices: DevicesSettings = DevicesSettings()
    """Devices."""
    experiments: list[Experiment] = [Experiment(name="baseline")]
    """Experiments of the run, in the order of the report."""

    @property
    def reads_corpus(self) -> bool:
        """Whether a stage reads the corpus.

        None does if weights and vocabulary are given, by files or by another experiment, and
        fine-tuning draws tasks alone: then no stage of the corpus runs.
        """
        return (
            self.pretrain.reads_corpus
            or not (self.vocab.model_file or self.vocab.from_experiment)
            or self.finetune.corpus_examples > 0
        )

    @model_validator(mode="after")
    def _sections_fit_together(self) -> "Settings":
        _check_lists(self)
        _check_corpus(self)
        _check_own_text(self)
        _check_training(self)
        _check_evaluation(self)
        return self


class ReportStage(Section):
    """Settings of `report`, which shows all settings."""

    settings: Settings


def _check_lists(settings: Settings) -> None:
    """Raise ValueError if a required list is empty or a list repeats a name."""
    experiments = [experiment.name for experiment in settings.experiments]
    required: tuple[tuple[str, Sequence[str]], ...] = (
        ("c4.languages", settings.c4.languages),
        ("tokens.languages", settings.tokens.languages),
        ("vocab.language_parts", list(settings.vocab.language_parts)),
        ("tasks.names", settings.tasks.names),
        ("experiments", experiments),
    )
    for key, names in required:
        # Own text alone can be pre-trained on; a run on the crawl is a reproduction with tasks.
        if not names and not (key == "tasks.names" and settings.corpus.files):
            raise ValueError(f"{key} is empty; name at least one")
    for key, names in (
        ("experiments", experiments),
        ("tasks.names", settings.tasks.names),
        ("evaluate.ensemble", settings.evaluate.ensemble),
    ):
        if twice := repeated(names):
            raise ValueError(f"{key} contains {twice} more than once; names must differ")


def _check_corpus(settings: Settings) -> None:
    """Raise ValueError if a language is not built, or a limit drops pages that the rules allow."""
    languages = set(settings.c4.languages)
    # Another experiment's vocabulary has the languages of its corpus.
    of_vocabulary = [] if settings.vocab.from_experiment else settings.vocab.language_parts
    for key, names in (
        ("tokens.languages", settings.tokens.languages),
        ("vocab.language_parts", of_vocabulary),
    ):
        if missing := sorted(set(names) - languages):
            raise ValueError(
                f"{key} names {missing}, which c4.languages {sorted(languages)} does not build"
            )
    if settings.c4.limits.record_chars < settings.c4.clean.max_page_chars:
        raise ValueError(
            f"c4.limits.record_chars {settings.c4.limits.record_chars} is less than "
            f"c4.clean.max_page_chars {settings.c4.clean.max_page_chars} and would drop pages that "
            "the rules allow; increase it"
        )


def _check_own_text(settings: Settings) -> None:
    """Raise ValueError if own text is to be read by what reads the crawl alone."""
    if not settings.corpus.files:
        return
    if settings.c4.engine != "local":
        raise ValueError(
            f"c4.engine is {settings.c4.engine!r}, but own text (corpus.files) is read on this "
            "machine; use local"
        )
    if settings.c4.punkt_training:
        raise ValueError(
            "c4.punkt_training is true, but Punkt is trained on the crawl, which corpus.files "
            "replaces; remove it, or name c4.punkt_parameters"
        )
    if settings.corpus.language and settings.corpus.language not in settings.c4.languages:
        raise ValueError(
            f"corpus.language is {settings.corpus.language!r}, which c4.languages "
            f"{settings.c4.languages} does not build; add it there"
        )


def _check_training(settings: Settings) -> None:
    """Raise ValueError if the settings of a training do not fit each other."""
    steps_per_execution = settings.devices.steps_per_execution
    for name, training in (("pretrain", settings.pretrain), ("finetune", settings.finetune)):
        if training.kept_steps and training.checkpoint_every_steps % steps_per_execution:
            raise ValueError(
                f"{name}.checkpoint_every_steps {training.checkpoint_every_steps} is not a "
                f"multiple of devices.steps_per_execution {steps_per_execution}; "
                f"{name}.keep_checkpoints 'all' requires one"
            )
    check_family(settings)
    finetune, pretrain = settings.finetune, settings.pretrain
    if finetune.optimizer_state == "continue" and finetune.optimizer != pretrain.optimizer:
        raise ValueError(
            f"finetune.optimizer is {finetune.optimizer} and pretrain.optimizer "
            f"{pretrain.optimizer}, so the state of one is not that of the other; set "
            "finetune.optimizer_state to 'fresh', or both optimizers alike"
        )
    mode_tokens = {denoiser.mode_token for denoiser in settings.pretrain.denoisers} - {""}
    if mode_tokens and settings.vocab.extra_ids < 4:
        raise ValueError(
            f"vocab.extra_ids is {settings.vocab.extra_ids}, but the mode tokens of "
            "pretrain.denoisers are three sentinels and spans need at least one; raise it to 4"
        )
    if settings.finetune.layer_decay != 1 and settings.model.block_groups:
        raise ValueError(
            f"finetune.layer_decay is {settings.finetune.layer_decay}, but blocks that share "
            "weights (model.block_groups) have no layer of their own; set it to 1"
        )
    if unknown := sorted(set(settings.finetune.mixture_weights) - set(settings.tasks.names)):
        raise ValueError(
            f"finetune.mixture_weights names {unknown}, which are not in tasks.names; "
            f"allowed: {sorted(settings.tasks.names)}"
        )


def _check_evaluation(settings: Settings) -> None:
    """Raise ValueError if the evaluation needs tasks or checkpoints that do not exist."""
    evaluate = settings.evaluate
    if missing := sorted(set(evaluate.beam_tasks) - set(settings.tasks.names)):
        raise ValueError(f"evaluate.beam_tasks names {missing}, which are not in tasks.names")
    if evaluate.checkpoints == "all" and settings.finetune.keep_checkpoints != "all":
        raise ValueError(
            "evaluate.checkpoints 'all' needs finetune.keep_checkpoints 'all', which is "
            f"{settings.finetune.keep_checkpoints!r}"
        )
    if evaluate.ensemble and (evaluate.checkpoints == "all" or evaluate.beam_tasks):
        raise ValueError(
            f"evaluate.ensemble {evaluate.ensemble} decodes greedily with the final weights of its "
            "members; evaluate.checkpoints must be 'last' and evaluate.beam_tasks empty"
        )
