"""Settings as the page shows them, and the choices in force where sources part.

`CHOICES` has one entry for each file of `docs/decisions`, in their order, then choices that the
paper itself varies. To add one, add an entry; a test compares it with the decisions' table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from t5repro.config.load import describe, settings_of_experiment
from t5repro.config.schema import Settings
from t5repro.report.experiments import Group, flat, plain

LONGEST_VALUE = 48  # characters of a value in the table of choices
# Where the raw inputs lay on a machine is no property of the result.
PLACES = ("run.", "data.", "experiments")


@dataclass(frozen=True)
class Choice:
    """A question that paper and code leave open, and what answers it.

    Attributes:
        decision: its number in ``docs/decisions``, or nothing.
        topic: the question.
        settings: settings that answer it.
        fixed: the answer, where no setting does.
    """

    decision: str
    topic: str
    settings: tuple[str, ...] = ()
    fixed: str = ""


CHOICES = (
    Choice("D-001", "field order of MNLI, CB, SuperGLUE RTE", ("tasks.text.field_order",)),
    Choice("D-002", "closing sentinel in targets", ("pretrain.final_sentinel",)),
    Choice(
        "D-003",
        "C4 page rule",
        ("c4.recipe", "c4.clean.min_sentences", "c4.clean.min_words_per_line"),
    ),
    Choice("D-004", "C4 deduplication", ("c4.dedup.unit", "c4.recipe")),
    Choice("D-005", "batch of the final models", ("pretrain.batch_rows",)),
    Choice("D-006", "STS-B classes", ("tasks.text.stsb_classes",)),
    Choice("D-007", "WiC input", ("tasks.text.wic_part_of_speech",)),
    Choice("D-008", "COPA target", ("tasks.text.copa_target",)),
    Choice("D-009", "HTML in MultiRC", ("tasks.text.multirc_markup",)),
    Choice("D-010", "SQuAD text", ("tasks.text.squad_punctuation",)),
    Choice("D-011", "delimiter of language models", ("model.target_marker",)),
    Choice("D-012", "WMT English-French splits", ("tasks.files",)),
    Choice("D-013", "CNN/Daily Mail edition", ("tasks.files",)),
    Choice("D-014", "Table 10, adapter d=2048", fixed="Table 16's row"),
    Choice("D-015", "Table 13, ensembles", fixed="main text, difference noted"),
    Choice("D-016", "parameters of T5-Large", fixed="code"),
    Choice("D-017", "loss normaliser", ("pretrain.loss_normaliser", "finetune.loss_normaliser")),
    Choice("D-018", "learning rate of pre-training", ("pretrain.learning_rate.schedule",)),
    Choice("D-019", "end marks of a line", fixed="code"),
    Choice("D-020", "sentences per page", ("c4.clean.min_sentences", "c4.dedup.min_sentences")),
    Choice("D-021", "words per line", ("c4.clean.min_words_per_line",)),
    Choice("D-022", "longest word", ("c4.clean.max_word_chars",)),
    Choice("D-023", "sentence counter", ("c4.punkt_parameters",)),
    Choice("D-024", "lorem ipsum, `{`, javascript, policies, citations", ("c4.clean.enabled",)),
    Choice("D-025", "bad words", ("c4.clean.bad_words", "c4.bad_word_lists")),
    Choice("D-026", "page length and repeated URLs", ("c4.clean.max_page_chars",)),
    Choice("D-027", "unit of deduplication", ("c4.dedup.unit",)),
    Choice("D-028", "kept copy", fixed="code"),
    Choice("D-029", "language filter", ("c4.languages", "c4.min_language_probability")),
    Choice("D-030", "3/5 against 5/3", ("c4.recipe",)),
    Choice("D-031", "definition of a span", ("c4.dedup.unit",)),
    Choice("D-032", "characters that a vocabulary must have", ("vocab.required_characters",)),
    Choice("D-033", "bad bytes and damaged crawl files", ("c4.on_bad_record",)),
    Choice(
        "D-034",
        "scores that a definition leaves open",
        fixed="0.0; non-finite STS-B predictions are -1.0",
    ),
    Choice("D-035", "STS-B's answer; unlabelled rows", ("tasks.text.stsb_answer",)),
    Choice("D-036", "rows left out; MRPC's validation set", ("tasks.files",)),
    Choice(
        "D-037", "trivial baselines", fixed="majority of training rows; WSC, WNLI: of scored rows"
    ),
    Choice("D-038", "order of training data", ("pretrain.concatenate_documents",)),
    Choice(
        "D-039",
        "packing, shortest segment, room of targets",
        fixed="ten open rows; 4 tokens; mean + 4 deviations",
    ),
    Choice(
        "D-040", "examples that mixture rates count", ("finetune.mixture_examples", "tasks.mixture")
    ),
    Choice("D-041", "release and threads of SentencePiece", fixed="0.2.1, 16 threads"),
    Choice(
        "D-042",
        "noise, initial values, position buckets",
        fixed="as released; buckets in float64; weights from seed and name",
    ),
    Choice(
        "D-043",
        "bytes of a result on a CPU",
        (
            "devices.kind",
            "devices.precision",
            "devices.intra_op_threads",
            "devices.instruction_set",
        ),
    ),
    Choice("D-044", "optimizer state in fine-tuning", ("finetune.optimizer_state",)),
    Choice("D-045", "beam search", ("evaluate.beam_tasks",)),
    Choice(
        "D-046",
        "norms beside adapters; episodes of unfreezing",
        ("finetune.method", "finetune.adapter_norms"),
    ),
    Choice("", "how corrupted tokens are chosen", ("pretrain.noise_mask",)),
    Choice("", "share of corrupted tokens", ("pretrain.noise_density",)),
    Choice("", "how often each task is drawn", ("finetune.mixture", "finetune.mixture_limit")),
    Choice("", "split that is scored", ("evaluate.split",)),
    Choice("", "tokens at which an answer is cut", ("evaluate.max_decode_length",)),
)


@dataclass(frozen=True)
class Setting:
    """One setting: its value in each experiment, the paper's, and what it means."""

    name: str
    values: tuple[str, ...]
    paper: str
    differs: bool
    meaning: str


