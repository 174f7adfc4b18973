"""Sentences of the corpus as ids: the format between `sentences` and pre-training.

``<split>.sentences`` contains the index of the first id of each sentence in ``<split>.ids``, as
little-endian integers without a header; a sentence ends where the next one begins, the last one at
the end of the ids. ``word_starts`` contains a byte for each id of the vocabulary: 1 if its piece
begins a word.
"""

from pathlib import Path

import numpy as np

from t5repro.array_types import Int64, Mask
from t5repro.errors import ArtifactError
from t5repro.vocab.token_files import OFFSET_DTYPE

WORD_STARTS = "word_starts"


def sentence_file(folder: Path, split: str) -> Path:
    """Return the path of the sentences of a split."""
    return folder / f"{split}.sentences"


def word_starts_file(folder: Path) -> Path:
    """Return the path of the table of word starts."""
    return folder / WORD_STARTS


def read_sentences(path: Path, offsets: Int64) -> Int64:
    """Map the first id of each sentence into memory.

    Args:
        path: a ``.sentences`` file.
        offsets: start of each document in the ids, and end of the last one.

    Raises:
        ArtifactError: it is missing or damaged, or does not belong to these documents.
    """
    if not path.is_file():
        raise ArtifactError(f"{path} is missing; run the rule sentences")
    file_bytes = path.stat().st_size
    if file_bytes % OFFSET_DTYPE.itemsize:
        raise ArtifactError(
            f"{path} has {file_bytes} bytes, not a whole number of {OFFSET_DTYPE.itemsize}-byte "
            f"values: it is damaged; delete it and rerun the rule sentences"
        )
    if not file_bytes:
        starts = np.zeros(0, OFFSET_DTYPE)  # an empty file cannot be mapped
    else:
        starts = np.memmap(path, OFFSET_DTYPE, mode="r")
    if np.any(starts[1:] <= starts[:-1]):
        raise ArtifactError(
            f"{path} does not ascend: it is damaged; delete it and rerun the rule sentences"
        )
    documents = offsets[:-1]
    positions = np.searchsorted(starts, documents)
    is_start = positions < len(starts)
    is_start[is_start] = starts[positions[is_start]] == documents[is_start]
    if not is_start.all() or (len(starts) and starts[-1] >= offsets[-1]):
        raise ArtifactError(
            f"{path} has no sentence at the start of every document of the ids, or one after their "
            f"end: it was written for other ids; rerun the rule sentences"
        )
    return starts


def read_word_starts(path: Path, total_ids: int) -> Mask:
    """Return for each id of the vocabulary whether its piece begins a word, ``(total_ids,)``.

    Args:
        path: the file.
        total_ids: ids of the vocabulary.

    Raises:
        ArtifactError: it is missing, damaged, or of another vocabulary.
    """
    if not path.is_file():
        raise ArtifactError(f"{path} is missing; run the rule sentences")
    table = np.fromfile(path, np.uint8)
    if len(table) != total_ids:
        raise ArtifactError(
            f"{path} has {len(table)} entries, the vocabulary has {total_ids} ids: it was written "
            f"for another vocabulary; rerun the rule sentences"
        )
    if len(table) and table.max() > 1:
        raise ArtifactError(
            f"{path} contains the value {table.max()}, 0 or 1 is allowed: it is damaged; delete it "
            f"and rerun the rule sentences"
        )
    return table.astype(bool)
