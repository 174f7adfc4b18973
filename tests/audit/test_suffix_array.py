"""Suffix arrays against a search through all ids."""

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from t5repro.audit import suffix_array, suffix_build
from t5repro.audit.suffix_array import Corpus, Segment, SuffixArray, files_of
from t5repro.audit.suffix_build import build
from t5repro.errors import PackageError

FEW_IDS = 5
documents_strategy = st.lists(
    st.lists(st.integers(1, FEW_IDS - 1), min_size=1, max_size=30), min_size=1, max_size=6
)


@pytest.fixture(autouse=True, scope="module")
def small_parts() -> Iterator[None]:
    """Segments, strides and blocks of a few ids, so that small corpora have many of each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suffix_build, "SEGMENT_BYTES", 80)
        patch.setattr(suffix_build, "SUFFIXES_AT_ONCE", 7)
        for module in (suffix_array, suffix_build):
            patch.setattr(module, "STRIDE", 3)
        patch.setattr(suffix_array, "BLOCK", 9)
        yield


def array_of(documents: list[list[int]], word_starts: list[bool], dtype: str) -> SuffixArray:
    ids = np.concatenate([np.array(document) for document in documents]).astype(dtype)
    offsets = np.cumsum([0, *map(len, documents)])
    corpus = Corpus(ids, offsets, np.array(word_starts))
    with TemporaryDirectory() as folder:
        firsts = build(corpus, Path(folder))
        segments = [
            Segment.open(files_of(Path(folder), number), first, ids.itemsize)
            for number, first in enumerate(firsts)
        ]
    return SuffixArray(corpus, segments)


def common(left: list[int], right: list[int]) -> int:
    pairs = zip(left, right, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


@given(
    documents=documents_strategy,
    text=st.lists(st.integers(1, FEW_IDS - 1), min_size=1, max_size=25),
    inner=st.sets(st.integers(1, FEW_IDS - 1), max_size=2),
    dtype=st.sampled_from(["<u2", "<u4"]),
)
@example(documents=[[1, 2], [3, 4]], text=[1, 2, 3, 4], inner=set(), dtype="<u2")
def test_it_finds_what_a_search_through_all_ids_finds(
    documents: list[list[int]], text: list[int], inner: set[int], dtype: str
) -> None:
    word_starts = [number not in inner for number in range(FEW_IDS)]
    array = array_of(documents, word_starts, dtype)
    starts = np.array([place for place, number in enumerate(text) if word_starts[number]], int)
    lengths = array.longest_matches(np.array(text), starts)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        expected = [
            (offset + place, common(document[place:], text[start:]))
            for offset, document in zip(array.corpus.offsets.tolist(), documents, strict=False)
            for place, number in enumerate(document)
            if word_starts[number]
        ]
        assert length == max((count for _, count in expected), default=0)
        if length:
            matches = array.find(np.array(text[start : start + length]), most=2)
            places = [place for place, count in expected if count >= length]
            assert (matches.count, matches.positions.tolist()) == (len(places), places[:2])


def test_a_passage_ends_with_its_document() -> None:
    array = array_of([[1, 2, 3], [4, 1, 2]], [True] * FEW_IDS, "<u2")
    assert array.longest_matches(np.array([1, 2, 3, 4, 1]), np.array([0])).tolist() == [3]


def test_the_largest_id_of_two_bytes_is_found() -> None:
    array = array_of([[65535, 65535, 1], [65535]], [True] * 65536, "<u2")
    assert array.find(np.array([65535, 65535]), most=9).positions.tolist() == [0]
    assert array.find(np.array([65535]), most=9).positions.tolist() == [0, 1, 3]


def test_a_corpus_of_one_repeated_document_counts_each_copy() -> None:
    array = array_of([[1, 2, 3, 4] * 5] * 12, [True] * FEW_IDS, "<u2")
    matches = array.find(np.array([1, 2, 3, 4] * 5), most=2)
    assert (matches.count, matches.positions.tolist()) == (12, [0, 20])


def test_without_the_package_that_sorts_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydivsufsort", None)
    with pytest.raises(PackageError, match=r"pydivsufsort is not installed; .*t5repro\[trace\]"):
        array_of([[1]], [True] * FEW_IDS, "<u2")


def many_segments() -> Corpus:
    documents = np.random.default_rng(0).integers(1, FEW_IDS, (12, 20))
    return Corpus(
        documents.ravel().astype("<u2"), np.arange(13) * 20, np.ones(FEW_IDS, dtype=np.bool_)
    )


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_stopped_build_continues_with_the_next_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = many_segments()
    build(corpus, tmp_path / "whole")
    sort, sorted_segments = suffix_build.sorted_positions, []

    def stop_in_the_fourth(documents: Corpus) -> np.ndarray:
        sorted_segments.append(len(documents.ids))
        if len(sorted_segments) == 4:
            raise KeyboardInterrupt
        return sort(documents)

    monkeypatch.setattr(suffix_build, "sorted_positions", stop_in_the_fourth)
    with pytest.raises(KeyboardInterrupt):
        build(corpus, tmp_path / "stopped")
    starts = build(corpus, tmp_path / "stopped")
    assert starts == [0, 40, 80, 120, 160, 200]
    assert len(sorted_segments) == 4 + 3  # three were finished, the fourth begins again
    assert files_in(tmp_path / "stopped") == files_in(tmp_path / "whole")


def test_of_a_damaged_index_only_the_damaged_segment_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = many_segments()
    build(corpus, tmp_path)
    whole = files_in(tmp_path)
    (tmp_path / "2.keys").write_bytes(b"")
    sort, first_ids = suffix_build.sorted_positions, []

    def noted(documents: Corpus) -> np.ndarray:
        first_ids.append(documents.ids[:5].tolist())
        return sort(documents)

    monkeypatch.setattr(suffix_build, "sorted_positions", noted)
    build(corpus, tmp_path)
    assert first_ids == [corpus.ids[80:85].tolist()]
    assert files_in(tmp_path) == whole


def test_a_segment_has_whole_documents_of_at_most_its_size_except_a_longer_one(
    tmp_path: Path,
) -> None:
    # 80 bytes are 40 ids.
    lengths = [30, 10, 1, 50, 39, 2]
    offsets = np.cumsum([0, *lengths])
    ids = np.ones(offsets[-1], "<u2")
    starts = build(Corpus(ids, offsets, np.ones(2, np.bool_)), tmp_path)
    assert starts == [0, 40, 41, 91, 130]
    assert [np.fromfile(tmp_path / f"{n}.counts", "<i8")[1] for n in range(5)] == [40, 1, 50, 39, 2]
