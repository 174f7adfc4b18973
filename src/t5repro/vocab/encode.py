"""Writes the corpus as files of ids (paper section 2.2); the rule `tokens`.

Reads the pages of `c4` and the SentencePiece model, writes the files that `token_files` describes.
Documents are neither cut nor ended with EOS: both depend on the objective, so `inputs` does it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from t5repro.config.corpus_files import SPLITS
from t5repro.errors import CorpusError
from t5repro.files import atomic_path, write_manifest
from t5repro.jobs.corpus import TokensJob
from t5repro.progress import Progress
from t5repro.vocab.corpus import pages_in, read_pages, shards_of
from t5repro.vocab.token_files import OFFSET_DTYPE, id_dtype, split_files
from t5repro.vocab.vocabulary import Vocabulary

ENCODING_THREADS = 8  # the ids do not depend on this number; the rule declares it


@dataclass
class _Writer:
    """Appends documents to an open file of ids and their ends to the file of offsets."""

    ids: BinaryIO
    offsets: BinaryIO
    dtype: np.dtype[Any]
    documents: int = 0
    tokens: int = 0
    empty_rows: list[int] = field(default_factory=list)

    def write_header(self) -> None:
        self.offsets.write(np.zeros(1, OFFSET_DTYPE).tobytes())

    def append(self, batch: list[list[int]]) -> None:
        # An empty document would repeat an offset; `read_offsets` takes that for damage.
        documents = [ids for ids in batch if ids]
        row = self.documents + len(self.empty_rows)
        self.empty_rows += [number for number, ids in enumerate(batch, row) if not ids]
        if not documents:
            return
        end_offsets = self.tokens + np.cumsum([len(ids) for ids in documents], dtype=OFFSET_DTYPE)
        # A typed array from a generator, without a list of all ids in between.
        flat = np.fromiter((token for ids in documents for token in ids), self.dtype)
        self.ids.write(flat.tobytes())
        self.offsets.write(end_offsets.astype(OFFSET_DTYPE).tobytes())
        self.documents += len(documents)
        self.tokens = int(end_offsets[-1])


def encode_corpus(job: TokensJob) -> None:
    """Write the training and the validation pages as ids.

    Documents keep the order of the corpus, language after language in the order of
    `tokens.languages`; pre-training shuffles. A few hundred pages are in memory at a time.

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
        counters[split] = _encode_split(model, split, shards, job.folder)
        # A language without validation pages is usual in a small crawl.
        for language, counts in counters[split]["languages"].items():
            if split == "train" and not counts["tokens"]:
                raise CorpusError(
                    f"{job.corpus}: the corpus has no {language!r} text to pre-train on; crawl "
                    f"pages in this language or take it out of tokens.languages"
                )
        inputs += [path for paths in shards.values() for path in paths]
        outputs += split_files(job.folder, split)
    write_manifest(
        job.manifest,
        rule="tokens",
        settings=job.settings.model_dump(mode="json"),
        inputs=inputs,
        outputs=outputs,
        counters=counters,
    )


def _encode_split(
    vocabulary: Vocabulary, split: str, shards: dict[str, list[Path]], folder: Path
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
        writer = _Writer(ids, offsets, id_dtype(vocabulary.total_ids))
        writer.write_header()
        for language, paths in shards.items():
            # The writer counts over all languages; a language has the difference.
            counts_before = (writer.documents, len(writer.empty_rows), writer.tokens)
            for texts in _texts(paths):
                writer.append(vocabulary.encode_batch(texts, threads=ENCODING_THREADS))
                progress.advance(len(texts), tokens=writer.tokens)
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
