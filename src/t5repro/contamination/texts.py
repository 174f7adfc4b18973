"""The documents that are searched, as arrays of numbers: words of texts, or ids of a corpus.

A word is a maximal run of letters and digits, in lower case after Unicode's NFKC. Words that no
evaluated row has get the number 0, so the numbers need memory for the evaluated rows only, and
equal numbers are equal words. A part of a corpus is read in batches of whole documents.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np

from t5repro.array_types import Array, Int64
from t5repro.files import read_json_lines
from t5repro.vocab.corpus import read_pages
from t5repro.vocab.token_files import read_ids, read_offsets

WORD = re.compile(r"[^\W_]+")
UNKNOWN = 0
BATCH_UNITS = 1 << 20
IDS_OF_PART = 1 << 27


def words_of(text: str) -> list[str]:
    """Return the words of a text: ``["don", "t", "café"]`` of ``"Don't, CAFÉ"``."""
    return WORD.findall(unicodedata.normalize("NFKC", text).lower())


def number_words(texts: Iterable[str]) -> dict[str, int]:
    """Return word -> its number from 1, of the words of texts."""
    distinct_words = dict.fromkeys(word for text in texts for word in words_of(text))
    return {word: number for number, word in enumerate(distinct_words, 1)}


def numbers_of(text: str, numbers: Mapping[str, int]) -> Array:
    """Return the words of a text as numbers, `UNKNOWN` if they have none, ``(words,)``."""
    text_words = words_of(text)
    return np.fromiter(map(numbers.get, text_words, repeat(UNKNOWN)), np.uint32, len(text_words))


@dataclass(frozen=True)
class Part:
    """A part of the documents: the input of one task of a search.

    Attributes:
        path: Parquet file of the corpus, file of examples, or file of ids.
        task: task of the examples, whose own rows are not compared with them; empty for a corpus.
        ids: ids of the vocabulary, for a file of ids; 0 for texts.
        first: number of its first document, for a file of ids.
        end: number after its last document, for a file of ids.
    """

    path: Path
    task: str = ""
    ids: int = 0
    first: int = 0
    end: int = 0


class Documents(NamedTuple):
    """Some documents.

    Attributes:
        numbers: of the documents in their file, ``(documents,)``.
        units: words or ids of all, one after another.
        starts: first unit of each document, and the end, ``(documents + 1,)``.
    """

    numbers: Int64
    units: Array
    starts: Int64


Number = Callable[[str], Array]


def parts_of_ids(path: Path, total_ids: int) -> list[Part]:
    """Return the parts of a file of ids, of about `IDS_OF_PART` ids each."""
    offsets = read_offsets(path.with_suffix(".offsets"))
    ends = np.searchsorted(offsets, np.arange(IDS_OF_PART, offsets[-1], IDS_OF_PART))
    bounds = np.unique([0, *ends, len(offsets) - 1]).tolist()
    return [Part(path, ids=total_ids, first=first, end=end) for first, end in pairwise(bounds)]


def documents_of(part: Part, number: Number, batch_units: int = BATCH_UNITS) -> Iterator[Documents]:
    """Yield the documents of a part, at least `batch_units` units at a time.

    Args:
        part: the part.
        number: makes numbers of a text.
        batch_units: units of a batch; one is as long as its last document makes it.
    """
    if part.ids:
        yield from _documents_of_ids(part, batch_units)
        return
    batch: list[Array] = []
    first = size = 0
    for text in texts_of(part):
        batch.append(number(text))
        size += len(batch[-1])
        if size >= batch_units:
            yield _joined(first, batch)
            first, size, batch = first + len(batch), 0, []
    if batch:
        yield _joined(first, batch)


def texts_of(part: Part) -> Iterator[str]:
    """Yield the texts of the documents of a part."""
    return (text for _, text in named_texts(part))


def named_texts(part: Part) -> Iterator[tuple[str, str]]:
    """Yield URL and text of pages, or idx and text of examples: inputs and targets.

    Raises:
        ArtifactError: the file cannot be read.
    """
    if part.task:
        for row in read_json_lines(part.path):
            yield str(row["idx"]), f"{row['inputs']} {row['targets']}"
        return
    for pages in read_pages(part.path):
        yield from pages


def _joined(first: int, batch: list[Array]) -> Documents:
    starts = np.cumsum([0, *map(len, batch)])
    return Documents(np.arange(first, first + len(batch)), np.concatenate(batch), starts)


def _documents_of_ids(part: Part, batch_units: int) -> Iterator[Documents]:
    ids = read_ids(part.path, part.ids)
    offsets = read_offsets(part.path.with_suffix(".offsets"))
    first = part.first
    while first < part.end:
        end = int(np.searchsorted(offsets, offsets[first] + batch_units))
        end = min(max(end, first + 1), part.end)
        units = np.asarray(ids[offsets[first] : offsets[end]])
        yield Documents(np.arange(first, end), units, offsets[first : end + 1] - offsets[first])
        first = end


def excerpt(text: str, first: int, count: int, around: int) -> str:
    """Return some words of a text as it writes them, with characters on both sides."""
    normal = unicodedata.normalize("NFKC", text)
    spans = [match.span() for match in WORD.finditer(normal.lower())]
    # Lower case changes the length of a few letters, such as İ; the excerpt may then be shifted.
    begin, end = spans[first][0], spans[first + count - 1][1]
    return normal[max(0, begin - around) : end + around]
