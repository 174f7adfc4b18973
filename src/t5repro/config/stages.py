"""Which settings each rule reads, and which rules come before it.

A job receives exactly the settings that its stage model names, so a changed leaf reruns exactly
the stages that read it. Experiments whose settings agree up to a rule share that rule's node; a
node is called after the first experiment that needs it.
"""

from typing import Any, Literal

from pydantic import Field

from t5repro.config.crawl import LimitsSettings, SelectSettings
from t5repro.config.own_tasks import OwnTask, TextSettings
from t5repro.config.schema import (
    CleanSettings,
    DataSettings,
    DedupSettings,
    DevicesSettings,
    EvaluateSettings,
    FinetuneSettings,
    Language,
    ModelSettings,
    Name,
    PretrainSettings,
    Section,
    Settings,
    SparkSettings,
    TokensSettings,
    VocabSettings,
)


class DataStage(Section):
    """Settings of `data` and `data_fetch`."""

    data: DataSettings


class DedupUnit(Section):
    """The part of `c4.dedup` that cleaning reads: what to hash."""

    unit: Literal["three_sentence_span", "line", "off"]


class PunktStage(Section):
    """Settings of `c4_punkt`."""

    class C4(Section):
        """The part of `c4` that training Punkt reads."""

        class Clean(Section):
            """Rules for the lines that are trained on."""

            max_page_chars: int
            max_word_chars: int
            min_words_per_line: int

        crawl: tuple[str, ...] = ()
        crawl_paths: str = ""
        crawl_prefix: str = ""
        limits: LimitsSettings = Field(default_factory=LimitsSettings)
        languages: list[Language]
        punkt_parameters: dict[Language, str] = Field(default_factory=dict)
        punkt_training: bool = True
        punkt_language: str = ""
        punkt_sample_files: int
        punkt_sample_chars: int
        clean: Clean

    c4: C4


class CleanStage(Section):
    """Settings of `c4_clean`."""

    class C4(Section):
        """The part of `c4` that cleaning reads."""

        crawl: tuple[str, ...] = ()
        crawl_paths: str = ""
        crawl_prefix: str
        clean_shards: int
        on_bad_record: Literal["skip", "fail"] = "skip"
        limits: LimitsSettings = Field(default_factory=LimitsSettings)
        select: SelectSettings = Field(default_factory=SelectSettings)
        punkt_parameters: dict[Language, str] = Field(default_factory=dict)
        punkt_training: bool = True
        punkt_language: str = ""
        bad_word_lists: dict[Language, str] = Field(default_factory=dict)
        clean: CleanSettings
        dedup: DedupUnit

    c4: C4


class Engine(Section):
    """What runs the steps of `c4`: decides no byte, so no rule's settings hold it."""

    engine: Literal["local", "spark"] = "local"
    spark: SparkSettings = SparkSettings()


class DedupStage(Section):
    """Settings of `c4_dedup`."""

    class C4(Section):
        """The part of `c4` that deduplication reads."""

        dedup: DedupSettings

    c4: C4


class C4Stage(Section):
    """Settings of `c4`, which writes the corpus."""

    class C4(Section):
        """The part of `c4` that writing the corpus reads."""

        languages: list[Language]
        min_language_probability: float
        require_pages: bool = True
        punkt_parameters: dict[Language, str] = Field(default_factory=dict)
        punkt_training: bool = True
        punkt_language: str = ""
        bad_word_lists: dict[Language, str] = Field(default_factory=dict)
        output_shards: int
        validation_modulus: int
        clean: CleanSettings
        dedup: DedupSettings

    c4: C4


class VocabSampleStage(Section):
    """Settings of `vocab_sample`."""

    class Vocab(Section):
        """The part of `vocab` that sampling reads."""

        language_parts: dict[Language, int]
        sample_chars: int
        sample_seed: int = 0

    vocab: Vocab


class VocabStage(Section):
    """Settings of `vocab`."""

    class Vocab(Section):
        """The part of `vocab` that training reads."""

        vocab_size: int
        extra_ids: int
        character_coverage: float
        required_characters: str = ""
        model_file: str = ""

    vocab: Vocab


class TokensStage(Section):
    """Settings of `tokens`."""

    tokens: TokensSettings


class PretrainStage(Section):
    """Settings of `pretrain`."""

    seed: int
    vocab: VocabSettings
    model: ModelSettings
    pretrain: PretrainSettings
    devices: DevicesSettings


