"""From the number of a step to its rows of sentences, before masking, in TensorFlow operations.

Two readers, one for each layout of `sentence_layout`. The chunk of a row is fixed; the split into
two segments and the text of another document are drawn for each epoch, or for each of
`masked_lm.copies`. BERT returns a replaced second segment to its stream of sentences; here it is
not read in this epoch.

Source: BERT and ALBERT, ``create_instances_from_document``; RoBERTa, section 4.2.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.inputs.batches import gather_pieces
from t5repro.inputs.row_index import shuffled_rows
from t5repro.inputs.sentence_layout import PAIR_SPECIALS, PairRows, RunRows
from t5repro.objectives.row_draws import Draw, RowDraws
from t5repro.vocab.special_ids import PAD_ID
from t5repro.vocab.special_pieces import special_id


class SentenceIds(NamedTuple):
    """The corpus as ids and sentences.

    Attributes:
        ids: of all documents, ``(ids,)``.
        starts: first id of each sentence, int64 ``(sentences,)``.
        total: number of ids.
        total_ids: pieces and sentinels of the vocabulary.
    """

    ids: tf.Tensor
    starts: tf.Tensor
    total: int
    total_ids: int

    def start_of(self, sentences: tf.Tensor) -> tf.Tensor:
        """Return the first id of each sentence; of the index after the last one, the end."""
        count = self.starts.shape[0]
        inside = tf.gather(self.starts, tf.minimum(sentences, count - 1))
        return tf.where(sentences >= count, tf.constant(self.total, tf.int64), inside)

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

    ids: tf.Tensor
    lengths: tf.Tensor
    types: tf.Tensor
    pair_label: tf.Tensor
    is_random_next: tf.Tensor
    draws: RowDraws
    starts: tf.Tensor
    piece_lengths: tf.Tensor
    piece_rows: tf.Tensor


SentenceReader = Callable[[tf.Tensor], TokenRows]


def _numbered_rows(
    settings: PretrainSettings, rows: int, seed: int, step: tf.Tensor
) -> tuple[tf.Tensor, RowDraws]:
    """Return the rows of the layout in a step, and their random numbers."""
    batch_size, copies = settings.batch_size, settings.masked_lm.copies
    number = step * batch_size + tf.range(batch_size, dtype=tf.int64)
    row, epoch = shuffled_rows(number, rows, seed)
    return row, RowDraws(seed, row, epoch % copies if copies else epoch)


class Segments(NamedTuple):
    """A segment of each row.

    Attributes:
        begin: its start in the file of ids, int64 ``(rows,)``.
        stop: its end.
    """

    begin: tf.Tensor
    stop: tf.Tensor

    @property
    def lengths(self) -> tf.Tensor:
        """Ids of each segment."""
        return self.stop - self.begin

    def where(self, condition: tf.Tensor, alternative: "Segments") -> "Segments":
        """Return these segments at the rows of the condition, the alternative elsewhere."""
        return Segments(
            *(
                tf.where(condition, segment_array, alternative_array)
                for segment_array, alternative_array in zip(self, alternative, strict=True)
            )
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
    firsts, counts = tf.constant(layout.firsts), tf.constant(layout.counts, tf.int64)
    targets = tf.constant(layout.targets, tf.int64)
    task = settings.masked_lm.pair_task
    other_segments = _other_document_reader(layout, corpus)

    def read(step: tf.Tensor) -> TokenRows:
        row, draws = _numbered_rows(settings, layout.rows, seed, step)
        first, count = tf.gather(firsts, row), tf.gather(counts, row)
        # 1. Split the chunk between two of its sentences; a chunk of one sentence is all A.
        split = first + tf.minimum(1 + draws.below(Draw.SPLIT, count - 1), count)
        middle = corpus.start_of(split)
        first_segment = Segments(corpus.start_of(first), middle)
        second_segment = Segments(middle, corpus.start_of(first + count))
        is_single, coin = count == 1, draws.uniform(Draw.PAIR, 1)[:, 0] < 0.5
        is_random_next, is_swapped = tf.zeros_like(is_single), tf.zeros_like(is_single)
        # 2. Text of another document as B: for half of the rows under next-sentence prediction
        #    (BERT), and under both pair tasks for chunks that cannot be split.
        if task != "none":
            is_random_next = is_single | coin if task == "next_sentence" else is_single
            length = tf.maximum(tf.gather(targets, row) - first_segment.lengths, 1)
            second_segment = other_segments(first, length, draws).where(
                is_random_next, second_segment
            )
        # 3. Sentence-order prediction (ALBERT): half of the split chunks are swapped.
        if task == "sentence_order":
            is_swapped = coin & ~is_single
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
            pair_label=tf.cast(is_random_next | is_swapped, tf.int32),
            is_random_next=is_random_next,
            draws=draws,
            starts=tf.reshape(tf.stack([first_segment.begin, second_segment.begin], 1), [-1]),
            piece_lengths=tf.reshape(
                tf.stack([first_segment.lengths, second_segment.lengths], 1), [-1]
            ),
            piece_rows=tf.repeat(tf.range(settings.batch_size, dtype=tf.int64), 2),
        )

    return read


def _other_document_reader(
    layout: PairRows, corpus: SentenceIds
) -> Callable[[tf.Tensor, tf.Tensor, RowDraws], Segments]:
    """Return the function that draws text of another document from a random sentence on."""
    firsts = tf.constant(layout.documents.firsts)
    lasts = tf.constant(layout.documents.lasts)
    count = len(layout.documents.firsts)

    def read(first: tf.Tensor, length: tf.Tensor, draws: RowDraws) -> Segments:
        first_document = tf.searchsorted(firsts, first, side="right", out_type=tf.int64) - 1
        bound = tf.fill(tf.shape(first_document), tf.constant(count - 1, tf.int64))
        drawn_document = draws.below(Draw.OTHER_DOCUMENT, bound)
        drawn_document += tf.cast(
            drawn_document >= first_document, tf.int64
        )  # skip the row's own document
        low, high = tf.gather(firsts, drawn_document), tf.gather(lasts, drawn_document)
        sentence = low + draws.below(Draw.OTHER_SENTENCE, high - low)
        begin = corpus.start_of(sentence)
        # Sentences until the length is reached, or the document ends.
        last = tf.searchsorted(corpus.starts, begin + length, side="left", out_type=tf.int64)
        return Segments(begin, corpus.start_of(tf.minimum(last, high)))

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
    first_length = tf.minimum(
        first_segment.lengths, tf.maximum(max_ids - second_segment.lengths, (max_ids + 1) // 2)
    )
    second_length = tf.minimum(second_segment.lengths, max_ids - first_length)

    def shorten(segments: Segments, length: tf.Tensor, use: Draw) -> Segments:
        begin = segments.begin + draws.heads(use, segments.lengths - length)
        return Segments(begin, begin + length)

    return (
        shorten(first_segment, first_length, Draw.FRONT_OF_FIRST),
        shorten(second_segment, second_length, Draw.FRONT_OF_SECOND),
    )


def _pair_ids(
    first_segment: Segments, second_segment: Segments, corpus: SentenceIds, width: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Return ids ``[CLS] A [SEP] B [SEP]``, lengths and types; without B, one `[SEP]`."""
    position = tf.range(width, dtype=tf.int64)[tf.newaxis]
    first_end = first_segment.lengths[:, tf.newaxis] + 1  # position of the first [SEP]
    second_length = second_segment.lengths[:, tf.newaxis]
    second_end = first_end + tf.where(second_length > 0, second_length + 1, 0)
    is_first = position < first_end
    source = tf.where(
        is_first,
        first_segment.begin[:, tf.newaxis] + position - 1,
        second_segment.begin[:, tf.newaxis] + position - first_end - 1,
    )
    # Positions of special pieces and padding read any id, which is then overwritten.
    text = tf.gather(corpus.ids, tf.clip_by_value(source, 0, corpus.total - 1))
    is_sep = (position == first_end) | (position == second_end)
    ids = tf.where(is_sep, corpus.special("[SEP]"), tf.cast(text, tf.int32))
    ids = tf.where(position == 0, corpus.special("[CLS]"), ids)
    ids = tf.where(position <= second_end, ids, PAD_ID)
    types = tf.cast((position > first_end) & (position <= second_end), tf.int32)
    return ids, tf.cast(second_end[:, 0] + 1, tf.int32), types


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
    starts, end_offsets = tf.constant(layout.starts), tf.constant(layout.end_offsets)
    begins, lengths = tf.constant(layout.begins), tf.constant(layout.lengths, tf.int64)
    batch_size, width = settings.batch_size, settings.inputs_length

    def read(step: tf.Tensor) -> TokenRows:
        row, draws = _numbered_rows(settings, layout.rows, seed, step)
        first, stop = tf.gather(begins, row), tf.gather(begins, row) + tf.gather(lengths, row)
        first_document = tf.searchsorted(end_offsets, first, side="right", out_type=tf.int64)
        last_document = tf.searchsorted(end_offsets, stop - 1, side="right", out_type=tf.int64)
        # The documents that the row overlaps, as in `row_index.stream_reader`.
        row_documents = tf.ragged.range(first_document, last_document + 1)
        document, piece_row = row_documents.flat_values, row_documents.value_rowids()
        begin = tf.where(document > 0, tf.gather(end_offsets, tf.maximum(document - 1, 0)), 0)
        low = tf.maximum(begin, tf.gather(first, piece_row))
        high = tf.minimum(tf.gather(end_offsets, document), tf.gather(stop, piece_row))
        piece_starts, piece_lengths = tf.gather(starts, document) + low - begin, high - low
        ids = _run_ids(piece_starts, piece_lengths, row_documents.row_lengths(), corpus, width)
        ids = tf.ensure_shape(ids, [batch_size, width])
        none = tf.zeros([batch_size], tf.int32)
        return TokenRows(
            ids=ids,
            lengths=tf.cast(tf.math.count_nonzero(ids, axis=1), tf.int32),
            types=tf.zeros_like(ids),
            pair_label=none,
            is_random_next=tf.cast(none, tf.bool),
            draws=draws,
            starts=piece_starts,
            piece_lengths=piece_lengths,
            piece_rows=piece_row,
        )

    return read


def _run_ids(
    starts: tf.Tensor,
    lengths: tf.Tensor,
    pieces_per_row: tf.Tensor,
    corpus: SentenceIds,
    width: int,
) -> tf.Tensor:
    """Return ids ``[CLS] piece [SEP] piece [SEP]``, int32 ``(rows, width)``."""
    text = tf.RaggedTensor.from_row_lengths(
        gather_pieces(corpus.ids, starts, lengths), lengths, validate=False
    )
    closing = tf.fill([tf.shape(lengths)[0], 1], corpus.special("[SEP]"))
    pieces = tf.concat([text, closing], axis=1)
    row_pieces = tf.RaggedTensor.from_row_lengths(pieces, pieces_per_row, validate=False)
    ids = row_pieces.merge_dims(1, 2).to_tensor(shape=[None, width - 1])
    return tf.pad(ids, [[0, 0], [1, 0]], constant_values=corpus.special("[CLS]"))
