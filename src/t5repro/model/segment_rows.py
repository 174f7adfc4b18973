"""Rows that an encoder only reads: ``[CLS]``, a segment, ``[SEP]``, perhaps a second one (BERT)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from t5repro.errors import ArtifactError
from t5repro.vocab.special_pieces import special_id
from t5repro.vocab.vocabulary import Vocabulary

SEGMENTS = "segments"  # key of the rows of a task, see `tasks.segments`


class SegmentRow(NamedTuple):
    """One row.

    Attributes:
        ids: all ids.
        first_length: ids of type 0: up to the last separator before the second segment.
        cut: whether ids of a segment were cut off.
    """

    ids: list[int]
    first_length: int
    cut: bool


class SegmentEncoder:
    """Writes the segments of tasks as rows of ids.

    Args:
        vocabulary: the vocabulary of the run.
        separators: separators between two segments, `model.pair_separators`.
        length: most ids of a row.
    """

    def __init__(self, vocabulary: Vocabulary, *, separators: int, length: int) -> None:
        self._vocabulary = vocabulary
        self._start = special_id("[CLS]", vocabulary.total_ids)
        self._separator = special_id("[SEP]", vocabulary.total_ids)
        self._separators = separators
        self._length = length

    def rows(self, rows: Sequence[Sequence[str]]) -> list[SegmentRow]:
        """Return the ids of rows.

        Args:
            rows: one or more texts each; the second segment has all but the first.
        """
        firsts = self._vocabulary.encode_batch([row[0] for row in rows])
        seconds = self._vocabulary.encode_batch([" ".join(row[1:]) for row in rows])
        return [
            self._row(first, second if len(row) > 1 else None)
            for row, first, second in zip(rows, firsts, seconds, strict=True)
        ]

    def _row(self, first: list[int], second: list[int] | None) -> SegmentRow:
        end = [self._separator]
        if second is None:
            room = self._length - 2
            ids = [self._start, *first[:room], *end]
            return SegmentRow(ids, len(ids), len(first) > room)
        room = self._length - 2 - self._separators
        kept, kept_second = cut_pair(len(first), len(second), room)
        start = [self._start, *first[:kept], *end * self._separators]
        ids = [*start, *second[:kept_second], *end]
        return SegmentRow(ids, len(start), kept + kept_second < len(first) + len(second))


def cut_pair(first: int, second: int, room: int) -> tuple[int, int]:
    """Return the lengths of two segments after ids were cut off the longer one, one by one.

    Source: BERT ``run_classifier._truncate_seq_pair``: of two equal ones the second is cut.
    """
    half = room - room // 2
    if first + second <= room:
        return first, second
    if first <= half:
        return first, room - first
    if second <= room - half:
        return room - second, second
    return half, room - half


def segments_in(row: Mapping[str, Any], path: Path, number: int) -> tuple[str, ...]:
    """Return the segments of a row of a task's file.

    Args:
        row: the row.
        path: the file, for errors.
        number: number of the line.

    Raises:
        ArtifactError: it has none.
    """
    segments = row.get(SEGMENTS) or []
    if not segments or not all(isinstance(text, str) for text in segments):
        raise ArtifactError(
            f"{path} line {number} lacks {SEGMENTS}, which model.architecture encoder reads; set "
            "tasks.segments to true and rerun the rule tasks"
        )
    return tuple(segments)
