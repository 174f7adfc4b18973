"""Original task files to rows, strictly: what is not in the expected layout is refused.

Every error names file and line, shows what stood there, what is allowed and the cure. Each
reader is called with the files of one split, the split's name and a counter for what it leaves
out by rule.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from t5repro.errors import TaskDataError
from t5repro.tasks.task import Row

SHOWN_CHARS = 80
BYTE_ORDER_MARK = "\ufeff"
MAX_CSV_FIELD_CHARS = 1 << 24
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
SEGMENT = re.compile(r"<seg[^>]*>(.*)</seg>")
DPR_BLOCK_LINES = 5
CURE = "download the file again, or name another one under tasks.files"


def fault(where: str, what: str, value: Any, allowed: str, cure: str = CURE) -> TaskDataError:
    """Return the error for something in a task file that is not allowed there."""
    shown = repr(value)
    if len(shown) > SHOWN_CHARS:
        shown = shown[:SHOWN_CHARS] + "…"
    return TaskDataError(f"{where}: {what} {shown}; allowed: {allowed}; {cure}")


def open_task_file(path: Path) -> Any:
    """Open a task file for reading bytes.

    Raises:
        TaskDataError: it is missing or cannot be read.
    """
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise TaskDataError(
            f"{path} is missing; put the original file there, or name another one under tasks.files"
        ) from error
    except OSError as error:
        raise TaskDataError(
            f"{path} cannot be read ({error.strerror}); it must be a file you may read"
        ) from error


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each line's place and text; only a line feed (with a carriage return) ends a line.

    Raises:
        TaskDataError: the file is missing, or a line is not UTF-8.
    """
    with open_task_file(path) as handle:
        for number, line in enumerate(handle, start=1):
            where = f"{path} line {number}"
            yield where, decode(line, where).removesuffix("\n").removesuffix("\r")