class TaskTexts(Section):
    """The part of `tasks` that decides how a row reads and how an answer is scored."""

    text: TextSettings = TextSettings()
    own: dict[Name, OwnTask] = Field(default_factory=dict)


class TasksStage(Section):
    """Settings of `tasks`, beside a task's name and its files."""

    tasks: TaskTexts = TaskTexts()


class TaskNames(Section):
    """The part of `tasks` that training and prediction read."""

    names: list[Name]


class FinetuneStage(Section):
    """Settings of `finetune`."""

    seed: int
    vocab: VocabSettings
    model: ModelSettings
    tasks: TaskNames
    pretrain: PretrainSettings = PretrainSettings()
    finetune: FinetuneSettings
    devices: DevicesSettings


class AddedLayers(Section):
    """The part of `finetune` that says which layers the network has."""

    method: Literal["all", "adapters", "gradual_unfreezing"] = "all"
    adapter_width: int = 2048

    @property
    def width(self) -> int:
        """Inner width of the adapters; 0: the network has none."""
        return self.adapter_width if self.method == "adapters" else 0


class PredictStage(Section):
    """Settings of `evaluate_predict`."""

    vocab: VocabSettings
    model: ModelSettings
    tasks: TaskNames
    finetune: AddedLayers = AddedLayers()
    evaluate: EvaluateSettings
    devices: DevicesSettings


class ScoreStage(Section):
    """Settings of `evaluate_score`: how answers are read, which the tasks decide."""

    tasks: TaskTexts = TaskTexts()


class ReportStage(Section):
    """Settings of `report`: it shows all of them."""

    settings: Settings


UNDETERMINED = "und"  # in `c4.languages`: pages whose language is not sure

STAGES: dict[str, type[Section]] = {
    "data": DataStage,
    "c4_punkt": PunktStage,
    "c4_clean": CleanStage,
    "c4_dedup": DedupStage,
    "c4": C4Stage,
    "vocab_sample": VocabSampleStage,
    "vocab": VocabStage,
    "tokens": TokensStage,
    "pretrain": PretrainStage,
    "tasks": TasksStage,
    "finetune": FinetuneStage,
    "evaluate_predict": PredictStage,
    "evaluate_score": ScoreStage,
    "report": ReportStage,
}

UPSTREAM: dict[str, tuple[str, ...]] = {
    "data": (),
    "c4_punkt": ("data",),
    "c4_clean": ("data", "c4_punkt"),
    "c4_dedup": ("c4_clean",),
    "c4": ("c4_dedup",),
    "vocab_sample": ("c4",),
    "vocab": ("vocab_sample",),
    "tokens": ("vocab",),
    "pretrain": ("tokens",),
    "tasks": ("data",),
    "finetune": ("pretrain", "tasks"),
    "evaluate_predict": ("finetune",),
    "evaluate_score": ("evaluate_predict",),
    "report": ("evaluate_score",),
}


def engine_settings(settings: Settings) -> dict[str, Any]:
    """Return what runs the steps of `c4`, as plain JSON values."""
    return {name: settings.c4.model_dump(mode="json")[name] for name in Engine.model_fields}


def punkt_to_train(c4: Any) -> list[str]:
    """Return the languages for which `c4_punkt` trains parameters.

    Args:
        c4: the settings of `c4`, or the part of them that a stage reads.
    """
    if not c4.punkt_training:
        return []
    wanted = [c4.punkt_language] if c4.punkt_language else c4.languages
    return [name for name in wanted if name not in c4.punkt_parameters and name != UNDETERMINED]


def stage_settings(settings: Settings, rule: str) -> dict[str, Any]:
    """Return the part of `settings` that `rule` reads, as plain JSON values."""
    everything = settings.model_dump(mode="json")
    if rule == "report":
        return received(rule, {"settings": everything})
    return _narrow(everything, STAGES[rule])


def received(rule: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return a stage's settings without what no command line carries.

    The engine reaches a step of `c4` as a resource; `report`, which shows all settings, is not told
    it, and what the schema fills in for it afterwards was not read from anywhere.

    Args:
        rule: the stage.
        values: its settings as plain JSON values, defaults filled in.
    """
    if rule != "report":
        return values
    shown = values["settings"]
    c4 = {name: value for name, value in shown["c4"].items() if name not in Engine.model_fields}
    return {**values, "settings": {**shown, "c4": c4}}


def _narrow(values: dict[str, Any], model: type[Section]) -> dict[str, Any]:
    """Keep the fields that `model` names, at every depth."""
    kept: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        value = values[name]
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, Section):
            value = _narrow(value, inner)
        kept[name] = value
    return kept
