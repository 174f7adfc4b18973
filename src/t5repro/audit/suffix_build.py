"""Build the suffix array of a corpus, one segment of whole documents at a time.

Memory is bounded by the size of a segment, whatever the size of the corpus. `CONTENT` has the
hashes of the files of each finished segment, so a stopped build continues with the next one, and
of a damaged index only the damaged segments are built again.
"""

import mmap
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from t5repro.array_types import Array, Mask
from t5repro.audit.suffix_array import SEPARATOR, STRIDE, Corpus, SegmentFiles, files_of, keys_at
from t5repro.errors import ArtifactError, packages_of
from t5repro.files import atomic_path, read_json, sha256_of, write_json
from t5repro.progress import Progress

# Sorting takes about 11 bytes of memory for a byte of ids: 1.5 GB for a segment. Each question
# searches every segment, so smaller ones would cost its time; 10 GB of ids have 75 of these.
SEGMENT_BYTES = 1 << 27
SUFFIXES_AT_ONCE = 1 << 22
CONTENT = "index.json"
HashOf = Callable[[Path], str | None]


def build(corpus: Corpus, folder: Path, hash_of: HashOf = sha256_of) -> list[int]:
    """Write the segments that the index of a corpus lacks.

    Two builds at once write equal files.

    Args:
        corpus: all ids.
        folder: of an index of this corpus; made if it is missing.
        hash_of: returns the SHA-256 of an existing file.

    Returns:
        The position of the first id of each segment.

    Raises:
        PackageError: the package that sorts is not installed.
    """
    bounds = list(_segments(corpus))  # first document and end
    hashes = _read_hashes(folder)
    missing = [
        number
        for number in range(len(bounds))
        if not _is_intact(files_of(folder, number), hashes, hash_of)
    ]
    first_ids = corpus.offsets[[first for first, _ in bounds]]
    sizes = corpus.offsets[[end for _, end in bounds]] - first_ids
    if missing:
        done = int(sizes.sum() - sizes[missing].sum())
        with Progress("index of the text", total=sum(sizes), unit="ids", done=done) as progress:
            for number in missing:
                files = files_of(folder, number)
                _write_segment(_part(corpus, *bounds[number]), files)
                hashes |= {path.name: sha256_of(path) for path in files}
                write_json(folder / CONTENT, hashes)
                progress.advance(int(sizes[number]))
    return [int(first_id) for first_id in first_ids]


def _segments(corpus: Corpus) -> Iterator[tuple[int, int]]:
    """Yield the first document of each segment and the one after its last."""
    longest = SEGMENT_BYTES // corpus.ids.dtype.itemsize
    first, count = 0, len(corpus.offsets) - 1
    while first < count:
        end = int(np.searchsorted(corpus.offsets, corpus.offsets[first] + longest, "right")) - 1
        yield first, max(end, first + 1)  # a longer document is a segment of its own
        first = max(end, first + 1)


def _read_hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of the finished segments, by name."""
    try:
        content = read_json(folder / CONTENT)
    except (ArtifactError, OSError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_intact(files: SegmentFiles, hashes: dict[str, str], hash_of: HashOf) -> bool:
    return all(path.is_file() and hash_of(path) == hashes.get(path.name) for path in files)


def _part(corpus: Corpus, first: int, end: int) -> Corpus:
    """Return some documents of a corpus, with their ids in memory."""
    offsets = np.asarray(corpus.offsets[first : end + 1])
    ids = np.array(corpus.ids[offsets[0] : offsets[-1]])
    if isinstance(corpus.ids.base, mmap.mmap):
        corpus.ids.base.madvise(mmap.MADV_DONTNEED)  # else all that was read counts as memory
    return Corpus(ids, offsets - offsets[0], corpus.word_starts)


def _write_segment(documents: Corpus, files: SegmentFiles) -> None:
    positions = sorted_positions(documents)
    keys = keys_at(documents, positions[::STRIDE].astype(np.int64))
    counts = np.bincount(documents.ids, minlength=len(documents.word_starts)).astype("<i8")
    for path, array in zip(files, (positions, keys, counts), strict=True):
        with atomic_path(path) as temporary:
            array.tofile(temporary)


def sorted_positions(documents: Corpus) -> Array:
    """Return the positions of the words, sorted by the ids that follow.

    Returns:
        ``(words,)`` of uint32.

    Raises:
        PackageError: the package that sorts is not installed.
    """
    with packages_of("trace"):
        from pydivsufsort import divsufsort
    separated, is_id = _separated(documents)
    is_word = np.zeros(len(separated), np.bool_)
    is_word[is_id] = documents.word_starts[documents.ids]
    positions = np.cumsum(is_id, dtype="<u4") - np.uint32(1)  # without the separators
    words = np.empty(np.count_nonzero(is_word), "<u4")
    suffixes = divsufsort(separated.view(np.uint8))
    end = 0
    for first in range(0, len(suffixes), SUFFIXES_AT_ONCE):  # no second array of that size
        places = suffixes[first : first + SUFFIXES_AT_ONCE]
        places = places[places % separated.itemsize == 0] // separated.itemsize
        places = places[is_word[places]]
        words[end : end + len(places)] = positions[places]
        end += len(places)
    return words


def _separated(documents: Corpus) -> tuple[Array, Mask]:
    """Return the ids with a separator after each document, and which of them are no separators.

    Their bytes sort like the ids, because the most significant one is first. The separator keeps a
    sequence inside its document.
    """
    ends = documents.offsets[1:] + np.arange(len(documents.offsets) - 1)
    is_id = np.ones(len(documents.ids) + len(ends), np.bool_)
    is_id[ends] = False
    separated = np.full(len(is_id), SEPARATOR, documents.ids.dtype.newbyteorder(">"))
    separated[is_id] = documents.ids
    return separated, is_id