def decode(data: bytes, where: str) -> str:
    """Return `data` as text.

    Raises:
        TaskDataError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        wrong = data[error.start : error.end]
        raise fault(
            where, "bytes are not UTF-8:", wrong, "UTF-8", "convert the file to UTF-8"
        ) from error


# GLUE: tab-separated values


@dataclass(frozen=True)
class Columns:
    """Where a TSV file keeps what a task needs.

    Attributes:
        fields: name of a field -> its column.
        label: column of the label.
    """

    fields: Mapping[str, str]
    label: str


def read_tsv(
    files: Sequence[Path],
    split: str,
    left_out: Counter[str],
    *,
    layouts: tuple[Columns, ...],
    parse_label: Callable[[str], Any],
    columns_without_header: tuple[str, ...] = (),
    byte_order_mark: bool = False,
    max_short_rows: int = 0,
) -> Iterator[Row]:
    """Yield the rows of GLUE's tab-separated files; quotes are text.

    Args:
        files: read one after another.
        split: only the rows of ``test`` may have no label column.
        left_out: counts ``short_row``.
        layouts: the columns to look for; the first whose fields the header has is used.
        parse_label: text of a label -> label; ValueError says what is allowed.
        columns_without_header: columns of files that have no header; ``test`` files always do.
        byte_order_mark: whether a file may begin with one.
        max_short_rows: how many rows with too few columns are left out before it is an error.
    """
    count = 0
    for path in files:
        lines = read_lines(path)
        if columns_without_header and split != "test":
            columns, where = columns_without_header, f"{path}"
        else:
            where, header = next(lines, (f"{path} line 1", ""))
            if byte_order_mark:
                header = header.removeprefix(BYTE_ORDER_MARK)
            columns = tuple(header.split("\t"))
        positions = _positions(columns, layouts, split, where)
        for row_where, line in lines:
            cells = line.split("\t")
            count += 1
            if len(cells) < len(columns) and left_out["short_row"] < max_short_rows:
                left_out["short_row"] += 1
                continue
            if len(cells) != len(columns):
                raise fault(
                    row_where,
                    f"{len(cells)} columns in",
                    line,
                    f"{len(columns)} columns separated by tabs: {', '.join(columns)}",
                )
            yield {
                **{name: cells[position] for name, position in positions.fields},
                "label": _label_of(cells, positions.label, parse_label, row_where),
                "idx": count - 1,
                "where": row_where,
            }


@dataclass(frozen=True)
class _Positions:
    fields: tuple[tuple[str, int], ...]
    label: int | None


def _positions(
    columns: tuple[str, ...], layouts: tuple[Columns, ...], split: str, where: str
) -> _Positions:
    for layout in layouts:
        if not set(layout.fields.values()) <= set(columns):
            continue
        if layout.label not in columns and split != "test":
            break
        label = columns.index(layout.label) if layout.label in columns else None
        fields = tuple((name, columns.index(column)) for name, column in layout.fields.items())
        return _Positions(fields, label)
    wanted = [[*item.fields.values(), item.label] for item in layouts]
    expected = " or ".join(f"a header with the columns {names}" for names in wanted)
    raise fault(where, "found the header", list(columns), expected)


def _label_of(
    cells: list[str], position: int | None, parse_label: Callable[[str], Any], where: str
) -> Any:
    if position is None:
        return None
    try:
        return parse_label(cells[position])
    except ValueError as error:
        raise fault(where, "found the label", cells[position], str(error)) from error


def parse_word(text: str, *, words: Mapping[str, int]) -> int:
    """Return the label that a file writes as `text`.

    Raises:
        ValueError: it is none of `words`; the message lists them.
    """
    if text not in words:
        raise ValueError(" or ".join(map(repr, words)))
    return words[text]


def parse_score(text: str, *, low: float, high: float) -> float:
    """Return the number `text`.

    Raises:
        ValueError: it is not a number from `low` to `high`; the message says so.
    """
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise ValueError(f"a number from {low:g} to {high:g}")
    return value


# SuperGLUE: one JSON object a line


def read_records(
    files: Sequence[Path],
    split: str,
    left_out: Counter[str],
    *,
    to_rows: Callable[[Mapping[str, Any], str, str, Counter[str]], Iterable[Row]],
) -> Iterator[Row]:
    """Yield what `to_rows` makes of each JSON object; no `idx` may come twice.

    Args:
        files: read one after another.
        split: name of the split, for `to_rows`.
        left_out: counter for `to_rows`.
        to_rows: object, its place, split and counter to rows with ``idx``.
    """
    seen: dict[Hashable, str] = {}
    for path in files:
        for where, line in read_lines(path):
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise fault(
                    where, f"not JSON ({error}):", line, "one JSON object a line"
                ) from error
            if not isinstance(record, dict):
                raise fault(where, "found", record, "one JSON object a line")
            for row in to_rows(record, where, split, left_out):
                refuse_repeated(row["idx"], where, seen)
                yield {**row, "where": where}


def refuse_repeated(idx: Any, where: str, seen: dict[Hashable, str]) -> None:
    """Note an identity.

    Raises:
        TaskDataError: it was seen before; both places are named.
    """
    key = tuple(idx.items()) if isinstance(idx, Mapping) else idx
    if key in seen:
        raise fault(where, "repeats idx", idx, f"each idx once; it is also at {seen[key]}")
    seen[key] = where


def text_in(record: Mapping[str, Any], key: str, where: str) -> str:
    """Return the text at `key`.

    Raises:
        TaskDataError: it is absent or not text that UTF-8 can hold.
    """
    text = str(_value(record, key, where, str, "text"))
    if LONE_SURROGATE.search(text):  # JSON can spell it, no text file can hold it
        raise fault(where, f"{key} is", text, "text without halves of surrogate pairs")
    return text


def number_in(record: Mapping[str, Any], key: str, where: str) -> int:
    """Return the whole number at `key`.

    Raises:
        TaskDataError: it is absent or not a whole number.
    """
    return int(_value(record, key, where, int, "a whole number"))


def list_in(record: Mapping[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    """Return the list of objects at `key`.

    Raises:
        TaskDataError: it is absent or not a list of objects.
    """
    items: list[dict[str, Any]] = _value(record, key, where, list, "a list of objects")
    for item in items:
        if not isinstance(item, dict):
            raise fault(where, f"{key} holds", item, "a list of objects")
    return items


def object_in(record: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    """Return the object at `key`.

    Raises:
        TaskDataError: it is absent or not an object.
    """
    found: dict[str, Any] = _value(record, key, where, dict, "an object")
    return found


def _value(record: Mapping[str, Any], key: str, where: str, kind: type, allowed: str) -> Any:
    if key not in record:
        raise fault(where, f"no {key!r} among", sorted(record), f"a record with {key!r}: {allowed}")
    value = record[key]
    if type(value) is not kind:  # bool is an int to isinstance
        raise fault(where, f"{key} is", value, allowed)
    return value


def label_in(
    record: Mapping[str, Any], where: str, split: str, *, values: tuple[Any, ...]
) -> int | None:
    """Return the index of the record's label in `values`; None for an unlabelled test row.

    Raises:
        TaskDataError: the label is absent from a split that has labels, or is none of `values`.
    """
    if "label" not in record and split == "test":
        return None
    allowed = " or ".join(json.dumps(value) for value in values)
    label = _value(record, "label", where, type(values[0]), allowed)
    if label not in values:
        raise fault(where, "label is", label, allowed)
    return values.index(label)


# SQuAD


def read_squad(files: Sequence[Path], split: str, left_out: Counter[str]) -> Iterator[Row]:
    """Yield the questions of SQuAD v1.1 files: id, question, context and gold answers.

    A test file may leave ``answers`` out.
    """
    seen: dict[Hashable, str] = {}
    for path in files:
        for where, context, question in _questions(path):
            idx = text_in(question, "id", where)
            where = f"{where} (id {idx})"
            refuse_repeated(idx, where, seen)
            answers = None
            if "answers" in question or split != "test":
                found = list_in(question, "answers", where)
                answers = [text_in(answer, "text", where) for answer in found]
                if not answers:
                    raise fault(
                        where, "answers are", [], "at least one answer", "use SQuAD version 1.1"
                    )
            yield {
                "question": text_in(question, "question", where),
                "context": context,
                "answers": answers,
                "idx": idx,
                "where": where,
            }


def _questions(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield place, context and record of each question of one file."""
    with open_task_file(path) as handle:
        text = decode(handle.read(), str(path))
    try:
        root = json.loads(text)
    except json.JSONDecodeError as error:
        wrong = text[max(error.pos - 10, 0) : error.pos + 30]
        raise fault(
            f"{path} line {error.lineno} column {error.colno}",
            f"not JSON ({error.msg}) near",
            wrong,
            "SQuAD v1.1 JSON",
        ) from error
    if not isinstance(root, dict):
        raise fault(str(path), "found", root, "a JSON object with 'data'")
    for a, article in enumerate(list_in(root, "data", str(path))):
        place = f"{path} data[{a}]"
        for p, paragraph in enumerate(list_in(article, "paragraphs", place)):
            where = f"{place}.paragraphs[{p}]"
            context = text_in(paragraph, "context", where)
            for q, question in enumerate(list_in(paragraph, "qas", where)):
                yield f"{where}.qas[{q}]", context, question


