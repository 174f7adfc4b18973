"""All settings of a run, with the paper's baseline as their values.

The sections are in `config/sections`, one module each; here they are composed and checked against
each other. `configs/base.yaml`, `configs/schema.json` and `docs/settings.md` are generated from
them (`make generate`); a run file states only the settings that it changes.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, model_validator

from t5repro.config.field import Name, Section, repeated
from t5repro.config.sections.c4 import C4Settings
from t5repro.config.sections.data import DataSettings
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.evaluate import EvaluateSettings
from t5repro.config.sections.finetune import FinetuneSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.tasks import TasksSettings
from t5repro.config.sections.tokens import TokensSettings
from t5repro.config.sections.vocab import VocabSettings

MAX_SEED = 2**31 - 1


class RunSettings(Section):
    """The run as a whole."""

    name: Name = "base"
    """Folder of the run below `results/`."""
    resume_changed: bool = False
    """Resume an interrupted training from a checkpoint of other settings, inputs or code instead of
    setting it aside; the manifest records it. Reruns nothing by itself.
    """


class Experiment(Section):
    """One arm of a study: the settings it changes against the run's baseline."""

    name: Name
    """Name of the experiment."""
    row: str = ""
    """Label of the paper's table row that it reproduces."""
    change: dict[str, Any] = {}
    """Dotted setting -> value."""
    seeds: list[Annotated[int, Field(ge=0, le=MAX_SEED)]] = []
    """Train this experiment once for each seed; the first keeps the experiment's name, the others
    are called `NAME_seed_N`; empty: once, with the run's seed.
    """

    @model_validator(mode="after")
    def _seeds_differ(self) -> "Experiment":
        if twice := repeated(self.seeds):
            raise ValueError(f"seeds of experiment {self.name!r} repeat {twice}")
        if self.seeds and "seed" in self.change:
            raise ValueError(
                f"experiment {self.name!r} states both seeds {self.seeds} and change.seed "
                f"{self.change['seed']}; keep one of them"
            )
        return self


class Settings(Section):
    """All settings of a run."""

    run: RunSettings = RunSettings()
    """The run as a whole."""
    seed: int = Field(0, ge=0, le=MAX_SEED)
    """Seed of every random stream but the vocabulary's sample."""
    data: DataSettings = DataSettings()
    """Raw inputs."""
    c4: C4Settings = C4Settings()
    """Corpus."""
    vocab: VocabSettings = VocabSettings()
    """Vocabulary."""
    tokens: TokensSettings = TokensSettings()
    """Corpus as ids."""
    model: ModelSettings = ModelSettings()
    """Model."""
    pretrain: PretrainSettings = PretrainSettings()
    """Pre-training."""
    tasks: TasksSettings = TasksSettings()
    """Downstream tasks."""
    finetune: FinetuneSettings = FinetuneSettings()
    """Fine-tuning."""
    evaluate: EvaluateSettings = EvaluateSettings()
    """Prediction and scores."""
    devices: DevicesSettings = DevicesSettings()
    """Devices."""
    experiments: list[Experiment] = [Experiment(name="baseline")]
    """Experiments of the study, in the report's order."""

    @model_validator(mode="after")
    def _sections_fit_together(self) -> "Settings":
        _check_lists(self)
        _check_corpus(self)
        _check_training(self)
        _check_evaluation(self)
        return self


class ReportStage(Section):
    """Settings of `report`: it shows all of them."""

    settings: Settings


def _check_lists(settings: Settings) -> None:
    """Raise ValueError for a list that must not be empty, or that repeats a name."""
    experiments = [experiment.name for experiment in settings.experiments]
    required: tuple[tuple[str, Sequence[str]], ...] = (
        ("c4.languages", settings.c4.languages),
        ("tokens.languages", settings.tokens.languages),
        ("vocab.language_parts", list(settings.vocab.language_parts)),
        ("tasks.names", settings.tasks.names),
        ("experiments", experiments),
    )
    for key, names in required:
        if not names:
            raise ValueError(f"{key} is empty; name at least one")
    for key, names in (
        ("experiments", experiments),
        ("tasks.names", settings.tasks.names),
        ("evaluate.ensemble", settings.evaluate.ensemble),
    ):
        if twice := repeated(names):
            raise ValueError(f"{key} holds {twice} more than once; names must differ")


def _check_corpus(settings: Settings) -> None:
    """Raise ValueError where languages are used that are not built, or pages would be lost."""
    languages = set(settings.c4.languages)
    for key, names in (
        ("tokens.languages", settings.tokens.languages),
        ("vocab.language_parts", settings.vocab.language_parts),
    ):
        if missing := sorted(set(names) - languages):
            raise ValueError(
                f"{key} names {missing}, which c4.languages {sorted(languages)} does not build"
            )
    if settings.c4.limits.record_chars < settings.c4.clean.max_page_chars:
        raise ValueError(
            f"c4.limits.record_chars {settings.c4.limits.record_chars} is under "
            f"c4.clean.max_page_chars {settings.c4.clean.max_page_chars}, so pages that the rules "
            "allow would be lost; raise it"
        )


def _check_training(settings: Settings) -> None:
    """Raise ValueError for a training that cannot run as configured."""
    every = settings.devices.steps_per_execution
    for name, training in (("pretrain", settings.pretrain), ("finetune", settings.finetune)):
        if training.kept_steps and training.checkpoint_every_steps % every:
            raise ValueError(
                f"{name}.checkpoint_every_steps {training.checkpoint_every_steps} is no multiple "
                f"of devices.steps_per_execution {every}, so {name}.keep_checkpoints 'all' "
                "cannot keep the weights of those steps"
            )
    if settings.pretrain.objective == "lm" and not settings.model.decoder_only:
        raise ValueError(
            f"pretrain.objective lm has no inputs, which model.architecture "
            f"{settings.model.architecture} needs; use prefix_lm, or a language model"
        )
    if unknown := sorted(set(settings.finetune.mixture_weights) - set(settings.tasks.names)):
        raise ValueError(
            f"finetune.mixture_weights names {unknown}, which tasks.names does not hold; "
            f"allowed: {sorted(settings.tasks.names)}"
        )


def _check_evaluation(settings: Settings) -> None:
    """Raise ValueError for an evaluation of tasks or checkpoints that do not exist."""
    evaluate = settings.evaluate
    if missing := sorted(set(evaluate.beam_tasks) - set(settings.tasks.names)):
        raise ValueError(f"evaluate.beam_tasks names {missing}, which tasks.names does not hold")
    if evaluate.checkpoints == "all" and settings.finetune.keep_checkpoints != "all":
        raise ValueError(
            "evaluate.checkpoints 'all' needs finetune.keep_checkpoints 'all', which is "
            f"{settings.finetune.keep_checkpoints!r}; weights that are not kept cannot answer"
        )
    if evaluate.ensemble and (evaluate.checkpoints == "all" or evaluate.beam_tasks):
        raise ValueError(
            f"evaluate.ensemble {evaluate.ensemble} answers greedily with the last "
            "weights of its members; evaluate.checkpoints must be 'last' and "
            "evaluate.beam_tasks empty"
        )
