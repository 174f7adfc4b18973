"""Writes the corpus as files of ids (paper section 2.2); the rule `tokens`.

Reads the pages of `c4` and the SentencePiece model, writes the files that `token_files` describes.
Documents are neither cut nor ended with EOS: both depend on the objective, so `inputs` does it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from t5repro.array_types import Array
from t5repro.config.corpus_files import SPLITS
from t5repro.errors import CorpusError
from t5repro.files import atomic_path, write_manifest
from t5repro.jobs.corpus import TokensJob
from t5repro.progress import Progress
from t5repro.vocab.batches import in_order, pool_for
from t5repro.vocab.corpus import pages_in, read_pages, shards_of
from t5repro.vocab.token_files import OFFSET_DTYPE, id_dtype, split_files
from t5repro.vocab.vocabulary import Vocabulary

ENCODING_THREADS = 8  # the ids do not depend on this number; the rule declares it


class _Encoded(NamedTuple):
    """Some documents.

    Attributes:
        ids: of all of them, end to end, in the dtype of the file.
        lengths: number of ids of each.
    """

    ids: Array
    lengths: Array


_Encode = Callable[[Iterable[list[str]]], Iterator[_Encoded]]


@dataclass
class _Writer:
    """Appends documents to an open file of ids and their ends to the file of offsets."""

    ids: BinaryIO
    offsets: BinaryIO
    documents: int = 0
    tokens: int = 0
    empty_rows: list[int] = field(default_factory=list)

    def write_header(self) -> None:
        self.offsets.write(np.zeros(1, OFFSET_DTYPE).tobytes())

    def append(self, batch: _Encoded) -> None:
        # An empty document would repeat an offset; `read_offsets` takes that for damage.
        is_empty = batch.lengths == 0
        row = self.documents + len(self.empty_rows)
        self.empty_rows += (row + np.flatnonzero(is_empty)).tolist()
        end_offsets = self.tokens + np.cumsum(batch.lengths[~is_empty], dtype=OFFSET_DTYPE)
        self.ids.write(batch.ids.tobytes())
        self.offsets.write(end_offsets.astype(OFFSET_DTYPE).tobytes())
        self.documents += len(end_offsets)
        self.tokens += len(batch.ids)


def encode_corpus(job: TokensJob) -> None:
    """Write the training and the validation pages as ids.

    Documents keep the order of the corpus, language after language in the order of
    `tokens.languages`; pre-training shuffles. A few hundred pages are in memory at a time, a few
    thousand if processes share them (`batches`), whose number changes no byte.

    Raises:
        CorpusError: the training split has no text in a language.
    """
    model = Vocabulary.load(job.vocabulary)
    counters: dict[str, Any] = {"dtype": id_dtype(model.total_ids).name}
    inputs, outputs = [job.corpus, job.vocabulary], list[Path]()
    for split in SPLITS:
        shards = {
            language: shards_of(job.corpus, language, split)
            for language in job.settings.tokens.languages
        }
        pages = [path for paths in shards.values() for path in paths]
        with pool_for(pages) as pool:
            # Threads of SentencePiece share an encoding among cores, but not the lists of its ids.
            work = (
                partial(_encode_in_process, job.vocabulary)
                if pool
                else partial(_encode_in_threads, model)
            )
            encode = partial(in_order, pool, work)
            counters[split] = _encode_split(encode, split, shards, job.folder)
        # A language without validation pages is usual in a small crawl.
        for language, counts in counters[split]["languages"].items():
            if split == "train" and not counts["tokens"]:
                raise CorpusError(
                    f"{job.corpus}: the corpus has no {language!r} text to pre-train on; crawl "
                    f"pages in this language or take it out of tokens.languages"
                )
        inputs += pages
        outputs += split_files(job.folder, split)
    write_manifest(
        job.manifest,
        rule="tokens",
        settings=job.settings.model_dump(mode="json"),
        inputs=inputs,
        outputs=outputs,
        counters=counters,
    )


def _encode_in_process(path: Path, texts: list[str]) -> _Encoded:
    model = _vocabulary(path)
    # One list of ids at a time: it takes 18 times the memory of the array.
    return _encoded(map(model.encode, texts), model)


@cache
def _vocabulary(path: Path) -> Vocabulary:
    return Vocabulary.load(path)


def _encode_in_threads(model: Vocabulary, texts: list[str]) -> _Encoded:
    return _encoded(model.encode_batch(texts, threads=ENCODING_THREADS), model)


def _encoded(documents: Iterable[list[int]], model: Vocabulary) -> _Encoded:
    dtype = id_dtype(model.total_ids)
    arrays = [np.array(ids, dtype) for ids in documents]
    return _Encoded(np.concatenate(arrays), np.array(list(map(len, arrays)), OFFSET_DTYPE))


def _encode_split(
    encode: _Encode, split: str, shards: dict[str, list[Path]], folder: Path
) -> dict[str, Any]:
    """Write the two files of a split; return its counts."""
    ids_file, offsets_file = split_files(folder, split)
    languages: dict[str, dict[str, int]] = {}
    total = sum(pages_in(paths) for paths in shards.values())
    with (
        atomic_path(ids_file) as ids_path,
        atomic_path(offsets_file) as offsets_path,
        ids_path.open("wb") as ids,
        offsets_path.open("wb") as offsets,
        Progress(f"tokens {split}", total=total, unit="pages") as progress,
    ):
        writer = _Writer(ids, offsets)
        writer.write_header()
        for language, paths in shards.items():
            # The writer counts over all languages; a language has the difference.
            counts_before = (writer.documents, len(writer.empty_rows), writer.tokens)
            for batch in encode(_texts(paths)):
                writer.append(batch)
                progress.advance(len(batch.lengths), tokens=writer.tokens)
            counts_after = (writer.documents, len(writer.empty_rows), writer.tokens)
            languages[language] = {
                name: high - low
                for name, low, high in zip(
                    ("documents", "empty_documents", "tokens"),
                    counts_before,
                    counts_after,
                    strict=True,
                )
            }
    return {
        "documents": writer.documents,
        "empty_documents": len(writer.empty_rows),
        # Which rows of the split have no document; an auditor finds the page of a document by them.
        **({"empty_rows": writer.empty_rows} if writer.empty_rows else {}),
        "tokens": writer.tokens,
        "languages": languages,
    }


def _texts(paths: list[Path]) -> Iterator[list[str]]:
    for path in paths:
        for pages in read_pages(path):
            yield [text for _, text in pages]