def all_settings(settings: Settings, listed: Sequence[Group]) -> list[Setting]:
    """Return every setting that can move a number, with the paper's baseline beside it."""
    resolved = [flat(settings_of_experiment(settings, group.name)) for group in listed]
    paper = flat(Settings())
    return [
        Setting(
            name=name,
            values=tuple(
                _seeds(group) if name == "seed" and group.several else plain(values[name])
                for group, values in zip(listed, resolved, strict=True)
            ),
            paper=plain(paper[name]),
            differs=any(values[name] != paper[name] for values in resolved),
            meaning=describe(name),
        )
        for name in resolved[0]
        if not name.startswith(PLACES)
    ]


def _seeds(group: Group) -> str:
    return ", ".join(map(str, group.seeds))


@dataclass(frozen=True)
class Answer:
    """A choice in force: the question, and its settings with a value for each experiment."""

    decision: str
    topic: str
    settings: tuple[Setting, ...]
    fixed: str


def in_force(listed: Sequence[Setting]) -> list[Answer]:
    """Return every choice with its values, long ones shortened."""
    known = {item.name: item for item in listed}
    return [
        Answer(
            decision=choice.decision,
            topic=choice.topic,
            settings=tuple(
                Setting(
                    name=name,
                    values=tuple(map(short, known[name].values)),
                    paper=short(known[name].paper),
                    differs=known[name].differs,
                    meaning=known[name].meaning,
                )
                for name in choice.settings
            ),
            fixed=choice.fixed,
        )
        for choice in CHOICES
    ]


def short(text: str) -> str:
    """Return a value as it fits a cell; a longer one is below `All settings`."""
    return text if len(text) <= LONGEST_VALUE else "see all settings"


def switched(settings: Settings) -> str:
    """Return the choices away from their defaults as ``name=value``, parted by semicolons."""
    own, usual = flat(settings), flat(Settings())
    names = dict.fromkeys(name for choice in CHOICES for name in choice.settings)
    return "; ".join(f"{name}={_value(own[name])}" for name in names if own[name] != usual[name])


def _value(value: Any) -> str:
    text = plain(value)
    return text if len(text) <= LONGEST_VALUE else "(its own)"
