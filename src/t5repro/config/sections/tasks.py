"""Settings of the tasks (`tasks.*`), including the user's own, and of the stage `tasks`."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from t5repro.config.field import Name, Section, repeated

Reading = Literal["code", "paper"]
SplitName = Literal["train", "validation", "test"]
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
METRICS_OF_TEXT = ("accuracy", "squad", "bleu", "rouge")
METRICS_OF_NUMBERS = ("pearson_corrcoef", "spearman_corrcoef")
METRICS_OF_TWO_LABELS = ("f1", "matthews_corrcoef")
OWN_SUFFIXES = (".tsv", ".csv", ".jsonl")


class TextSettings(Section):
    """Choice of the paper's texts where the released code writes others (`docs/decisions`)."""

    field_order: Reading = "code"
    """MNLI, AX, CB, SuperGLUE's RTE, AX-b and AX-g: `code` puts the hypothesis first, `paper` the
    premise (D-001).
    """
    stsb_classes: Reading = "code"
    """`code`: 26 targets from 0 to 5, and every predicted number counts; `paper`: 21 targets from 1
    to 5, lower scores become 1.0, and predictions outside are wrong (D-006).
    """
    stsb_answer: Literal["rounded", "original"] = "rounded"
    """STS-B's answer: the rounded number, or the original one of the file (D-035)."""
    wic_part_of_speech: Reading = "code"
    """`paper` writes `pos: N` first; the files must have `pos` (D-007)."""
    copa_target: Reading = "code"
    """`code`: `choice1`, `choice2`; `paper`: `False`, `True` (D-008)."""
    multirc_markup: Reading = "code"
    """`code` removes `<br>` and `<b>`, `paper` keeps them (D-009)."""
    squad_punctuation: Reading = "code"
    """`code` puts spaces around punctuation, `paper` leaves texts unchanged (D-010)."""


class OwnTask(Section):
    """A task of the user: files of rows and their format (`docs/add_a_task.md`)."""

    files: dict[SplitName, list[str]]
    """Split -> files below `tasks.folder`: .tsv or .csv with a header, or .jsonl."""
    prefix: Annotated[str, StringConstraints(pattern=r"^\S(.*\S)?$")]
    """First words of every input; tells the model which task this is."""
    fields: list[str] = Field(min_length=1)
    """Columns that the model reads, in this order."""
    field_names: bool = True
    """True: `prefix column: value column: value`; false: `prefix value value`."""
    target: str
    """Column with the answer."""
    labels: list[str] = []
    """Words of the answers; `f1` is the F1 of the second of two; empty: free text or a number."""
    label_values: list[str] = []
    """Value of the target column for each of `labels`; empty: the words themselves."""
    id: str = ""
    """Column that identifies a row, each value once; empty: rows are numbered."""
    metrics: list[OwnMetric] = Field(min_length=1)
    """Metrics; the first is the primary one."""

    @property
    def answer_kind(self) -> Literal["label", "number", "text"]:
        """Kind of the answers: one of `labels`, a number, or any text."""
        if self.labels:
            return "label"
        return "number" if self.metrics[0] in METRICS_OF_NUMBERS else "text"

    @model_validator(mode="after")
    def _fits_together(self) -> "OwnTask":
        listings: tuple[tuple[str, list[str]], ...] = (
            ("fields", self.fields),
            ("labels", self.labels),
            ("label_values", self.label_values),
            ("metrics", [str(name) for name in self.metrics]),
        )
        for key, names in listings:
            if duplicates := repeated(names):
                raise ValueError(f"{key} contains {duplicates} more than once; each must differ")
        self._check_files()
        if len(self.labels) == 1:
            raise ValueError(f"labels has only {self.labels}; name two or more, or none")
        if self.label_values and len(self.label_values) != len(self.labels):
            raise ValueError(
                f"label_values has {len(self.label_values)} values and labels {len(self.labels)}; "
                "give one value for each label, in the same order"
            )
        allowed = {
            "label": METRICS_OF_LABELS,
            "number": METRICS_OF_NUMBERS,
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
    """The settings of `tasks` that decide the text of a row and the score of a prediction."""

    own: dict[Name, OwnTask] = {}
    """Tasks of your own, by name (`docs/add_a_task.md`); name them in `tasks.names`, too."""
    text: TextSettings = TextSettings()
    """The paper's texts instead of the code's."""


class TaskNames(Section):
    """The settings of `tasks` that training and prediction read."""

    names: list[Name] = [
        "glue_cola",
        "glue_sst2",
        "glue_mrpc",
        "glue_stsb",
        "glue_rte",
        "super_glue_boolq",
        "super_glue_copa",
        "squad",
        "cnn_dailymail",
        "wmt_en_de",
        "wmt_en_fr",
        "wmt_en_ro",
    ]
    """Tasks of the run, by name (`t5repro list_tasks`)."""


class TasksSettings(TaskNames, TaskTexts):
    """Downstream tasks as text (paper section 2.4)."""

    folder: str = "tasks"
    """Folder of the task files below `data.folder`."""
    files: dict[Name, dict[str, list[str]]] = {}
    """Task -> split -> files below the folder, if they differ from the original archive (of a
    translation task, source and target file in turn).
    """
    mixture: str = ""
    """A named mixture (`t5repro list_mixtures`): it sets `tasks.names`, `finetune.mixture`,
    `.mixture_examples` and `.mixture_weights`; empty: those settings apply.
    """


class TasksStage(Section):
    """Settings of `tasks`, in addition to a task's name and its files."""

    tasks: TaskTexts = TaskTexts()
