"""Layouts of whole sentences: rows of a pair of segments, and rows of one run of text.

Rows are laid out once, in the order of the documents; every epoch takes them in another order. A
row collects sentences greedily. The end of a row that begins at a sentence does not depend on the
rows before it, so the ends are computed for all sentences at once, and a loop then follows them
from row to row. Memory: 16 bytes a row and 16 bytes a document.

Source: BERT, ``create_instances_from_document``; RoBERTa, section 4.2.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from t5repro.array_types import Int32, Int64, Mask
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.errors import CorpusError
from t5repro.inputs.corpus_layout import first_tokens
from t5repro.inputs.packing import chunk_documents
from t5repro.randomness import stream

SLAB_DOCUMENTS = 65_536  # laid out at a time; a row of `full_sentences` does not cross them
PAIR_SPECIALS = 3  # [CLS] A [SEP] B [SEP]
RUN_SPECIALS = 2  # [CLS] and the [SEP] at the end
SHORTEST_TARGET = 2  # ids of a short row, without the special ones
SHORTEST_ELECTRA_TARGET = 5  # ids of a short row of `electra_segments`, with the special ones


class SentenceDocuments(NamedTuple):
    """The whole sentences of each document that are used.

    Attributes:
        firsts: index of its first sentence, int64 ``(documents,)``.
        lasts: index after its last one, int64 ``(documents,)``.
    """

    firsts: Int64
    lasts: Int64


@dataclass(frozen=True)
class PairRows:
    """Chunks of sentences of one document, which are split into two segments.

    Attributes:
        documents: in the order of the file.
        firsts: index of the first sentence of each chunk, int64 ``(rows,)``.
        counts: its sentences, int32 ``(rows,)``.
        targets: ids for which it was collected, int32 ``(rows,)``.
    """

    documents: SentenceDocuments
    firsts: Int64
    counts: Int32
    targets: Int32

    @property
    def rows(self) -> int:
        """Rows of an epoch."""
        return len(self.firsts)


@dataclass(frozen=True)
class RunRows:
    """Runs of whole sentences in a sequence of documents.

    Attributes:
        starts: index of the first id of each document, int64 ``(documents,)``.
        end_offsets: end of each document in the sequence; ids, ascending.
        begins: start of each row in the sequence, int64 ``(rows,)``.
        lengths: its ids without the special ones, int32 ``(rows,)``.
    """

    starts: Int64
    end_offsets: Int64
    begins: Int64
    lengths: Int32

    @property
    def rows(self) -> int:
        """Rows of an epoch."""
        return len(self.begins)


class SentenceTable:
    """Starts and ends of the sentences in the file of ids.

    Args:
        starts: first id of each sentence, ascending; may be mapped from a file.
        total: number of ids.
    """

    def __init__(self, starts: Int64, total: int) -> None:
        self.starts = starts
        self.total = total

    def start_of(self, sentences: Int64) -> Int64:
        """Return the first id of each sentence; of the index after the last one, the end."""
        if not len(self.starts):
            return np.full(len(sentences), self.total)
        inside = np.asarray(self.starts[np.minimum(sentences, len(self.starts) - 1)])
        return np.where(sentences == len(self.starts), self.total, inside)

    def inside(self, low: Int64, high: Int64) -> SentenceDocuments:
        """Return the sentences between `low` and `high`, without those that cross them."""
        firsts = np.searchsorted(self.starts, low)
        # The last sentence ends at the end of the ids, where no other one begins.
        lasts = np.searchsorted(self.starts, high, side="right") - (high < self.total)
        return SentenceDocuments(firsts.astype(np.int64), lasts.astype(np.int64))


def used_documents(
    settings: PretrainSettings, table: SentenceTable, offsets: Int64, *, seed: int
) -> SentenceDocuments:
    """Return the sentences of each document that pre-training uses; no document is empty.

    Args:
        settings: of pre-training: `unique_tokens` and `chunk_tokens` apply as in every layout.
        table: the sentences.
        offsets: start of each document in the file of ids, and end of the last one.
        seed: the run's seed.

    Raises:
        CorpusError: no document has a whole sentence, or there are fewer ids than `unique_tokens`.
    """
    bounds = first_tokens(offsets, settings.unique_tokens)
    chunks = chunk_documents(bounds, chunk_tokens=settings.chunk_tokens, seed=seed)
    documents = table.inside(chunks.starts, chunks.starts + chunks.lengths)
    filled = documents.lasts > documents.firsts
    if not filled.any():
        raise CorpusError(
            f"the corpus has no whole sentence in {len(offsets) - 1} documents; give it more text, "
            f"or raise pretrain.unique_tokens and pretrain.chunk_tokens"
        )
    return SentenceDocuments(documents.firsts[filled], documents.lasts[filled])


def pair_rows(
    settings: PretrainSettings, table: SentenceTable, documents: SentenceDocuments, *, seed: int
) -> PairRows:
    """Collect sentences of one document until they reach the target length, or two of them.

    The last sentence may exceed it, and a part of the segments is then removed when they are read.
    The target is the length of a row, or for `short_row_share` of the documents a random one. Of
    `electra_segments` each row has its own, of which special pieces are a part. Rows of
    `sentence_pair` have two sentences, the last one of a document one if their number is odd.

    Args:
        settings: of pre-training.
        table: the sentences.
        documents: their used sentences.
        seed: the run's seed.

    Source: BERT, ``create_instances_from_document``; RoBERTa, section 4.2, ``SENTENCE-PAIR``;
    ELECTRA, ``ExampleBuilder``.
    """
    if settings.masked_lm.rows == "sentence_pair":
        return _sentence_pairs(table, documents)
    generator = stream(seed, "pretrain", "short_rows")
    is_electra = settings.masked_lm.rows == "electra_segments"
    longest = settings.inputs_length - (0 if is_electra else PAIR_SPECIALS)
    shortest = min(SHORTEST_ELECTRA_TARGET if is_electra else SHORTEST_TARGET, longest)
    share = settings.masked_lm.short_row_share
    firsts, counts, targets = [], [], []
    for slab in _slabs(table, documents, np.arange(len(documents.firsts))):
        # A draw for each document of the slab, or for each sentence, at which a row may begin.
        draw_of_sentence = (
            np.arange(len(slab.sentences)) if is_electra else np.cumsum(slab.is_first) - 1
        )
        count = draw_of_sentence[-1] + 1
        is_short = generator.random(count) < share
        short = generator.integers(shortest, longest + 1, count)
        target = np.where(is_short, short, longest)[draw_of_sentence]
        # The first sentence that reaches the target still belongs to the chunk, hence + 1.
        following = np.searchsorted(slab.end_offsets, slab.begins + target) + 1
        rows = _follow(np.minimum(following, slab.document_ends))
        firsts.append(slab.sentences[rows[:-1]])
        counts.append(np.diff(rows).astype(np.int32))
        targets.append(target[rows[:-1]].astype(np.int32))
    return PairRows(
        documents, np.concatenate(firsts), np.concatenate(counts), np.concatenate(targets)
    )


def _sentence_pairs(table: SentenceTable, documents: SentenceDocuments) -> PairRows:
    """Return chunks of two sentences."""
    firsts, counts = [], []
    for slab in _slabs(table, documents, np.arange(len(documents.firsts))):
        rows = _follow(np.minimum(np.arange(len(slab.sentences)) + 2, slab.document_ends))
        firsts.append(slab.sentences[rows[:-1]])
        counts.append(np.diff(rows).astype(np.int32))
    first, count = np.concatenate(firsts), np.concatenate(counts)
    # A target of one id, so that a segment of another document is one sentence too.
    return PairRows(documents, first, count, np.ones_like(count))


def run_rows(
    settings: PretrainSettings, table: SentenceTable, documents: SentenceDocuments, *, seed: int
) -> RunRows:
    """Pack whole sentences into rows, across documents or within each.

    A sentence longer than a row is cut into rows.

    Args:
        settings: of pre-training; `masked_lm.rows` tells whether rows cross documents.
        table: the sentences.
        documents: their used sentences.
        seed: the run's seed; of the order of the documents.

    Source: RoBERTa, section 4.2, ``FULL-SENTENCES`` and ``DOC-SENTENCES``.
    """
    crosses = settings.masked_lm.rows == "full_sentences"
    count = len(documents.firsts)
    order = (
        stream(seed, "pretrain", "documents").permutation(count) if crosses else np.arange(count)
    )
    longest = settings.inputs_length - RUN_SPECIALS
    begins, lengths, slab_offset = [], [], 0
    for slab in _slabs(table, documents, order, longest=longest):
        # Between two documents of a row there is a separator: search positions that count them.
        document = np.cumsum(slab.is_first) - 1
        following = np.searchsorted(
            slab.end_offsets + document, slab.begins + document + longest, "right"
        )
        if not crosses:
            following = np.minimum(following, slab.document_ends)
        rows = _follow(following)
        bounds = np.append(slab.begins, slab.end_offsets[-1])[rows]
        begins.append(slab_offset + bounds[:-1])
        lengths.append(np.diff(bounds).astype(np.int32))
        slab_offset += int(slab.end_offsets[-1])
    starts = table.start_of(documents.firsts[order])
    end_offsets = np.cumsum(table.start_of(documents.lasts[order]) - starts)
    return RunRows(starts, end_offsets, np.concatenate(begins), np.concatenate(lengths))


class _Slab(NamedTuple):
    """Sentences of some documents, one after another.

    Attributes:
        sentences: index of each sentence in the file.
        begins: its start, counted in ids from the start of the slab.
        end_offsets: its end.
        is_first: whether it is the first one of its document.
        document_ends: index in the slab after the last sentence of its document.
    """

    sentences: Int64
    begins: Int64
    end_offsets: Int64
    is_first: Mask
    document_ends: Int64


def _slabs(
    table: SentenceTable, documents: SentenceDocuments, order: Int64, *, longest: int = 0
) -> Iterator[_Slab]:
    """Yield the documents in an order; sentences longer than `longest` are cut, if it is given."""
    for first in range(0, len(order), SLAB_DOCUMENTS):
        slab_order = order[first : first + SLAB_DOCUMENTS]
        counts = documents.lasts[slab_order] - documents.firsts[slab_order]
        number, position = ragged(counts)
        index = documents.firsts[slab_order][number] + position
        lengths = table.start_of(index + 1) - table.start_of(index)
        if longest:
            # Pieces of `longest` ids, the last one shorter; each then counts as a sentence.
            sentence, cut = ragged(-(-lengths // longest))
            lengths = np.minimum(lengths[sentence] - cut * longest, longest)
            number, index = number[sentence], index[sentence]
        end_offsets = np.cumsum(lengths)
        is_first = np.append(True, number[1:] != number[:-1])
        document_ends = np.cumsum(np.bincount(number, minlength=len(slab_order)))[number]
        yield _Slab(index, end_offsets - lengths, end_offsets, is_first, document_ends)


def ragged(counts: Int64) -> tuple[Int64, Int64]:
    """Return group and position within it, for groups with these counts."""
    group = np.repeat(np.arange(len(counts)), counts)
    return group, np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)


def _follow(following: Int64) -> Int64:
    """Return the starts of the rows, from row to row, and the end of the last one.

    Args:
        following: for each sentence, the start of the next row if a row begins at the sentence.
    """
    # A loop over Python's integers follows ten million rows a second.
    row_ends = following.tolist()
    rows, sentence = [0], 0
    while sentence < len(row_ends):
        sentence = row_ends[sentence]
        rows.append(sentence)
    return np.array(rows, np.int64)
