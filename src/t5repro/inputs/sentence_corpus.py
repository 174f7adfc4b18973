"""The files of a split whose sentences are known, opened: ids, documents, word starts."""

from pathlib import Path
from typing import NamedTuple

from t5repro.array_types import Int64, Mask
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.inputs.pretraining import open_ids
from t5repro.inputs.sentence_layout import SentenceDocuments, SentenceTable, used_documents
from t5repro.inputs.sentence_rows import SentenceIds
from t5repro.vocab.sentence_files import read_sentences, read_word_starts
from t5repro.vocab.token_files import read_offsets


class SentenceCorpus(NamedTuple):
    """A split of the corpus for an objective that reads sentences.

    Attributes:
        offsets: start of each document in the file of ids, and end of the last one.
        ids: the mapped ids and their sentences.
        documents: sentences of each document that pre-training uses.
        is_word_start: whether the piece of each id begins a word, ``(total_ids,)``.
    """

    offsets: Int64
    ids: SentenceIds
    documents: SentenceDocuments
    is_word_start: Mask


def open_sentences(
    settings: PretrainStage,
    *,
    ids: Path,
    offsets: Path,
    sentences: Path,
    word_starts: Path,
    seed: int,
) -> SentenceCorpus:
    """Open the files of a split.

    Args:
        settings: of the stage.
        ids: file of ids.
        offsets: file of document offsets.
        sentences: file of the first id of each sentence.
        word_starts: file with a byte for each id of the vocabulary.
        seed: the run's seed.

    Raises:
        ArtifactError: a file is missing or damaged, or the ids are of another vocabulary.
        CorpusError: the corpus has no whole sentence, or fewer ids than `unique_tokens`.
    """
    bounds = read_offsets(offsets)
    total, total_ids = int(bounds[-1]), settings.vocab.total_ids
    mapped_ids = open_ids(ids, total_ids, total)
    table = SentenceTable(read_sentences(sentences, bounds), total)
    return SentenceCorpus(
        offsets=bounds,
        ids=SentenceIds(mapped_ids, table, total_ids),
        documents=used_documents(settings.pretrain, table, bounds, seed=seed),
        is_word_start=read_word_starts(word_starts, total_ids),
    )
