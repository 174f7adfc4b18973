"""Settings of the tasks (`tasks.*`), including the user's own, and of the stage `tasks`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from t5repro.config.field import Name, Pattern, Section, repeated
from t5repro.task_facts import SplitName
from t5repro.task_groups import DEFAULT_TASKS

Reading = Literal["code", "paper"]
OwnMetric = Literal[
    "accuracy",
    "f1",
    "macro_f1",
    "matthews_corrcoef",
    "squad",
    "bleu",
    "rouge",
    "pearson_corrcoef",
    "spearman_corrcoef",
]
METRICS_OF_LABELS = ("accuracy", "f1", "macro_f1", "matthews_corrcoef")
METRICS_OF_CHOICES = ("accuracy",)
METRICS_OF_TEXT = ("accuracy", "squad", "bleu", "rouge")
METRICS_OF_NUMBERS = ("pearson_corrcoef", "spearman_corrcoef")
METRICS_OF_TWO_LABELS = ("f1", "matthews_corrcoef")
OWN_SUFFIXES = (".tsv", ".csv", ".jsonl", ".parquet")


class TextSettings(Section):
    """Texts of the tasks in which the paper and the released code differ (`docs/decisions`)."""

    field_order: Reading = "code"
    """First field of MNLI, AX, CB, SuperGLUE's RTE, AX-b, AX-g, SNLI and SciTail: the hypothesis
    (`code`) or the premise (`paper`) (D-001).
    """
    stsb_classes: Reading = "code"
    """Targets of STS-B: 26 from 0 to 5, and any number is a valid answer (`code`); or 21 from 1 to
    5, with lower scores raised to 1.0, and answers outside are wrong (`paper`) (D-006).
    """
    stsb_answer: Literal["rounded", "original"] = "rounded"
    """Reference of the scores of STS-B: the rounded number, or the one in the file (D-035)."""
    wic_part_of_speech: Reading = "code"
    """Input of WiC: `paper` starts with `pos: N`, which requires `pos` in the files (D-007)."""
    copa_target: Reading = "code"
    """Targets of COPA: `choice1`, `choice2` (`code`) or `False`, `True` (`paper`) (D-008)."""
    multirc_markup: Reading = "code"
    """Markup of MultiRC: `<br>` and `<b>` are removed (`code`) or kept (`paper`) (D-009)."""
    squad_punctuation: Literal["code", "code_2022", "paper"] = "code"
    """Texts of SQuAD: spaces around every character but ASCII letters, digits and `_` (`code`), or
    around ASCII punctuation, as the released code has it since April 2022 (`code_2022`); or
    unchanged (`paper`) (D-010).
    """
    squad_no_answer: Literal["unanswerable", "empty"] = "unanswerable"
    """Target of a question of SQuAD 2.0 without an answer: the word `unanswerable`, or no text
    (D-052).
    """
    winograd: Literal["referent", "labels"] = "referent"
    """Answers of WNLI and WSC: the referent of the pronoun as text, as in T5; or one of two labels
    for two texts, as networks of labels need them (D-049). WNLI is then trained on.
    """


def check_encoding(name: str) -> None:
    """Refuse an unknown encoding, or one in which ASCII has other bytes."""
    ascii_bytes = bytes(range(128))
    try:
        if ascii_bytes.decode(name) == ascii_bytes.decode("ascii"):
            return
    except (LookupError, UnicodeError):
        pass
    raise ValueError(
        f"encoding is {name!r}; allowed: an encoding of Python whose first 128 characters are "
        "ASCII, such as utf-8, cp1252 or latin-1; convert other files to UTF-8"
    )


class OwnTask(Section):
    """A task defined by the user: files of rows and the format of a row (`docs/add_a_task.md`)."""

    files: dict[SplitName, list[str]]
    """Split -> files below `tasks.folder`: .tsv or .csv with a header line, .jsonl or .parquet."""
    validation_share: float = Field(0, ge=0, le=0.5)
    """Share of the rows of `files.train` that are the validation split; `files.validation` names
    the same files. A hash of a row's fields decides, so equal fields share a split.
    """
    split_column: str = ""
    """Column that names the split of a row: train, validation (or dev, val, valid) or test. Each
    split has the rows of its files that the column gives to it.
    """
    prefix: Annotated[str, Pattern(r"^(\S(.*\S)?)?$", "a line without spaces around it")] = ""
    """First words of every input, which identify the task. If empty, the name of the task."""
    fields: list[str] = Field(min_length=1)
    """Columns of the input, in this order."""
    field_names: bool = True
    """Whether the input contains column names: `prefix column: value`. If false, `prefix value`."""
    target: str
    """Column of the target."""
    labels: list[str] = []
    """Allowed targets. Of two, the second is the positive class of F1. If empty, free text."""
    label_values: list[str] = []
    """Values of the target column for `labels`, in their order. If empty, the labels themselves."""
    options: list[str] = []
    """Columns of the possible answers of a row, of which the target names the right one. `labels`
    are then their names in the text, by default those of the columns.
    """
    id: str = ""
    """Column with a unique name of each row. If empty, rows are numbered."""
    incomplete: Literal["refuse", "skip"] = "refuse"
    """What happens to rows without a value in a column of the task (a blank cell, null, NaN): they
    stop the rule `tasks`, which counts them and names the first, or they are left out and counted.
    """
    stratified: bool = False
    """Whether `validation_share` is a share of the inputs of each label, so that no label with two
    inputs lacks validation rows.
    """
    delimiter: Literal[",", ";", "\t", "|"] = ","
    """Character between the cells of .csv files."""
    encoding: str = "utf-8"
    """Encoding of .csv and .tsv files, such as `cp1252` of Windows or `latin-1`."""
    metrics: list[OwnMetric] = Field(min_length=1)
    """Metrics. The first is the main score of the task."""

    @property
    def answer_words(self) -> list[str]:
        """Words of the answers: labels or names of options; empty if there are neither."""
        return self.labels or self.options

    @property
    def answer_kind(self) -> Literal["label", "number", "choice", "text"]:
        """Kind of the answers: one of `options`, one of `labels`, a number, or any text."""
        if self.options:
            return "choice"
        if self.labels:
            return "label"
        return "number" if self.metrics[0] in METRICS_OF_NUMBERS else "text"

    @model_validator(mode="after")
    def _fits_together(self) -> "OwnTask":
        listings: tuple[tuple[str, list[str]], ...] = (
            ("fields", self.fields),
            ("options", self.options),
            ("fields and options", [*self.fields, *self.options]),
            ("labels", self.labels),
            ("label_values", self.label_values),
            ("metrics", [str(name) for name in self.metrics]),
        )
        for key, names in listings:
            if duplicates := repeated(names):
                raise ValueError(f"{key} contains {duplicates} more than once; each must differ")
        self._check_files()
        self._check_split()
        check_encoding(self.encoding)
        if len(self.labels) == 1:
            raise ValueError(f"labels has only {self.labels}; name two or more, or none")
        if len(self.options) == 1:
            raise ValueError(f"options has only {self.options}; name two or more columns, or none")
        if self.options and len(self.answer_words) != len(self.options):
            raise ValueError(
                f"labels has {len(self.labels)} names and options {len(self.options)} columns; "
                "give one name for each option, in the same order, or none"
            )
        words = len(self.answer_words)
        if self.label_values and len(self.label_values) != words:
            raise ValueError(
                f"label_values has {len(self.label_values)} values and "
                f"{'labels' if self.labels else 'options'} {words}; "
                "give one value for each, in the same order"
            )
        allowed = {
            "label": METRICS_OF_LABELS,
            "number": METRICS_OF_NUMBERS,
            "choice": METRICS_OF_CHOICES,
            "text": METRICS_OF_TEXT,
        }[self.answer_kind]
        if unsuitable := [name for name in self.metrics if name not in allowed]:
            raise ValueError(
                f"metrics contains {unsuitable}, which need answers of a kind other than "
                f"{self.answer_kind!r}; allowed: {list(allowed)}"
            )
        binary = [name for name in self.metrics if name in METRICS_OF_TWO_LABELS]
        if binary and len(self.labels) > 2:
            raise ValueError(
                f"metrics contains {binary}, which need two labels, not {len(self.labels)}; "
                "allowed: accuracy, macro_f1"
            )
        return self

    def _check_split(self) -> None:
        if self.stratified and not (self.validation_share and self.answer_words):
            raise ValueError(
                "stratified divides rows by label; give validation_share and labels or options"
            )
        if self.validation_share and self.split_column:
            raise ValueError("validation_share and split_column are given; leave one out")
        files = self.files
        if self.validation_share and (
            "train" not in files or files.get("validation") != files["train"]
        ):
            raise ValueError(
                "validation_share divides the rows of files.train; files.validation must name the "
                "same files"
            )

    def _check_files(self) -> None:
        if not self.files:
            raise ValueError("files names no split; name files for train, validation or test")
        for split, names in self.files.items():
            if not names:
                raise ValueError(f"files.{split} names no file; name at least one")
            if duplicates := repeated(names):
                raise ValueError(
                    f"files.{split} contains {duplicates} more than once; name each once"
                )
            for name in names:
                if not name.endswith(OWN_SUFFIXES):
                    raise ValueError(
                        f"files.{split} names {name!r}; allowed: names that end in "
                        f"{', '.join(OWN_SUFFIXES)}"
                    )


class TaskTexts(Section):
    """The part of `tasks` that determines the texts of a task and its scores."""

    own: dict[Name, OwnTask] = {}
    """User-defined tasks by name (`docs/add_a_task.md`). Also add the name to `tasks.names`."""
    text: TextSettings = TextSettings()
    """Texts in which the paper and the released code differ."""


class TaskRows(TaskTexts):
    """The part of `tasks` that determines the rows of a task's files."""

    segments: bool = False
    """Whether the rows of a task also have the texts of its fields without prefix and names, the
    options of a choice apart, and the places of SQuAD's answers: what an encoder only reads.
    """


