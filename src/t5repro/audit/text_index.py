"""The index of a corpus by its text: `suffix_array` for the ids of a job, kept below ``work/``.

It is not a rule of the graph, because nothing is made from it: the first question about a corpus
builds it, later ones open it. Its folder is named by the hashes of ids, offsets and vocabulary, so
one of other ids is never opened, and its files are compared with their hashes. A withdrawal deletes
it.
"""

import hashlib
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np

from t5repro.array_types import Int64
from t5repro.audit.suffix_array import KEY_IDS, STRIDE, Corpus, Segment, SuffixArray, files_of
from t5repro.audit.suffix_build import SEGMENT_BYTES, build
from t5repro.errors import LineageError
from t5repro.lineage.graph import Job
from t5repro.lineage.hashes import Hasher
from t5repro.lineage.store import WORK
from t5repro.vocab.piece_offsets import PieceOffsets
from t5repro.vocab.token_files import read_ids, read_offsets, split_files
from t5repro.vocab.vocabulary import Vocabulary

FOLDER = Path(WORK) / "text_index"
FORM = (SEGMENT_BYTES, STRIDE, KEY_IDS)  # an index of another form is another folder


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
    key = hashlib.sha256(" ".join([*hashes, *map(str, FORM)]).encode()).hexdigest()[:32]
    folder = FOLDER / key
    first_ids = build(
        corpus, root / folder, lambda path: hasher.sha256(str(path.relative_to(root)))
    )
    hasher.save()
    segments = [files_of(root / folder, number) for number in range(len(first_ids))]
    id_bytes = corpus.ids.dtype.itemsize
    array = SuffixArray(
        corpus,
        [
            Segment.open(files, first_id, id_bytes)
            for files, first_id in zip(segments, first_ids, strict=True)
        ],
    )
    counts = np.zeros(pieces.total_ids, np.int64)
    for files in segments:
        counts += np.fromfile(files.counts, "<i8")
    return TextIndex(array, Vocabulary.load(root / vocabulary_file), counts)


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
