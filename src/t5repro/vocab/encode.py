"""Text <-> ids, and the corpus as flat files of ids (paper sections 2.2 and 3.1).

The files are what pre-training reads: ``<split>.ids`` holds the documents one after another
without anything between, ``<split>.offsets`` where each begins and the last ends. No end marks and
no cutting here: rows are made from the ids by `inputs`.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt
import sentencepiece

from t5repro.config.schema import LANES, ModelSettings
from t5repro.config.stages import TokensStage
from t5repro.errors import ArtifactError, CorpusError, SettingsError, VocabularyError
from t5repro.files import atomic_path, write_manifest
from t5repro.progress import Progress
from t5repro.vocab.corpus import pages_in, read_pages, shards_of
from t5repro.vocab.train import EOS_ID, PAD_ID, UNK_ID, sentinel

SPLITS = ("train", "validation")
OFFSET_DTYPE = np.dtype("<i8")
WIDEST_SHORT = 1 << 16  # so many ids fit two bytes
TARGET_WORD = "target:"  # between inputs and targets in the paper's text


class Vocabulary:
    """A trained vocabulary: pieces, then sentinels.

    Example:
        vocabulary = Vocabulary.load(Path("sentencepiece.model"))
        ids = vocabulary.encode("Thank you")  # without the end mark
        assert vocabulary.decode([*ids, vocabulary.eos_id, 7]) == "Thank you"
    """

    pad_id, eos_id, unk_id = PAD_ID, EOS_ID, UNK_ID

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        self.total_ids: int = processor.get_piece_size()
        self.extra_ids = 0
        while processor.piece_to_id("▁" + sentinel(self.extra_ids)) != UNK_ID:
            self.extra_ids += 1

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a SentencePiece model.

        Raises:
            ArtifactError: it is missing or damaged.
            VocabularyError: its special ids are not T5's.
        """
        if not path.is_file():
            raise ArtifactError(f"{path} is missing; run the rule vocab")
        processor = sentencepiece.SentencePieceProcessor()
        try:
            processor.load_from_serialized_proto(path.read_bytes())
        except RuntimeError as error:
            raise ArtifactError(
                f"{path} is not a SentencePiece model; delete it and rerun the rule vocab"
            ) from error
        found = (processor.pad_id(), processor.eos_id(), processor.unk_id(), processor.bos_id())
        if found != (PAD_ID, EOS_ID, UNK_ID, -1):
            raise VocabularyError(
                f"{path} has pad, eos, unk, bos {found}, T5 needs {(PAD_ID, EOS_ID, UNK_ID, -1)}; "
                f"train it with the rule vocab"
            )
        return cls(processor)

    @property
    def embedding_rows(self) -> int:
        """Rows of the embedding: `total_ids` rounded up to a multiple of 128."""
        return -(-self.total_ids // LANES) * LANES

    def extra_id(self, number: int) -> int:
        """Return the id of ``<extra_id_{number}>``.

        Raises:
            VocabularyError: the vocabulary has no such sentinel.
        """
        if not 0 <= number < self.extra_ids:
            raise VocabularyError(
                f"no sentinel {sentinel(number)}; the vocabulary has {self.extra_ids}, from 0; "
                f"raise vocab.extra_ids"
            )
        return self.total_ids - 1 - number

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without an end mark."""
        ids: list[int] = self._processor.encode(text)
        return ids

    def encode_batch(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Return the ids of each text; how many threads share the work does not change them."""
        ids: list[list[int]] = self._processor.encode(list(texts), num_threads=threads)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids` up to the first end mark.

        Ids past the vocabulary, which padded rows of the embedding can produce, read as unknown.

        Source: released code, ``SentencePieceVocabulary.decode``.
        """
        kept: list[int] = []
        for number in ids:
            if number == EOS_ID:
                break
            kept.append(int(number) if number < self.total_ids else UNK_ID)
        text: str = self._processor.decode(kept)
        return text


def inputs_end(
    vocabulary: Vocabulary, model: ModelSettings, *, inputs_length: int
) -> tuple[int, ...]:
    """Return the ids that close the inputs of a task: the end mark, or the word `target:`.

    Raises:
        SettingsError: they leave no room in `inputs_length`.

    Source: section 3.2.1 of the paper has the word, for a decoder alone; the released code, model
    type ``delimited_lm``, the end mark (D-011).
    """
    if model.decoder_only and model.target_marker == "target_word":
        word = tuple(vocabulary.encode(TARGET_WORD))
        if len(word) >= inputs_length:
            raise SettingsError(
                f"inputs_length is {inputs_length}, the word {TARGET_WORD!r} has {len(word)} "
                f"tokens in this vocabulary; raise it or set model.target_marker to end_mark"
            )
        return word
    return (vocabulary.eos_id,)


def id_dtype(total_ids: int) -> np.dtype[Any]:
    """Return how one id is stored: two bytes where they suffice, else four."""
    return np.dtype("<u2") if total_ids <= WIDEST_SHORT else np.dtype("<u4")


@dataclass
class _Writer:
    """Appends documents to an open file of ids and remembers where each ends."""

    handle: BinaryIO
    offsets_handle: BinaryIO
    dtype: np.dtype[Any]
    documents: int = 0
    empty: int = 0
    tokens: int = 0

    def start(self) -> None:
        self.offsets_handle.write(np.zeros(1, OFFSET_DTYPE).tobytes())

    def append(self, batch: list[list[int]]) -> None:
        kept = [ids for ids in batch if ids]
        self.empty += len(batch) - len(kept)
        if not kept:
            return
        ends = self.tokens + np.cumsum([len(ids) for ids in kept], dtype=OFFSET_DTYPE)
        flat = np.fromiter((token for ids in kept for token in ids), self.dtype)
        self.handle.write(flat.tobytes())
        self.offsets_handle.write(ends.astype(OFFSET_DTYPE).tobytes())
        self.documents += len(kept)
        self.tokens = int(ends[-1])


def encode_corpus(
    settings: TokensStage, *, corpus: Path, vocabulary: Path, folder: Path, manifest: Path
) -> None:
    """Write the training and the validation pages as ids.

    Documents keep the order of the corpus, language after language as `tokens.languages` names
    them; pre-training shuffles. Memory holds a few hundred pages at a time.

    Args:
        settings: languages to take.
        corpus: the manifest of `c4`.
        vocabulary: the SentencePiece model.
        folder: where ``train.ids``, ``train.offsets`` and those of ``validation`` go.
        manifest: manifest to write; counts documents and tokens of each split and language.

    Raises:
        CorpusError: the training split has no text in a language.
    """
    vocab = Vocabulary.load(vocabulary)
    counters: dict[str, Any] = {"dtype": id_dtype(vocab.total_ids).name}
    inputs, outputs = [corpus, vocabulary], []
    for split in SPLITS:
        shards = {
            language: shards_of(corpus, language, split) for language in settings.tokens.languages
        }
        counters[split] = _encode_split(vocab, split, shards, folder)
        for language, counts in counters[split]["languages"].items():
            if split == "train" and not counts["tokens"]:
                raise CorpusError(
                    f"{corpus}: the corpus has no {language!r} text to pre-train on; crawl pages "
                    f"in this language or take it out of tokens.languages"
                )
        inputs += [path for paths in shards.values() for path in paths]
        outputs += [folder / f"{split}.ids", folder / f"{split}.offsets"]
    write_manifest(
        manifest,
        rule="tokens",
        settings=settings.model_dump(mode="json"),
        inputs=inputs,
        outputs=outputs,
        counters=counters,
    )


def _encode_split(
    vocab: Vocabulary, split: str, shards: dict[str, list[Path]], folder: Path
) -> dict[str, Any]:
    """Write the two files of a split; return its counts."""
    languages: dict[str, dict[str, int]] = {}
    total = sum(pages_in(paths) for paths in shards.values())
    with (
        atomic_path(folder / f"{split}.ids") as ids_path,
        atomic_path(folder / f"{split}.offsets") as offsets_path,
        ids_path.open("wb") as ids_handle,
        offsets_path.open("wb") as offsets_handle,
        Progress(f"tokens {split}", total=total, unit="pages") as progress,
    ):
        writer = _Writer(ids_handle, offsets_handle, id_dtype(vocab.total_ids))
        writer.start()
        for language, paths in shards.items():
            before = (writer.documents, writer.empty, writer.tokens)
            for texts in _texts(paths):
                writer.append(vocab.encode_batch(texts, threads=os.cpu_count() or 1))
                progress.advance(len(texts), tokens=writer.tokens)
            after = (writer.documents, writer.empty, writer.tokens)
            languages[language] = {
                name: end - start
                for name, start, end in zip(
                    ("documents", "empty_documents", "tokens"), before, after, strict=True
                )
            }
    return {
        "documents": writer.documents,
        "empty_documents": writer.empty,
        "tokens": writer.tokens,
        "languages": languages,
    }


def _texts(paths: list[Path]) -> Iterator[list[str]]:
    for path in paths:
        for pages in read_pages(path):
            yield [text for _, text in pages]


def read_ids(path: Path, total_ids: int) -> npt.NDArray[Any]:
    """Map a file of ids into memory.

    Args:
        path: a file of `encode_corpus`.
        total_ids: ids of the vocabulary it was written with.

    Raises:
        ArtifactError: it is missing, or its size is not a whole number of ids.
    """
    dtype = id_dtype(total_ids)
    return _map(path, dtype)


def read_offsets(path: Path) -> npt.NDArray[np.int64]:
    """Map the document offsets into memory.

    Raises:
        ArtifactError: it is missing, damaged, or does not ascend from 0.
    """
    offsets = _map(path, OFFSET_DTYPE)
    if not len(offsets) or offsets[0] != 0 or np.any(offsets[1:] <= offsets[:-1]):
        raise ArtifactError(
            f"{path} does not ascend from 0: it is damaged; delete it and rerun the rule tokens"
        )
    return offsets


def _map(path: Path, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if not path.is_file():
        raise ArtifactError(f"{path} is missing; run the rule tokens")
    size = path.stat().st_size
    if size % dtype.itemsize:
        raise ArtifactError(
            f"{path} has {size} bytes, not a whole number of {dtype.itemsize}-byte values: it is "
            f"damaged or of another vocabulary; delete it and rerun the rule tokens"
        )
    if not size:
        return np.zeros(0, dtype)  # an empty file cannot be mapped
    return np.memmap(path, dtype, mode="r")