class WindowSettings(Section):
    """How an encoder only reads a question and a text that is longer than a row (SQuAD)."""

    question_length: int = Field(64, ge=1)
    """Maximum length of a question; tokens. Longer questions are truncated."""
    stride: int = Field(128, ge=1)
    """Distance between the starts of two windows of a text; tokens."""


class ListedTasks(Section):
    """The part of `tasks` that names them."""

    names: list[Name] = [*DEFAULT_TASKS]
    """Names of the tasks of the run (`t5repro tasks list`)."""


class TaskNames(ListedTasks):
    """The part of `tasks` that training and prediction read."""

    windows: WindowSettings = WindowSettings()
    """Windows of the texts of SQuAD, for an encoder only."""
    options_first: bool = False
    """Whether a network of labels reads an option before the text that it belongs to, as fairseq's
    RoBERTa does (D-051).
    """


class TasksSettings(TaskNames, TaskRows):
    """Downstream tasks as text (paper section 2.4)."""

    folder: str = "tasks"
    """Folder of the task files, below `data.folder`."""
    files: dict[Name, dict[str, list[str]]] = {}
    """Task -> split -> files below `tasks.folder` that replace files of the original archive. A
    translation has a source and a target file.
    """


class TasksStage(Section):
    """Settings of `tasks`, in addition to a task's name and its files."""

    tasks: TaskRows = TaskRows()
