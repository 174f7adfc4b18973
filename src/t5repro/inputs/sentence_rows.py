"""From the number of a step to its rows of sentences, before masking.

Two readers, one for each layout of `sentence_layout`; ELECTRA's is in `electra_segments`. The chunk
of a row is fixed; the split into two segments and the text of another document are drawn for each
epoch, or for each of `masked_lm.copies`. BERT returns a replaced second segment to its stream of
sentences; here it is not read in this epoch.

Source: BERT and ALBERT, ``create_instances_from_document``; RoBERTa, section 4.2.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from t5repro.array_types import Array, Int32, Int64, Mask
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.inputs.batches import counted, gather_pieces
from t5repro.inputs.row_index import DocumentParts, document_parts, row_numbers
from t5repro.inputs.row_order import shuffled_rows
from t5repro.inputs.sentence_layout import PAIR_SPECIALS, PairRows, RunRows, SentenceTable
from t5repro.objectives.masks import first_positions
from t5repro.objectives.row_draws import Draw, RowDraws
from t5repro.vocab.special_ids import PAD_ID
from t5repro.vocab.special_pieces import special_id


class SentenceIds(NamedTuple):
    """The corpus as ids and sentences.

    Attributes:
        ids: of all documents, ``(ids,)``.
        sentences: start and end of each sentence.
        total_ids: pieces and sentinels of the vocabulary.
    """

    ids: Array
    sentences: SentenceTable
    total_ids: int

    def special(self, piece: str) -> int:
        """Return the id of a special piece."""
        return special_id(piece, self.total_ids)


class TokenRows(NamedTuple):
    """Rows of a step before masking.

    Attributes:
        ids: with special pieces, 0 after the end, int32 ``(rows, inputs_length)``.
        lengths: ids of each row, int32 ``(rows,)``.
        types: 1 for the second segment and its `[SEP]`, int32 ``(rows, inputs_length)``.
        pair_label: of the pair task, int32 ``(rows,)``; 0 without one.
        is_random_next: whether the second segment is from another document, ``(rows,)``.
        draws: the random numbers of the rows.
        starts: start of each piece in the file of ids, int64 ``(pieces,)``.
        piece_lengths: its ids, int64 ``(pieces,)``.
        piece_rows: its row, int64 ``(pieces,)``.
    """

    ids: Int32
    lengths: Int32
    types: Int32
    pair_label: Int32
    is_random_next: Mask
    draws: RowDraws
    starts: Int64
    piece_lengths: Int64
    piece_rows: Int64


SentenceReader = Callable[[int], TokenRows]

# Task on pairs -> share of the split chunks whose B is of another document.
RANDOM_SHARES = {"next_sentence": 1 / 2, "sentence_order": 0.0, "sentence_structure": 1 / 3}


def numbered_rows(
    settings: PretrainSettings, rows: int, seed: int, step: int
) -> tuple[Int64, RowDraws]:
    """Return the rows of the layout in a step, and their random numbers."""
    copies = settings.masked_lm.copies
    row, epoch = shuffled_rows(row_numbers(step, settings.batch_size), rows, seed)
    return row, RowDraws(seed, row, epoch % copies if copies else epoch)


class Segments(NamedTuple):
    """A segment of each row.

    Attributes:
        begin: its start in the file of ids, int64 ``(rows,)``.
        stop: its end.
    """

    begin: Int64
    stop: Int64

    @property
    def lengths(self) -> Int64:
        """Ids of each segment."""
        return self.stop - self.begin

    def where(self, condition: Mask, alternative: "Segments") -> "Segments":
        """Return these segments at the rows of the condition, the alternative elsewhere."""
        return Segments(
            np.where(condition, self.begin, alternative.begin),
            np.where(condition, self.stop, alternative.stop),
        )


def pair_reader(
    layout: PairRows, corpus: SentenceIds, settings: PretrainSettings, seed: int
) -> SentenceReader:
    """Return the function from a step to rows ``[CLS] A [SEP] B [SEP]``.

    A chunk of one sentence has a B from another document, and without a pair task none.

    Args:
        layout: chunks of sentences.
        corpus: ids and sentences.
        settings: of pre-training.
        seed: the run's seed.
    """
    task, classes = settings.masked_lm.pair_task, settings.masked_lm.pair_classes
    start_of = corpus.sentences.start_of
    other_segments = _other_document_reader(layout, corpus)

    def read(step: int) -> TokenRows:
        row, draws = numbered_rows(settings, layout.rows, seed, step)
        first, count = layout.firsts[row], layout.counts[row].astype(np.int64)
        # 1. Split the chunk between two of its sentences; a chunk of one sentence is all A.
        split = first + np.minimum(1 + draws.below(Draw.SPLIT, count - 1), count)
        middle = start_of(split)
        first_segment = Segments(start_of(first), middle)
        second_segment = Segments(middle, start_of(first + count))
        is_single, chance = count == 1, draws.uniform(Draw.PAIR, 1)[:, 0]
        is_random_next = is_swapped = np.zeros_like(is_single)
        # 2. Text of another document as B: for half of the rows under next-sentence prediction
        #    (BERT), for a third under sentence structure (StructBERT), and under all pair tasks for
        #    chunks that cannot be split.
        if task != "none":
            is_random_next = is_single | (chance < RANDOM_SHARES[task])
            length = np.maximum(layout.targets[row] - first_segment.lengths, 1)
            second_segment = other_segments(first, length, draws).where(
                is_random_next, second_segment
            )
        # 3. Half of the other split chunks are swapped under sentence order (ALBERT) and sentence
        #    structure: the second segment precedes the first.
        if task in ("sentence_order", "sentence_structure"):
            is_swapped = ~is_random_next & (chance < (1 + RANDOM_SHARES[task]) / 2)
            first_segment, second_segment = (
                second_segment.where(is_swapped, first_segment),
                first_segment.where(is_swapped, second_segment),
            )
        # 4. Truncate and join.
        first_segment, second_segment = truncate_pair(
            first_segment, second_segment, settings.inputs_length - PAIR_SPECIALS, draws
        )
        ids, lengths, types = _pair_ids(
            first_segment, second_segment, corpus, settings.inputs_length
        )
        return TokenRows(
            ids=ids,
            lengths=lengths,
            types=types,
            pair_label=pair_labels(is_random_next, is_swapped, classes),
            is_random_next=is_random_next,
            draws=draws,
            starts=np.stack([first_segment.begin, second_segment.begin], axis=1).ravel(),
            piece_lengths=np.stack([first_segment.lengths, second_segment.lengths], axis=1).ravel(),
            piece_rows=np.repeat(np.arange(settings.batch_size), 2),
        )

    return read


def pair_labels(is_random_next: Mask, is_swapped: Mask, classes: int) -> Int32:
    """Return the class of each pair: 0 if B follows A, 1 if it does not, int32 ``(rows,)``.

    Of three classes, 1 means that B precedes A, and 2 that it is of another document.

    Args:
        is_random_next: whether B is of another document, ``(rows,)``.
        is_swapped: whether B precedes A, ``(rows,)``.
        classes: of the pair task.
    """
    return np.where(is_random_next, classes - 1, is_swapped).astype(np.int32)


def _other_document_reader(
    layout: PairRows, corpus: SentenceIds
) -> Callable[[Int64, Int64, RowDraws], Segments]:
    """Return the function that draws text of another document from a random sentence on."""
    firsts, lasts = layout.documents
    sentences = corpus.sentences

    def read(first: Int64, length: Int64, draws: RowDraws) -> Segments:
        own_document = np.searchsorted(firsts, first, side="right") - 1
        document = draws.below(Draw.OTHER_DOCUMENT, np.full(len(first), len(firsts) - 1))
        document += document >= own_document  # skip the row's own document
        low, high = firsts[document], lasts[document]
        begin = sentences.start_of(low + draws.below(Draw.OTHER_SENTENCE, high - low))
        # Sentences until the length is reached, or the document ends.
        last = np.searchsorted(sentences.starts, begin + length)
        return Segments(begin, sentences.start_of(np.minimum(last, high)))

    return read


def truncate_pair(
    first_segment: Segments, second_segment: Segments, max_ids: int, draws: RowDraws
) -> tuple[Segments, Segments]:
    """Shorten pairs to `max_ids` ids, as if one id after another left the longer segment.

    Each leaves at the front or the back by a coin. The final lengths do not depend on the coins,
    so only their number of heads is drawn.

    Args:
        first_segment: first segment of each row.
        second_segment: second segment; of equally long ones it is shortened first.
        max_ids: ids of both together.
        draws: random numbers of the rows.

    Source: BERT, ``truncate_seq_pair``.
    """
    # A loop would remove the last id of the longer one; it ends at these lengths.
    first_length = np.minimum(
        first_segment.lengths, np.maximum(max_ids - second_segment.lengths, (max_ids + 1) // 2)
    )
    second_length = np.minimum(second_segment.lengths, max_ids - first_length)

    def shorten(segments: Segments, length: Int64, use: Draw) -> Segments:
        begin = segments.begin + draws.heads(use, segments.lengths - length)
        return Segments(begin, begin + length)

    return (
        shorten(first_segment, first_length, Draw.FRONT_OF_FIRST),
        shorten(second_segment, second_length, Draw.FRONT_OF_SECOND),
    )


def _pair_ids(
    first_segment: Segments, second_segment: Segments, corpus: SentenceIds, width: int
) -> tuple[Int32, Int32, Int32]:
    """Return ids ``[CLS] A [SEP] B [SEP]``, lengths and types; without B, one `[SEP]`."""
    position = np.arange(width)
    first_end = first_segment.lengths[:, np.newaxis] + 1  # position of the first [SEP]
    second_length = second_segment.lengths[:, np.newaxis]
    second_end = first_end + np.where(second_length > 0, second_length + 1, 0)
    source = np.where(
        position < first_end,
        first_segment.begin[:, np.newaxis] + position - 1,
        second_segment.begin[:, np.newaxis] + position - first_end - 1,
    )
    # Positions of special pieces and padding read any id, which is then overwritten.
    ids = corpus.ids[np.clip(source, 0, len(corpus.ids) - 1)].astype(np.int32)
    ids[(position == first_end) | (position == second_end)] = corpus.special("[SEP]")
    ids[:, 0] = corpus.special("[CLS]")
    ids[position > second_end] = PAD_ID
    types = ((position > first_end) & (position <= second_end)).astype(np.int32)
    return ids, (second_end[:, 0] + 1).astype(np.int32), types


def run_reader(
    layout: RunRows, corpus: SentenceIds, settings: PretrainSettings, seed: int
) -> SentenceReader:
    """Return the function from a step to rows ``[CLS] text [SEP]``.

    A row across documents has a `[SEP]` after its part of each.

    Args:
        layout: runs of sentences.
        corpus: ids and sentences.
        settings: of pre-training.
        seed: the run's seed.
    """
    batch_size, width = settings.batch_size, settings.inputs_length

    def read(step: int) -> TokenRows:
        row, draws = numbered_rows(settings, layout.rows, seed, step)
        first, stop = layout.begins[row], layout.begins[row] + layout.lengths[row]
        parts = document_parts(first, stop, starts=layout.starts, end_offsets=layout.end_offsets)
        ids = np.full((batch_size, width), PAD_ID, np.int32)
        lengths = 1 + stop - first + np.bincount(parts.ranges, minlength=batch_size)
        filled = first_positions(lengths, width)
        filled[:, 0] = False
        ids[filled] = _closed_parts(parts, corpus)
        ids[:, 0] = corpus.special("[CLS]")
        return TokenRows(
            ids=ids,
            lengths=lengths.astype(np.int32),
            types=np.zeros_like(ids),
            pair_label=np.zeros(batch_size, np.int32),
            is_random_next=np.zeros(batch_size, bool),
            draws=draws,
            starts=parts.starts,
            piece_lengths=parts.lengths,
            piece_rows=parts.ranges,
        )

    return read


def _closed_parts(parts: DocumentParts, corpus: SentenceIds) -> Int32:
    """Return the ids of all parts, one after another, each with a `[SEP]` after it."""
    lengths = parts.lengths + 1
    ids = np.full(lengths.sum(), corpus.special("[SEP]"), np.int32)
    is_text = counted(lengths) < np.repeat(parts.lengths, lengths)
    ids[is_text] = gather_pieces(corpus.ids, parts.starts, parts.lengths)
    return ids
