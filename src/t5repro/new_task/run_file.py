"""The run file of a new task, as YAML: it fine-tunes and evaluates, and reads no corpus."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from t5repro.config.bounded_yaml import parse_yaml
from t5repro.config.load import load_settings
from t5repro.config.sections.tasks import OwnTask
from t5repro.config.task_files import check_listed_files
from t5repro.config.validation import validate
from t5repro.errors import SettingsError, TaskDataError
from t5repro.files import sha256_of
from t5repro.new_task.doubts import doubts
from t5repro.new_task.proposal import Options, Proposal, propose
from t5repro.new_task.rows import cures_without_run_file, read_rows
from t5repro.new_task.start import Start, below_working_folder
from t5repro.task_table import BY_NAME
from t5repro.tasks.own import own_task
from t5repro.tasks.task import Example
from t5repro.vocab.adopted.files import files_beside, published_vocabulary
from t5repro.vocab.vocabulary import Vocabulary

MULTIPLE = 16  # lengths are rounded up to one of these; tokens
MOST_TOKENS = 512  # of inputs and of targets: longer ones are truncated, as in the paper
BATCH_SIZE = 16
EPOCHS = 15
FEWEST_STEPS, MOST_STEPS = 20, 1000
LOG_ROWS = 10
SHARES = (0.3, 0.5)  # tried if the share leaves a split without rows
INDENT = "  "


@dataclass(frozen=True)
class NewTask:
    """A proposed run.

    Attributes:
        name: name of the task and of the run.
        text: the run file.
        reasons: a line for each guess.
        example: text of the first input, for a prediction.
    """

    name: str
    text: str
    reasons: tuple[str, ...]
    example: str


def new_task(
    file: Path, start: Start, *, options: Options, name: str = "", licence: str = "not stated"
) -> NewTask:
    """Return the run file of a task.

    Args:
        file: file of rows.
        start: weights and vocabulary.
        options: the decisions of the user.
        name: name of the task and of the run; by default the file's name.
        licence: licence of the rows.

    Raises:
        TaskDataError: the file is broken.
        SettingsError: the name is taken, the file is not below the working folder, or the options
            do not fit the file.
    """
    file = below_working_folder(file)
    rows = read_rows(file, delimiter=options.delimiter, encoding=options.encoding)
    proposal = propose(rows, options)
    name = _checked_name(name or re.sub(r"[^a-z0-9]+", "_", file.stem.lower()).strip("_"), start)
    # A share that the user gives is kept.
    shares = () if options.validation else SHARES
    definition, examples = _split_examples(name, file, proposal, shares)
    file = start.vocabulary
    published = published_vocabulary(file, files_beside(file))
    vocabulary = Vocabulary.from_bytes(published.data, file)
    vocabulary.check_labels(definition.labels, "name words for the labels: --labels WORD,WORD")
    files = dict.fromkeys(path for paths in definition.files.values() for path in paths)
    sections = {
        "pretrain": {"start_from": start.folder.as_posix(), "steps": 0},
        "vocab": {"model_file": start.vocabulary.as_posix(), **start.settings["vocab"]},
        **{key: start.settings[key] for key in ("model", "devices") if start.settings.get(key)},
        **_training(examples, vocabulary, start, split=_evaluated(definition)),
    }
    text = "".join(
        f"{line}\n"
        for line in _lines(
            name, definition.model_dump(exclude_defaults=True), files, start, licence, sections
        )
    )
    check_listed_files(load_settings(parse_yaml(text, "the proposed run file")))
    reasons = _reasons(definition, examples, start)
    reasons += tuple(_unwritable_targets(examples, vocabulary))
    reasons += tuple(f"left out: {reason}" for reason in proposal.left_out)
    reasons += tuple(f"warning: {doubt}" for doubt in doubts(rows, definition))
    return NewTask(name, text, reasons, examples["train"][0].inputs)


def _reasons(
    definition: OwnTask, examples: Mapping[str, Sequence[Example]], start: Start
) -> tuple[str, ...]:
    kind, labels = definition.answer_kind, ", ".join(definition.labels)
    share, column = definition.validation_share, definition.split_column
    unit = "inputs of each label" if definition.stratified else "rows"
    split = f"{share:.0%} of the {unit}, by a hash of the inputs" if share else column or "a file"
    counts = ", ".join(
        f"{len(rows):,} {name}{_label_counts(definition, rows)}" for name, rows in examples.items()
    )
    distinct = len({row.inputs for rows in examples.values() for row in rows})
    if distinct < sum(map(len, examples.values())):
        counts += f"; {distinct:,} distinct inputs"
    form = [
        f"{name}: {value!r}"
        for name, value in (("delimiter", definition.delimiter), ("encoding", definition.encoding))
        if value != OwnTask.model_fields[name].default
    ]
    evaluated = {row.targets for row in examples[_evaluated(definition)]}
    absent = [label for label in definition.labels if label not in evaluated]
    return (
        f"inputs: {', '.join(definition.fields)}",
        f"target: {definition.target}, a {kind}{f': {labels}' if labels else ''}",
        f"metrics: {', '.join(definition.metrics)}",
        f"{_evaluated(definition)} split: {split}",
        f"rows: {counts}",
        *form,
        f"starts from: {start.folder.as_posix()}",
        *(
            [f"warning: no row of {_evaluated(definition)} has {' or '.join(map(repr, absent))}"]
            if absent
            else []
        ),
    )


def _label_counts(definition: OwnTask, rows: Sequence[Example]) -> str:
    """Return the number of rows of each label, in brackets; nothing for other tasks."""
    if not definition.labels:
        return ""
    counts = Counter(row.targets for row in rows)
    return f" ({', '.join(f'{label} {counts[label]:,}' for label in definition.labels)})"


def _checked_name(name: str, start: Start) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_]*", name):
        raise SettingsError(
            f"{name!r} is no name of a task; allowed are a-z, 0-9 and _; name another one: --name"
        )
    if name in BY_NAME:
        raise SettingsError(f"{name!r} is a task of the paper; name another one: --name")
    # Its rule `data` would record files that the run itself overwrites.
    if start.folder.parts[:2] == ("results", name):
        raise SettingsError(
            f"the run would write into results/{name}, from which it starts; name another: --name"
        )
    return name


def _split_examples(
    name: str, file: Path, proposal: Proposal, shares: Sequence[float]
) -> tuple[OwnTask, dict[str, list[Example]]]:
    """Return the definition and the examples of each split, as the rule `tasks` will read them."""
    files = {split: [file.as_posix()] for split in proposal.splits}
    if proposal.validation:
        validation = below_working_folder(proposal.validation)
        form = {key: proposal.definition.get(key, "") for key in ("delimiter", "encoding")}
        read_rows(validation, **form)  # refuses a damaged file with its row
        files["validation"] = [validation.as_posix()]
    # Rows go to a split by a hash, so a split of few rows can be empty: larger shares are tried.
    share = proposal.definition.get("validation_share", 0)
    for number in dict.fromkeys(
        (share, *(larger for larger in shares if share and larger > share))
    ):
        values = proposal.definition | ({"validation_share": number} if share else {})
        definition = validate(OwnTask, {"files": files, **values}, label="the proposed task: ")
        examples: dict[str, list[Example]] = {
            split: list(_examples(name, definition, split, paths))
            for split, paths in definition.files.items()
        }
        if all(examples.values()):
            return definition, examples
    empty = [split for split, rows in examples.items() if not rows]
    if share and not shares:
        raise SettingsError(
            f"--validation {share:g} of {file} leaves no row for {', '.join(empty)}; give a larger "
            "share, at most 0.5, or a file: --validation FILE"
        )
    raise TaskDataError(
        f"{file} has no row for {', '.join(empty)}; add rows, or name a file: --validation FILE"
    )


def _examples(
    name: str, definition: OwnTask, split: str, paths: Sequence[str]
) -> Iterator[Example]:
    task = own_task(name, definition)
    with cures_without_run_file():
        for row in task.read([Path(path) for path in paths], split, Counter()):
            yield from task.to_examples(row)


def _unwritable_targets(
    examples: Mapping[str, Sequence[Example]], vocabulary: Vocabulary
) -> Iterator[str]:
    """Yield a warning if the model cannot write some targets."""
    targets = [example.targets for rows in examples.values() for example in rows]
    if warning := vocabulary.unwritable_targets(targets):
        yield f"warning: {warning}"


def _evaluated(definition: OwnTask) -> str:
    return "validation" if "validation" in definition.files else "test"


def _training(
    examples: dict[str, list[Example]], vocabulary: Vocabulary, start: Start, *, split: str
) -> dict[str, dict[str, Any]]:
    """Return the sections `finetune` and `evaluate`: lengths that fit, some epochs of steps."""
    rows = [example for split_rows in examples.values() for example in split_rows]
    inputs = _tokens(vocabulary, [example.inputs for example in rows])
    targets = _tokens(vocabulary, [example.targets for example in rows])
    inputs_length, targets_length = _length(inputs), _length(targets)
    # A packed row has as many examples as fit.
    packed = min(
        inputs_length * len(inputs) / sum(inputs), targets_length * len(targets) / sum(targets)
    )
    # A step sees BATCH_SIZE rows of packed examples.
    steps = round(EPOCHS * len(examples["train"]) / (BATCH_SIZE * packed))
    steps = max(FEWEST_STEPS, min(MOST_STEPS, steps))
    finetune = {
        "steps": steps,
        "batch_size": BATCH_SIZE,
        "inputs_length": inputs_length,
        "targets_length": targets_length,
        "log_every_steps": steps // LOG_ROWS,
        **start.settings.get("finetune", {}),
    }
    evaluate: dict[str, Any] = {"inputs_length": inputs_length, "max_decode_length": targets_length}
    return {
        "finetune": finetune,
        "evaluate": evaluate | ({} if split == "validation" else {"split": split}),
    }


def _tokens(vocabulary: Vocabulary, texts: Sequence[str]) -> list[int]:
    """Return the tokens of each text, EOS included."""
    return [len(ids) + 1 for ids in vocabulary.encode_batch(texts)]


def _length(tokens: Sequence[int]) -> int:
    return min(MOST_TOKENS, -(-max(tokens) // MULTIPLE) * MULTIPLE)


# YAML


def _lines(
    name: str,
    definition: dict[str, Any],
    files: Sequence[str] | dict[str, None],
    start: Start,
    licence: str,
    sections: dict[str, dict[str, Any]],
) -> Iterator[str]:
    yield f"run: {_flow({'name': name})}"
    yield "data:"
    yield f"{INDENT}folder: ."
    yield f"{INDENT}sources:"
    yield from _source("the rows of the task", licence, map(Path, files))
    yield from _source(start.origin, start.licence, start.files)
    yield "tasks:"
    yield f"{INDENT}folder: ."
    yield f"{INDENT}names: {_flow([name])}"
    yield f"{INDENT}own:"
    yield f"{INDENT * 2}{_flow(name)}:"
    for key, value in definition.items():
        yield f"{INDENT * 3}{key}: {_flow(value)}"
    for section, values in sections.items():
        yield f"{section}: {_flow(values)}"


def _source(origin: str, licence: str, files: Iterator[Path] | Sequence[Path]) -> Iterator[str]:
    yield f"{INDENT * 2}- origin: {_flow(origin)}"
    yield f"{INDENT * 3}licence: {_flow(licence)}"
    yield f"{INDENT * 3}files:"
    for path in files:
        yield f"{INDENT * 4}{_flow(path.as_posix())}: {sha256_of(path)}"


def _flow(value: Any) -> str:
    """Return a value as YAML on one line."""
    text = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**9
    )
    return text.removesuffix("\n").removesuffix("\n...")