# CNN/DailyMail


def read_csv(
    files: Sequence[Path], split: str, left_out: Counter[str], *, columns: tuple[str, ...]
) -> Iterator[Row]:
    """Yield the rows of comma-separated files with a header, a quoted cell may hold lines.

    Args:
        files: read one after another.
        split: not looked at.
        left_out: nothing is left out.
        columns: the columns to keep; the first is the row's identity.
    """
    seen: dict[Hashable, str] = {}
    for path in files:
        for where, cells in _csv_rows(path, columns):
            refuse_repeated(cells[columns[0]], where, seen)
            yield {**cells, "idx": cells[columns[0]], "where": where}


def _csv_rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    # The limit is the process's: an article may be longer than the module's default.
    previous = csv.field_size_limit(MAX_CSV_FIELD_CHARS)
    reader = csv.reader(_raw_lines(path), strict=True)
    first = 1
    try:
        header = next(reader, [])
        if absent := [name for name in columns if name not in header]:
            raise fault(
                f"{path} line 1",
                "found the header",
                header,
                f"a header with the columns {list(columns)} (absent: {absent})",
            )
        positions = {name: header.index(name) for name in columns}
        first = reader.line_num + 1
        for cells in reader:
            where = f"{path} line {first}"
            if len(cells) != len(header):
                raise fault(
                    where,
                    f"{len(cells)} columns in",
                    ",".join(cells),
                    f"{len(header)} columns: {', '.join(header)}",
                )
            yield where, {name: cells[position] for name, position in positions.items()}
            first = reader.line_num + 1
    except csv.Error as error:
        raise fault(
            f"{path} line {first}", "not comma-separated values:", str(error), "quoted cells"
        ) from error
    finally:
        csv.field_size_limit(previous)


