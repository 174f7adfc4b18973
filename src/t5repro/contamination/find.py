"""Find the evaluated rows of an experiment in the corpus that it read.

The training rows of the run's other tasks are searched in the same way: GLUE and SuperGLUE share
texts, so such pairs are expected and counted apart.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.contamination.methods import Method, Unit
from t5repro.contamination.passages import FieldPassages, Passages
from t5repro.contamination.rows import fields_of_rows
from t5repro.contamination.search import Search, search_parts
from t5repro.contamination.texts import Part, excerpt, named_texts, parts_of_ids
from t5repro.contamination.verdicts import (
    NOTHING,
    Verdict,
    counts_of,
    thresholds,
    verdict_of,
    verdict_of_row,
)
from t5repro.tasks.task import Task
from t5repro.vocab.token_files import read_ids, read_offsets
from t5repro.vocab.vocabulary import Vocabulary

AROUND = 100  # characters of an excerpt on each side of the passage
AROUND_IDS = 25
Rows = Sequence[Mapping[str, Any]]
SearchParts = Callable[[Search, Sequence[Part]], tuple[Passages, int]]


@dataclass(frozen=True)
class Corpus:
    """The files to search.

    Attributes:
        pages: Parquet files of the corpus, in the order of the ids.
        ids: file of the ids of the same pages.
        vocabulary: SentencePiece model.
        train: task -> its training examples.
    """

    pages: Sequence[Path]
    ids: Path
    vocabulary: Path
    train: Mapping[str, Path]

    def sources(self, unit: Unit) -> dict[str, list[Part]]:
        """Return ``corpus`` and ``examples`` -> parts to search; ids of the corpus only."""
        if unit == "ids":
            total = Vocabulary.load(self.vocabulary).total_ids
            return {"corpus": parts_of_ids(self.ids, total)}
        examples = [Part(path, task=task) for task, path in sorted(self.train.items())]
        sources = {"corpus": [Part(path) for path in self.pages], "examples": examples}
        return {name: parts for name, parts in sources.items() if parts}


def find(
    tasks: Mapping[str, Task],
    rows: Mapping[str, Rows],
    methods: Sequence[Method],
    corpus: Corpus,
    search_in: SearchParts = search_parts,
) -> dict[str, Any]:
    """Return the passages of evaluated rows in the corpus, as plain JSON values.

    Args:
        tasks: task -> the task.
        rows: task -> its rows with predictions.
        methods: the methods.
        corpus: files to search.
        search_in: searches parts of the corpus.

    Returns:
        ``searched``, source -> units; ``tasks``, task -> source -> ``methods`` and ``found``. A
        method has ``rows`` and for each of ``fields`` the number of each verdict, and the numbers
        of the rows that are ``dirty`` and ``unchecked``; an entry of ``found`` is a field with its
        passage and the first page that has it.
    """
    fields = [field for name, task in tasks.items() for field in fields_of_rows(task, rows[name])]
    names = [method.name for method in methods]
    content: dict[str, Any] = {"methods": names, "searched": {}, "tasks": {n: {} for n in tasks}}
    for unit in ("words", "ids"):
        of_unit = [method for method in methods if method.unit == unit]
        if not of_unit:
            continue
        search = Search(fields, of_unit, corpus.vocabulary if unit == "ids" else None)
        for source, parts in corpus.sources(search.unit).items():
            passages, size = search_in(search, parts)
            content["searched"].setdefault(source, {})[unit] = size
            for name, entry in _by_task(search, passages, parts, rows, corpus).items():
                source_entry = content["tasks"][name].setdefault(
                    source, {"methods": {}, "found": []}
                )
                source_entry["methods"] |= entry["methods"]
                source_entry["found"] += entry["found"]
    return content


def _by_task(
    search: Search,
    passages: Passages,
    parts: Sequence[Part],
    rows: Mapping[str, Rows],
    corpus: Corpus,
) -> dict[str, dict[str, Any]]:
    """Return task -> its methods and its passages in one source."""
    lengths = [len(units) for units in search.units]
    verdicts: dict[str, list[Verdict]] = {}
    limits = {}
    for method in search.methods:
        limits[method.name] = thresholds(method, search.fields, lengths)
        verdicts[method.name] = [
            verdict_of(
                method,
                limits[method.name][field.task, field.name],
                lengths[number],
                passages.get(number, NOTHING),
            )
            for number, field in enumerate(search.fields)
        ]
    dirty = {
        number: [name for name, values in verdicts.items() if values[number] == "dirty"]
        for number in sorted(passages)
    }
    dirty_passages = {number: passages[number] for number, names in dirty.items() if names}
    in_rows = _in_rows(search, dirty_passages)
    first_pages = dict(_first_pages(search, dirty_passages, parts, corpus))
    entries: dict[str, dict[str, Any]] = {}
    for task in rows:
        numbers = [number for number, field in enumerate(search.fields) if field.task == task]
        entries[task] = {
            "methods": {
                method.name: _counts(
                    search, numbers, verdicts[method.name], limits[method.name], passages
                )
                for method in search.methods
            },
            "found": [
                _passage_entry(
                    search,
                    number,
                    dirty_passages[number],
                    rows[task],
                    dirty[number],
                    in_rows[number],
                    first_pages[number],
                )
                for number in numbers
                if number in dirty_passages
            ],
        }
    return entries


def _counts(
    search: Search,
    numbers: Sequence[int],
    verdicts: Sequence[Verdict],
    limits: Mapping[tuple[str, str], float],
    passages: Passages,
) -> dict[str, Any]:
    """Return the verdicts of a method on the rows and the fields of a task."""
    of_row: dict[int, list[Verdict]] = {}
    of_field: dict[str, dict[int, Verdict]] = {}
    roles, rows_with_answer = {}, set()
    for number in numbers:
        field = search.fields[number]
        of_field.setdefault(field.name, {})[field.row] = verdicts[number]
        roles[field.name] = field.role
        of_row.setdefault(field.row, [])
        if field.role == "input":
            of_row[field.row].append(verdicts[number])
        if passages.get(number, NOTHING).pages_with_answer:
            rows_with_answer.add(field.row)
    rows = {row: verdict_of_row(values) for row, values in of_row.items()}
    return {
        "rows": counts_of(rows),
        "fields": {
            name: {
                "role": roles[name],
                "threshold": _finite(limits[search.fields[numbers[0]].task, name]),
                **counts_of(values),
            }
            for name, values in of_field.items()
        },
        "dirty": [row for row, verdict in rows.items() if verdict == "dirty"],
        "unchecked": [row for row, verdict in rows.items() if verdict == "unchecked"],
        "with_answer": sorted(rows_with_answer),
    }


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None


def _passage_entry(
    search: Search,
    number: int,
    passages: FieldPassages,
    rows: Rows,
    methods: Sequence[str],
    in_row: str,
    first_page: Mapping[str, Any],
) -> dict[str, Any]:
    field = search.fields[number]
    return {
        "row": field.row,
        "idx": rows[field.row]["idx"],
        "field": field.name,
        "role": field.role,
        "unit": search.unit,
        "length": passages.longest,
        "of": len(search.units[number]),
        "pages": passages.pages,
        "pages_with_answer": passages.pages_with_answer,
        "methods": list(methods),
        "in_row": in_row,
        **first_page,
    }


def _in_rows(search: Search, dirty_passages: Passages) -> dict[int, str]:
    """Return field -> its passage, as the row has it."""
    vocabulary = Vocabulary.load(search.vocabulary) if search.vocabulary else None
    texts = {}
    for number, passages in dirty_passages.items():
        start, length = passages.place.start, passages.longest
        if vocabulary is None:
            texts[number] = excerpt(search.fields[number].text, start, length, AROUND)
        else:
            texts[number] = vocabulary.decode(search.units[number][start : start + length].tolist())
    return texts


def _first_pages(
    search: Search, dirty_passages: Passages, parts: Sequence[Part], corpus: Corpus
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield field -> file and row of its first page, its URL, and the passage there."""
    by_part: dict[int, dict[int, list[int]]] = {}
    for number, passages in dirty_passages.items():
        position = passages.place
        by_part.setdefault(position.part, {}).setdefault(position.document, []).append(number)
    for part_number, documents in sorted(by_part.items()):
        part = parts[part_number]
        if part.ids:
            yield from _first_pages_in_ids(part, documents, dirty_passages, corpus)
            continue
        for row, (name, text) in enumerate(named_texts(part)):
            for number in documents.get(row, ()):
                passages = dirty_passages[number]
                unit = passages.place.unit
                yield (
                    number,
                    {
                        "file": part.path.as_posix(),
                        "document": row,
                        "name": name,
                        "in_page": excerpt(text, unit, passages.longest, AROUND),
                    },
                )


def _first_pages_in_ids(
    part: Part, documents: Mapping[int, Sequence[int]], dirty_passages: Passages, corpus: Corpus
) -> Iterator[tuple[int, dict[str, Any]]]:
    vocabulary = Vocabulary.load(corpus.vocabulary)
    ids = read_ids(part.path, part.ids)
    offsets = read_offsets(part.path.with_suffix(".offsets"))
    for document, numbers in documents.items():
        for number in numbers:
            passages = dirty_passages[number]
            first = int(offsets[document]) + passages.place.unit
            begin = max(int(offsets[document]), first - AROUND_IDS)
            end = min(int(offsets[document + 1]), first + passages.longest + AROUND_IDS)
            yield (
                number,
                {
                    "file": part.path.as_posix(),
                    "document": document,
                    "name": "",
                    "in_page": vocabulary.decode(ids[begin:end].tolist()),
                },
            )
