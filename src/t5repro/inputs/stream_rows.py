"""The text of XLNet's rows: row slots that go on from step to step, and two segments.

A pass over the corpus is one stream: all documents in a random order, each followed by ``<eod>``.
Each row slot has an equal part of it. In a step a slot continues its part, and two segments follow:
the next sentences, and either the sentences after them or others of the same slot. With both
directions every second slot has the part of the one before it, read backwards. Everything is a
function of the step; a pass ends when a slot cannot fill its row.

Source: XLNet ``batchify``, ``create_tfrecords`` and ``_split_a_and_b`` of ``data_utils``.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from t5repro.array_types import Int32, Int64, Mask
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.errors import CorpusError
from t5repro.inputs.row_order import shuffled_rows
from t5repro.inputs.sentence_layout import SentenceDocuments, SentenceTable
from t5repro.inputs.sentence_rows import SentenceIds
from t5repro.model.segment_rows import SUMMARY_TYPE
from t5repro.objectives.row_draws import Draw, RowDraws

SPECIALS = 3  # [SEP], [SEP] and [CLS]
NOT_TEXT = -1  # position in the file of ids of a special piece


class StreamRows(NamedTuple):
    """Rows of a step before the prediction is drawn.

    Attributes:
        ids: int32 ``(rows, inputs_length)``.
        types: 0 up to the first `[SEP]`, 1 up to the second, 2 of `[CLS]`.
        separators: positions of these three, bool ``(rows, inputs_length)``.
        backwards: rows that read their text backwards, bool ``(rows,)``.
        follows: rows whose second segment follows the first, bool ``(rows,)``.
        places: position in the file of ids, `NOT_TEXT` of special pieces, int64.
        draws: random numbers of the rows.
    """

    ids: Int32
    types: Int32
    separators: Mask
    backwards: Mask
    follows: Mask
    places: Int64
    draws: RowDraws


@dataclass(frozen=True)
class StreamPass:
    """The stream of a pass.

    Attributes:
        table: sentences of the file of ids.
        files: start of each document in the file of ids, in the order of the stream.
        begins: start of each document in the stream, and its end.
        firsts: index of the first sentence of each document.
        counts: sentences before each document in the stream, and all.
    """

    table: SentenceTable
    files: Int64
    begins: Int64
    firsts: Int64
    counts: Int64

    @classmethod
    def of(
        cls, table: SentenceTable, documents: SentenceDocuments, number: int, seed: int
    ) -> "StreamPass":
        """Return the stream of a pass by its number."""
        count = len(documents.firsts)
        numbers = np.arange(count, dtype=np.int64) + number * count
        order, _ = shuffled_rows(numbers, count, seed)
        firsts, lasts = documents.firsts[order], documents.lasts[order]
        files = table.start_of(firsts)
        lengths = table.start_of(lasts) - files + 1  # with <eod>
        return cls(
            table,
            files,
            np.append(0, np.cumsum(lengths)),
            firsts,
            np.append(0, np.cumsum(lasts - firsts)),
        )

    def sentences_until(self, positions: Int64) -> Int64:
        """Return how many sentences begin at positions of the stream or before them."""
        document = self._document(positions)
        offset = positions - self.begins[document]
        sentence = np.searchsorted(self.table.starts, self.files[document] + offset, side="right")
        # <eod> belongs to the last sentence, not to the document that follows in the file.
        return np.minimum(
            self.counts[document] + sentence - self.firsts[document], self.counts[document + 1]
        )

    def sentence_starts(self, sentences: Int64) -> Int64:
        """Return the positions at which sentences begin, by their number in the stream."""
        sentences = np.clip(sentences, 0, self.counts[-1] - 1)
        document = np.searchsorted(self.counts, sentences, side="right") - 1
        index = self.firsts[document] + sentences - self.counts[document]
        return self.begins[document] + self.table.start_of(index) - self.files[document]

    def places(self, positions: Int64) -> Int64:
        """Return positions in the file of ids; `NOT_TEXT` of ``<eod>``."""
        document = self._document(positions)
        is_last = positions == self.begins[document + 1] - 1
        return np.where(is_last, NOT_TEXT, self.files[document] + positions - self.begins[document])

    def _document(self, positions: Int64) -> Int64:
        return np.searchsorted(self.begins, positions, side="right") - 1


@dataclass(frozen=True)
class Slots:
    """The parts of a stream that row slots read, in the time of each slot.

    A slot that reads backwards sees the last token of its part first, and its sentences begin where
    sentences of the text end.

    Attributes:
        stream: of the pass.
        length: tokens of each part.
        starts: start of the part of each slot in the stream, int64 ``(slots,)``.
        backwards: slots that read backwards, bool ``(slots,)``.
    """

    stream: StreamPass
    length: int
    starts: Int64
    backwards: Mask

    def cuts_until(self, times: Int64) -> Int64:
        """Return the number of cuts between sentences before or at a time of each slot.

        Cuts have numbers in the time of the slot, from the start or the end of the stream.
        """
        forwards = self.stream.sentences_until(self.starts + times)
        before = self.starts + self.length - times - 1
        total = self.stream.counts[-1]
        # Before the stream there is no sentence.
        earlier = np.where(before < 0, 0, self.stream.sentences_until(np.maximum(before, 0)))
        return np.where(self.backwards, total - earlier, forwards)

    def times_of_cuts(self, numbers: Int64) -> Int64:
        """Return the times of cuts; outside of the part, times below 0 or beyond its length."""
        total = self.stream.counts[-1]
        forwards = self.stream.sentence_starts(numbers) - self.starts
        starts = self.stream.sentence_starts(total - 1 - numbers)
        backwards = self.starts + self.length - starts
        times = np.where(self.backwards, backwards, forwards)
        times = np.where(numbers < total, times, self.length)
        return np.where(numbers < 0, -1, times)

    def positions(self, times: Int64) -> Int64:
        """Return positions in the stream of times ``(slots, times)`` of each slot."""
        starts, backwards = self.starts[:, np.newaxis], self.backwards[:, np.newaxis]
        return starts + np.where(backwards, self.length - 1 - times, times)


class SlotReader:
    """The function from a step to its rows.

    Args:
        settings: of pre-training.
        corpus: ids and sentences.
        documents: used sentences of each document.
        seed: the run's seed.

    Raises:
        CorpusError: the corpus does not fill one row of each slot.
    """

    def __init__(
        self,
        settings: PretrainSettings,
        corpus: SentenceIds,
        documents: SentenceDocuments,
        *,
        seed: int,
    ) -> None:
        self._settings = settings
        self._corpus = corpus
        self._documents = documents
        self._seed = seed
        self._reuse = settings.permutation_lm.reuse_length(settings.inputs_length)
        self._segments = settings.inputs_length - self._reuse - SPECIALS
        self.slots = lru_cache(maxsize=2)(self._slots)
        self._steps: list[int] = []  # of each pass so far
        if not self.steps_of_pass(0):
            raise CorpusError(
                f"a pass over the corpus has {int(self.slots(0).stream.begins[-1]):,} tokens, "
                f"which do not fill one row of {settings.inputs_length} tokens in each of "
                f"{settings.batch_size} row slots; give it more text, or lower "
                "pretrain.batch_size or pretrain.inputs_length"
            )

    def steps_of_pass(self, number: int) -> int:
        """Return the steps of a pass: as many as every slot can fill."""
        while len(self._steps) <= number:
            slots = self.slots(len(self._steps))
            ends = np.full(len(slots.starts), slots.length - 1, np.int64)
            last_cuts = slots.times_of_cuts(slots.cuts_until(ends) - 1)
            # The text of the segments ends at a cut at or beyond their length.
            steps = (last_cuts.min() - self._segments) // self._reuse
            self._steps.append(max(int(steps), 0))
        return self._steps[number]

    def passes(self, steps: int) -> float:
        """Return how often so many steps read the corpus."""
        number, step_of_pass = self._place(steps - 1)
        return number + (step_of_pass + 1) / self.steps_of_pass(number)

    def _slots(self, number: int) -> Slots:
        """Return the slots of a pass."""
        stream = StreamPass.of(self._corpus.sentences, self._documents, number, self._seed)
        rows = self._settings.batch_size
        directions = 2 if self._settings.permutation_lm.both_directions else 1
        part = np.arange(rows, dtype=np.int64) // directions
        length = int(stream.begins[-1]) // (rows // directions)
        return Slots(stream, length, part * length, np.arange(rows) % directions == 1)

    def _place(self, step: int) -> tuple[int, int]:
        """Return the pass of a step and its number there."""
        number = 0
        while step >= (steps := self.steps_of_pass(number)):
            step, number = step - steps, number + 1
        return number, step

    def __call__(self, step: int) -> StreamRows:
        """Return the rows of a step."""
        number, step_of_pass = self._place(step)
        slots = self.slots(number)
        rows = len(slots.starts)
        draws = RowDraws(self._seed, np.arange(rows, dtype=np.int64), np.full(rows, step))
        begin = np.full(rows, step_of_pass * self._reuse, np.int64)
        # 1. The times of the reused text and of both segments, in the order of the row.
        a, b, follows = self._split(slots, begin + self._reuse, draws)
        column = np.arange(self._settings.inputs_length - SPECIALS)
        a_end = self._reuse + (a[1] - a[0])[:, np.newaxis]
        times = np.where(
            column < a_end, begin[:, np.newaxis] + column, b[0][:, np.newaxis] + column - a_end
        )
        # 2. Their ids; special pieces have no place in the file.
        text = slots.stream.places(slots.positions(times))
        ids = np.where(
            text == NOT_TEXT, self._corpus.special("<eod>"), self._corpus.ids[np.maximum(text, 0)]
        ).astype(np.int32)
        return self._with_separators(slots, ids, text, a_end, follows, draws)

    def _with_separators(
        self, slots: Slots, ids: Int32, text: Int64, a_end: Int64, follows: Mask, draws: RowDraws
    ) -> StreamRows:
        """Return the rows with a separator after each segment, and `[CLS]`."""
        width = self._settings.inputs_length
        place = np.arange(width)
        separators = (place == a_end) | (place >= width - 2)
        row_ids = np.full(separators.shape, self._corpus.special("[SEP]"), np.int32)
        row_ids[:, -1] = self._corpus.special("[CLS]")
        row_ids[~separators] = ids.ravel()
        places = np.full(separators.shape, NOT_TEXT, np.int64)
        places[~separators] = text.ravel()
        types = (place > a_end).astype(np.int32)
        types[:, -1] = SUMMARY_TYPE
        return StreamRows(row_ids, types, separators, slots.backwards, follows, places, draws)

    def _split(
        self, slots: Slots, begin: Int64, draws: RowDraws
    ) -> tuple[tuple[Int64, Int64], tuple[Int64, Int64], Mask]:
        """Return begin and end of both segments, and whether the second follows the first.

        Args:
            slots: of the pass.
            begin: time of the first segment.
            draws: random numbers of the rows.

        Source: XLNet ``_split_a_and_b``.
        """
        total = self._segments
        # 1. Sentences from `begin` to the first cut at or beyond the length of both segments.
        first = slots.cuts_until(begin)
        inner = slots.cuts_until(begin + total - 1) - first
        end = slots.times_of_cuts(first + inner)
        # 2. One of the cuts before ends the first segment; a single sentence has none.
        a_end = slots.times_of_cuts(first + draws.below(Draw.SPLIT, inner))
        a_end = np.where(inner > 0, a_end, end)
        follows = (inner > 0) & (draws.uniform(Draw.PAIR, 1)[:, 0] >= 0.5)
        # 3. The second one follows, or is at a random place, extended to whole sentences.
        length = np.maximum(1, total - (a_end - begin))
        b_begin = draws.below(Draw.OTHER_SENTENCE, slots.length - length)
        b_end = b_begin + length
        b_begin = np.maximum(slots.times_of_cuts(slots.cuts_until(b_begin) - 1), 0)
        b_end = np.minimum(slots.times_of_cuts(slots.cuts_until(b_end - 1)), slots.length - 1)
        b_begin, b_end = np.where(follows, a_end, b_begin), np.where(follows, end, b_end)
        # 4. The longer one is cut from the right, of equal ones the second.
        lengths = a_end - begin, b_end - b_begin
        half = total - total // 2
        a_length = np.minimum(lengths[0], np.maximum(half, total - lengths[1]))
        return ((begin, begin + a_length), (b_begin, b_begin + total - a_length), follows)


def pieces_of(places: Int64) -> tuple[Int64, Int64, Int64]:
    """Return start, length and row of each run of consecutive places in the file of ids.

    A run that is read backwards counts from its first token in the file.

    Args:
        places: of the tokens of rows, see `StreamRows`.
    """
    rows, width = places.shape
    flat = places.ravel()
    steps = np.diff(flat, prepend=NOT_TEXT)
    row = np.repeat(np.arange(rows), width)
    # A run goes on by the same step, of one token forwards or backwards, within its row.
    goes_on = (np.abs(steps) == 1) & (flat != NOT_TEXT) & (np.roll(flat, 1) != NOT_TEXT)
    goes_on &= row == np.roll(row, 1)
    turns = goes_on & np.roll(goes_on, 1) & (steps != np.roll(steps, 1))
    goes_on &= ~turns
    is_start = (flat != NOT_TEXT) & ~goes_on
    begins = np.flatnonzero(is_start)
    group = np.cumsum(is_start)[flat != NOT_TEXT] - 1
    lengths = np.bincount(group, minlength=len(begins)).astype(np.int64)
    lows = np.minimum(flat[begins], flat[begins + lengths - 1])
    return lows, lengths, row[begins].astype(np.int64)
