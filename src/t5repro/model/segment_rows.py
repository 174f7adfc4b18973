"""Rows of one or two segments of a task, for a network of labels.

BERT's is ``[CLS]``, a segment, ``[SEP]``, perhaps a second one and ``[SEP]``; XLNet's has ``[CLS]``
at its end; GPT's is ``_start_``, a segment, perhaps ``_delimiter_`` and a second one,
``_classify_``.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from t5repro.config.sections.model import ModelSettings
from t5repro.task_groups import SIMILARITY_TASKS
from t5repro.vocab.special_ids import UNK_ID
from t5repro.vocab.special_pieces import special_id
from t5repro.vocab.vocabulary import Vocabulary

SEGMENTS = "segments"  # key of the rows of a task, see `tasks.segments`
OPTIONS = "options"  # key of the possible answers
SUMMARY_TYPE, PADDING_TYPE = 2, 4  # of XLNet: the two segments have 0 and 1


class SegmentRow(NamedTuple):
    """One row.

    Attributes:
        ids: all ids.
        first_length: ids of type 0: up to the last separator before the second segment.
        cut: whether ids of a segment were cut off.
        swapped: the ids with the segments in reverse order, if the network reads both orders.
    """

    ids: list[int]
    first_length: int
    cut: bool
    swapped: tuple[int, ...] = ()


class SegmentEncoder:
    """Writes the segments of tasks as rows of ids.

    Args:
        vocabulary: the vocabulary of the run.
        model: shape of the network.
        length: most ids of a row.
    """

    def __init__(self, vocabulary: Vocabulary, *, model: ModelSettings, length: int) -> None:
        first_piece, separator, last_piece = model.family.row_pieces
        total_ids = vocabulary.total_ids
        self._vocabulary = vocabulary
        self._start = [special_id(first_piece, total_ids)]
        self._between = [special_id(separator, total_ids)] * model.pair_separators
        self._end = [special_id(last_piece, total_ids)]
        if model.family.ends_with_summary:
            self._start, self._end = [], [*self._end, *self._start]
        self._model = model
        self._length = length

    def rows(self, rows: Sequence[Sequence[str]], *, task: str = "") -> list[SegmentRow]:
        """Return the ids of rows.

        Args:
            rows: one or more texts each; the second segment has all but the first.
            task: name of the task. GPT reads tasks of similarity in both orders.
        """
        firsts = self._vocabulary.encode_batch([row[0] for row in rows])
        seconds = self._vocabulary.encode_batch([" ".join(row[1:]) for row in rows])
        swaps = orders_of(self._model, [task]) == 2
        return [
            self._pair(first, second, swaps=swaps) if len(row) > 1 else self._single(first)
            for row, first, second in zip(rows, firsts, seconds, strict=True)
        ]

    def word_rows(
        self, sentences: Sequence[Sequence[str]]
    ) -> tuple[list[SegmentRow], list[list[int]]]:
        """Return the ids of sentences, word by word, and the positions of the words' first pieces.

        A word that is not a piece is the unknown piece. A word that begins behind the end of the
        row has position 0.

        Args:
            sentences: words of each.

        Source: BERT, section 5.3: the first piece of a word stands for it.
        """
        words = list(dict.fromkeys(word for sentence in sentences for word in sentence))
        pieces = dict(zip(words, self._vocabulary.encode_batch(words), strict=True))
        rows, places = [], []
        for sentence in sentences:
            ids = [pieces[word] or [UNK_ID] for word in sentence]
            starts = np.cumsum([len(self._start), *map(len, ids)])[:-1].tolist()
            rows.append(self._single([number for word in ids for number in word]))
            last = len(rows[-1].ids) - 1
            places.append([start if start < last else 0 for start in starts])
        return rows, places

    def _single(self, text: list[int]) -> SegmentRow:
        room = self._length - 2
        ids = [*self._start, *text[:room], *self._end]
        return SegmentRow(ids, len(ids), len(text) > room)

    def _pair(self, first: list[int], second: list[int], *, swaps: bool) -> SegmentRow:
        room = self._length - 2 - len(self._between)
        lengths = cut_pair(len(first), len(second), room)
        cut = sum(lengths) < len(first) + len(second)
        first, second = first[: lengths[0]], second[: lengths[1]]
        prefix = [*self._start, *first, *self._between]
        swapped = [*self._start, *second, *self._between, *first, *self._end] if swaps else []
        return SegmentRow([*prefix, *second, *self._end], len(prefix), cut, tuple(swapped))


def orders_of(model: ModelSettings, tasks: Collection[str]) -> int:
    """Return in how many orders a network of labels reads the texts of the tasks."""
    return 2 if model.family.joined and not SIMILARITY_TASKS.isdisjoint(tasks) else 1


def padded_rows(name: str, rows: Sequence[Sequence[int]], length: int) -> dict[str, np.ndarray]:
    """Return ids and segments of rows, int32 ``(rows, length)``, 0 after the end of a row."""
    ids, segments = (np.zeros((len(rows), length), np.int32) for _ in range(2))
    for row, row_ids, row_segments in zip(rows, ids, segments, strict=True):
        row_ids[: len(row)] = row
        row_segments[: len(row)] = 1
    return {f"{name}_ids": ids, f"{name}_segments": segments}


def summary_types(firsts: np.ndarray, lengths: np.ndarray, width: int) -> np.ndarray:
    """Return the types of rows that end with `[CLS]` and are padded on the left, int32.

    Args:
        firsts: ids of each row before its second segment, ``(rows,)``.
        lengths: ids of each row, ``(rows,)``; 0 of a missing option.
        width: ids of a row with padding.

    Source: XLNet ``classifier_utils.convert_single_example``.
    """
    place = np.arange(width) - (width - np.asarray(lengths)[:, np.newaxis])
    types = (place >= np.asarray(firsts)[:, np.newaxis]).astype(np.int32)
    types[:, -1] = SUMMARY_TYPE
    types[place < 0] = PADDING_TYPE
    return types


def cut_pair(first: int, second: int, room: int) -> tuple[int, int]:
    """Return the lengths of two segments after ids were cut off the longer one, one by one.

    Source: BERT ``run_classifier._truncate_seq_pair``: of two equal ones the second is cut.
    """
    # BERT's loop ends at these lengths; the first segment has the larger half of an odd number.
    half = room - room // 2
    first = min(first, max(half, room - second))
    return first, min(second, room - first)