def _raw_lines(path: Path) -> Iterator[str]:
    """Yield lines with their ends, which belong to the text inside quotes."""
    with open_task_file(path) as handle:
        for number, line in enumerate(handle, start=1):
            yield decode(line, f"{path} line {number}")


# Translation


def read_pairs(files: Sequence[Path], split: str, left_out: Counter[str]) -> Iterator[Row]:
    """Yield source and target of files that are aligned line by line.

    Args:
        files: source file, target file, source file, target file, ...
        split: not looked at.
        left_out: counts ``empty_side``, pairs of which one text is empty (as TFDS does).
    """
    if len(files) % 2 or not files:
        raise TaskDataError(
            f"a translation task got the files {[str(path) for path in files]}; "
            "allowed: a source and a target file, in turn; name them so under tasks.files"
        )
    count = 0
    for source, target in zip(files[::2], files[1::2], strict=True):
        lines = zip_longest(_segments(source), _segments(target))
        for read, (left, right) in enumerate(lines):
            if left is None or right is None:
                longer = target if left is None else source
                total = read + 1 + sum(1 for _ in lines)
                raise TaskDataError(
                    f"{source} and {target} are not aligned: {longer} has {total} lines, "
                    f"the other {read}; allowed: equal numbers of lines; "
                    "download both again, from one release"
                )
            count += 1
            if not left[1].strip() or not right[1].strip():
                left_out["empty_side"] += 1
                continue
            yield {"source": left[1], "target": right[1], "idx": count - 1, "where": left[0]}


def _segments(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a plain file, or the segments of an SGM file."""
    if path.suffix != ".sgm":
        yield from read_lines(path)
        return
    for where, line in read_lines(path):
        if "<seg" not in line:
            continue
        found = SEGMENT.search(line)
        if found is None:
            raise fault(where, "found", line, "a whole <seg>…</seg> in one line")
        yield where, found[1]


# Definite pronoun resolution


def read_pronoun_blocks(files: Sequence[Path], split: str, left_out: Counter[str]) -> Iterator[Row]:
    """Yield blocks of five lines: sentence, pronoun, two candidates, the right one, blank."""
    count = 0
    for path in files:
        lines = [(where, line.strip()) for where, line in read_lines(path)]
        for start in range(0, len(lines), DPR_BLOCK_LINES):
            block = lines[start : start + DPR_BLOCK_LINES]
            texts = [line for _, line in block]
            where = block[0][0]
            if not any(texts):
                continue
            if len(texts) < DPR_BLOCK_LINES - 1 or not all(texts[:4]) or any(texts[4:]):
                raise fault(
                    where,
                    "found the block",
                    texts,
                    "sentence, pronoun, candidates, right candidate, blank line",
                )
            candidates = [name.strip() for name in texts[2].split(",")]
            if texts[3] not in candidates:
                raise fault(block[3][0], "found the answer", texts[3], f"one of {candidates}")
            yield {
                "sentence": texts[0],
                "pronoun": texts[1],
                "candidates": candidates,
                "label": candidates.index(texts[3]),
                "idx": count,
                "where": where,
            }
            count += 1
