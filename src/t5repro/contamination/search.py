"""Search the fields of evaluated rows in a corpus, in this process or in several.

Memory is that of the evaluated rows, their n-grams and their passages, and one batch of documents:
about 60 bytes for each word of an evaluated field, and 100 MB for a batch, by calculation. It does
not grow with the corpus. A result is the same for any number of processes.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from t5repro.array_types import Array
from t5repro.contamination.methods import FEWEST_WORDS, Method, Unit
from t5repro.contamination.ngrams import NgramIndex
from t5repro.contamination.passages import Measuring, Passages, merge
from t5repro.contamination.rows import Field
from t5repro.contamination.texts import BATCH_UNITS, Part, documents_of, number_words, numbers_of
from t5repro.vocab.vocabulary import Vocabulary

NEVER = 1 << 30  # no field is compared as a whole


@dataclass(frozen=True)
class Search:
    """The fields to search, and how; it can be sent to another process.

    Attributes:
        fields: fields of all evaluated rows.
        methods: methods of one unit.
        vocabulary: SentencePiece model, for a search of ids.
        batch_units: units of a batch of documents.
    """

    fields: Sequence[Field]
    methods: Sequence[Method]
    vocabulary: Path | None = None
    batch_units: int = BATCH_UNITS

    @property
    def unit(self) -> Unit:
        """Words or ids."""
        return self.methods[0].unit

    @cached_property
    def _word_numbers(self) -> dict[str, int]:
        return number_words(field.text for field in self.fields)

    def _numbers(self, text: str) -> Array:
        return numbers_of(text, self._word_numbers)

    @cached_property
    def units(self) -> list[Array]:
        """Units of each field."""
        texts = [field.text for field in self.fields]
        if self.vocabulary is None:
            return [self._numbers(text) for text in texts]
        encoded = Vocabulary.load(self.vocabulary).encode_batch(texts)
        return [np.array(ids, np.uint32) for ids in encoded]

    @cached_property
    def _measuring(self) -> Measuring:
        answers = {
            (field.task, field.row): units
            for field, units in zip(self.fields, self.units, strict=True)
            if field.role == "answer"
        }
        index = NgramIndex(
            self.units,
            min(method.seed for method in self.methods),
            shortest=FEWEST_WORDS if self.unit == "words" else NEVER,
        )
        return Measuring(
            index,
            {
                number: answers[field.task, field.row]
                for number, field in enumerate(self.fields)
                if field.role == "input" and (field.task, field.row) in answers
            },
            [field.task for field in self.fields],
            is_aligned=any(method.measure == "aligned_share" for method in self.methods),
            is_covered=any(method.measure == "covered_share" for method in self.methods),
        )

    def in_part(self, part: Part, number: int) -> tuple[Passages, int]:
        """Return the passages of the fields in a part, and its units.

        Args:
            part: the part.
            number: its number among the parts of the corpus.
        """
        total: Passages = {}
        units = 0
        for documents in documents_of(part, self._numbers, self.batch_units):
            units += len(documents.units)
            merge(total, self._measuring.passages_in(documents, number, part.task))
        return total, units


def search_parts(search: Search, parts: Sequence[Part], processes: int = 1) -> tuple[Passages, int]:
    """Return the passages of the fields in a corpus, and the units of the corpus.

    Args:
        search: the search.
        parts: parts of the corpus.
        processes: processes that share them.
    """
    if processes == 1 or len(parts) < 2:
        return merged(search.in_part(part, number) for number, part in enumerate(parts))
    # A process that was forked from one with threads may stop for ever.
    with ProcessPoolExecutor(min(processes, len(parts)), get_context("spawn")) as pool:
        results = pool.map(search.in_part, parts, range(len(parts)))
        return merged(results)


def merged(results: Iterable[tuple[Passages, int]]) -> tuple[Passages, int]:
    """Return the passages and the units of all parts."""
    total: Passages = {}
    units = 0
    for passages, count in results:
        merge(total, passages)
        units += count
    return total, units
