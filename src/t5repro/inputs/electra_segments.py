"""From the number of a step to rows of one or two segments as ELECTRA divides them.

A row has whole sentences of one document until they fill it (`sentence_layout.pair_rows`). They go
to the first segment while it is shorter than about half a row, else to the second one: a short
sentence after a long one may still go to the first. Both are cut at their ends.

Source: ELECTRA ``build_pretraining_dataset.ExampleBuilder``.
"""

from typing import NamedTuple

import numpy as np

from t5repro.array_types import Int32, Int64, Mask
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.inputs.batches import gather_pieces
from t5repro.inputs.sentence_layout import PAIR_SPECIALS, PairRows, ragged
from t5repro.inputs.sentence_rows import SentenceIds, SentenceReader, TokenRows, numbered_rows
from t5repro.objectives.row_draws import Draw, RowDraws
from t5repro.vocab.special_ids import PAD_ID

SINGLE_SHARE = 0.1  # of the rows, whose first segment has no limit
COIN = 0.5  # probability that the first segment takes the sentence that exceeds its limit
SINGLE_SPECIALS = 2  # [CLS] A [SEP]


def electra_reader(
    layout: PairRows, corpus: SentenceIds, settings: PretrainSettings, seed: int
) -> SentenceReader:
    """Return the function from a step to rows ``[CLS] A [SEP]`` or ``[CLS] A [SEP] B [SEP]``.

    Args:
        layout: sentences of each row.
        corpus: ids and sentences.
        settings: of pre-training.
        seed: the run's seed.
    """
    batch_size, width = settings.batch_size, settings.inputs_length

    def read(step: int) -> TokenRows:
        row, draws = numbered_rows(settings, layout.rows, seed, step)
        # 1. The sentences of all rows, one after another.
        owner, position = ragged(layout.counts[row].astype(np.int64))
        sentence = layout.firsts[row][owner] + position
        starts = corpus.sentences.start_of(sentence)
        lengths = corpus.sentences.start_of(sentence + 1) - starts
        # 2. Their segments. The rows of ELECTRA's data are divided once, not in each epoch.
        data = RowDraws(seed, row, np.zeros_like(row))
        single, coin = data.uniform(Draw.SPLIT, 2).T
        limits = (layout.targets[row].astype(np.int64) - PAIR_SPECIALS) // 2
        limits[single < SINGLE_SHARE] = np.iinfo(np.int64).max // 2
        is_second = ~_in_first_segment(owner, position, lengths, limits, coin < COIN)
        # 3. In the order of the row, cut to its length from the back.
        order = np.argsort(2 * owner + is_second, kind="stable")
        owner, is_second, starts = owner[order], is_second[order], starts[order]
        lengths, sizes = _cut(owner, is_second, lengths[order], width)
        pieces = _joined(Pieces(starts, lengths, owner), is_second)
        ids, row_lengths, types = _rows(pieces, sizes, corpus, width)
        return TokenRows(
            ids=ids,
            lengths=row_lengths,
            types=types,
            pair_label=np.zeros(batch_size, np.int32),
            is_random_next=np.zeros(batch_size, bool),
            draws=draws,
            starts=pieces.starts,
            piece_lengths=pieces.lengths,
            piece_rows=pieces.rows,
        )

    return read


def _in_first_segment(
    owner: Int64, position: Int64, lengths: Int64, limits: Int64, takes_long: Mask
) -> Mask:
    """Return which sentences go to the first segment of their row.

    Args:
        owner: row of each sentence.
        position: of the sentence in its row.
        lengths: its ids.
        limits: ids of each first segment.
        takes_long: of each row, whether the first sentence that reaches the limit belongs to the
            first segment. The question arises once: either this segment is full afterwards, or the
            other one is not empty.
    """
    rows, most = len(limits), int(position.max()) + 1
    table = np.zeros((rows, most), np.int64)
    table[owner, position] = lengths
    in_first = np.zeros((rows, most), bool)
    filled, has_second = np.zeros(rows, np.int64), np.zeros(rows, bool)
    for number, length in enumerate(table.T):
        fits = (filled == 0) | (filled + length < limits)
        fits |= ~has_second & (filled < limits) & takes_long
        in_first[:, number] = fits
        filled += length * fits
        has_second |= ~fits & (length > 0)
    return in_first[owner, position]


def _cut(owner: Int64, is_second: Mask, lengths: Int64, width: int) -> tuple[Int64, Int64]:
    """Return the ids that are left of each sentence, and of both segments, ``(rows, 2)``.

    Args:
        owner: row of each sentence, ascending.
        is_second: its segment, the first one before the second one.
        lengths: its ids.
        width: of a row.
    """
    group = 2 * owner + is_second
    sizes = np.bincount(group, lengths, 2 * (owner[-1] + 1)).astype(np.int64).reshape(-1, 2)
    preceding = np.cumsum(lengths) - lengths
    preceding -= np.append(0, np.cumsum(sizes.ravel()))[group]  # of the same segment
    sizes[:, 0] = np.minimum(sizes[:, 0], width - SINGLE_SPECIALS)
    room = np.maximum(width - PAIR_SPECIALS - sizes[:, 0], 0)
    sizes[:, 1] = np.minimum(sizes[:, 1], room)
    return np.clip(sizes.ravel()[group] - preceding, 0, lengths), sizes


class Pieces(NamedTuple):
    """Pieces of the file of ids, in the order of their rows.

    Attributes:
        starts: int64 ``(pieces,)``.
        lengths: their ids, int64 ``(pieces,)``.
        rows: row of each, int64 ``(pieces,)``.
    """

    starts: Int64
    lengths: Int64
    rows: Int64


def _joined(pieces: Pieces, is_second: Mask) -> Pieces:
    """Return pieces of which those that continue the one before them are one with it."""
    exists = pieces.lengths > 0
    starts, lengths, rows = (values[exists] for values in pieces)
    segment = 2 * rows + is_second[exists]
    continues = (starts[1:] == starts[:-1] + lengths[:-1]) & (segment[1:] == segment[:-1])
    first = np.flatnonzero(np.append(True, ~continues))
    return Pieces(starts[first], np.add.reduceat(lengths, first), rows[first])


def _rows(
    pieces: Pieces, sizes: Int64, corpus: SentenceIds, width: int
) -> tuple[Int32, Int32, Int32]:
    """Return ids with special pieces, lengths and types of rows.

    Args:
        pieces: of all rows.
        sizes: ids of both segments of each row, ``(rows, 2)``.
        corpus: ids and sentences.
        width: of a row.
    """
    position, size = np.arange(width), sizes[..., np.newaxis]
    first_end = size[:, 0] + 1  # position of the first [SEP]
    second_end = first_end + np.where(size[:, 1] > 0, size[:, 1] + 1, 0)
    is_special = (position == 0) | (position == first_end) | (position == second_end)
    ids = np.full(is_special.shape, PAD_ID, np.int32)
    ids[is_special] = corpus.special("[SEP]")
    ids[:, 0] = corpus.special("[CLS]")
    is_text = ~is_special & (position < second_end)
    ids[is_text] = gather_pieces(corpus.ids, pieces.starts, pieces.lengths)
    types = ((position > first_end) & (position <= second_end)).astype(np.int32)
    return ids, (second_end[:, 0] + 1).astype(np.int32), types
