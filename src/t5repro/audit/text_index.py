"""The index of a corpus by its text: `suffix_array` for the ids of a job, kept below ``work/``.

It is not a rule of the graph, because nothing is made from it: the first question about a corpus
builds it, later ones open it. Its folder is named by the hashes of ids, offsets and vocabulary, so
one of other ids is never opened, and its files are compared with their hashes. A withdrawal deletes
it.
"""

import hashlib
import os
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

import numpy as np

from t5repro.array_types import Int64
from t5repro.audit.suffix_array import Corpus, Segment, SuffixArray, build, files_of
from t5repro.errors import ArtifactError, LineageError
from t5repro.files import TEMPORARY_PREFIX, read_json, sha256_of, write_json
from t5repro.lineage.graph import Job
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.store import WORK
from t5repro.vocab.piece_offsets import PieceOffsets
from t5repro.vocab.token_files import read_ids, read_offsets, split_files
from t5repro.vocab.vocabulary import Vocabulary

FOLDER = Path(WORK) / "text_index"
CONTENT = "index.json"
COUNTS = "counts"
IDS_AT_ONCE = 1 << 24


class TextIndex(NamedTuple):
    """A corpus that can be searched by text.

    Attributes:
        array: places of each sequence of ids.
        vocabulary: makes ids of a text.
        counts: how often each id occurs, ``(vocabulary,)``.
    """

    array: SuffixArray
    vocabulary: Vocabulary
    counts: Int64


def open_index(root: Path, job: Job) -> TextIndex:
    """Open the index of the training split of a job, and build it if there is none.

    Args:
        root: the checkout.
        job: of the rule `tokens`.

    Raises:
        LineageError: a file is not as its manifest says, or the index cannot be built.
    """
    hasher = Hasher(root)
    vocabulary_file = next(file.path for file in job.inputs if file.path.endswith(".model"))
    ids_file, offsets_file = split_files(Path(job.manifest).parent, "train")
    hashes = [checked(hasher, job, str(file)) for file in (ids_file, offsets_file)]
    hashes.append(checked(hasher, job, vocabulary_file))
    pieces = PieceOffsets.load(root / vocabulary_file)
    corpus = Corpus(
        read_ids(root / ids_file, pieces.total_ids),
        read_offsets(root / offsets_file),
        pieces.word_starts().astype(np.bool_),
    )
    folder = root / FOLDER / hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:32]
    starts = _segment_starts(folder, hasher, root)
    if starts is None:
        shutil.rmtree(folder, ignore_errors=True)
        starts = _build(corpus, folder)
    hasher.save()
    id_bytes = corpus.ids.dtype.itemsize
    segments = [
        Segment.open(folder, number, start, id_bytes) for number, start in enumerate(starts)
    ]
    counts = np.fromfile(folder / COUNTS, "<i8")
    return TextIndex(SuffixArray(corpus, segments), Vocabulary.load(root / vocabulary_file), counts)


def delete_indexes(root: Path) -> None:
    """Delete the indexes of all corpora: they contain pieces of their text."""
    shutil.rmtree(root / FOLDER, ignore_errors=True)


def checked(hasher: Hasher, job: Job, path: str) -> str:
    """Return the hash of a file of a job.

    Raises:
        LineageError: the file is missing, or is not as the manifest of the job says.
    """
    recorded = {file.path: file.sha256 for file in (*job.inputs, *job.outputs)}
    actual = hasher.sha256(path)
    if actual is None or actual != recorded.get(path):
        state = "is missing" if actual is None else f"has the SHA-256 {actual[:12]}"
        raise LineageError(
            f"{path} {state}, {job.manifest} says {recorded.get(path, 'nothing')[:12]}; restore it "
            "with dvc checkout, or rerun the rule"
        )
    return actual


def _segment_starts(folder: Path, hasher: Hasher, root: Path) -> list[int] | None:
    """Return the first id of each segment of an index; None if it is absent or damaged."""
    try:
        content = read_json(folder / CONTENT)
        starts = [int(start) for start in content["segments"]]
        intact = all(
            hasher.sha256(str(path.relative_to(root))) == content["files"][path.name]
            for path in _files(folder, len(starts))
        )
    except (ArtifactError, OSError, KeyError, TypeError, ValueError, AttributeError):
        return None
    return starts if intact else None


def _files(folder: Path, segments: int) -> list[Path]:
    return [folder / COUNTS, *(file for n in range(segments) for file in files_of(folder, n))]


def _build(corpus: Corpus, folder: Path) -> list[int]:
    """Write an index; a stopped one leaves a temporary folder only."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(mkdtemp(prefix=TEMPORARY_PREFIX, dir=folder.parent))
    try:
        starts = build(corpus, temporary)
        counts = np.zeros(len(corpus.word_starts), np.int64)
        for first in range(0, len(corpus.ids), IDS_AT_ONCE):
            ids = corpus.ids[first : first + IDS_AT_ONCE]
            counts += np.bincount(ids, minlength=len(counts))
        counts.astype("<i8").tofile(temporary / COUNTS)
        hashes = {path.name: sha256_of(path) for path in _files(temporary, len(starts))}
        write_json(temporary / CONTENT, {"segments": starts, "files": hashes})
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return starts
