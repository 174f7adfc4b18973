"""The planted set, by every method of words, against an independent search over strings."""

from pathlib import Path

import numpy as np
import pytest
from rows_in_corpus import (
    PLANTED,
    brute_aligned,
    brute_covered,
    brute_longest,
    brute_share,
    own,
    pages,
    plain,
    rows,
    write_pages,
)

from t5repro.contamination.methods import METHODS
from t5repro.contamination.ngrams import NgramIndex
from t5repro.contamination.passages import Measuring
from t5repro.contamination.rows import fields_of_rows
from t5repro.contamination.search import Search, search_parts
from t5repro.contamination.texts import Documents, Part, words_of
from t5repro.contamination.verdicts import thresholds, verdict_of
from t5repro.tasks.registry import task_named

OF_WORDS = [method for method in METHODS if method.unit == "words"]
FOUND = {  # method -> ways of standing in the corpus that it finds; all others it misses
    "longest": {*PLANTED, "short"}
    - {"3 words replaced", "5 words replaced", "paraphrase", "german", "french", "romanian"},
    "gpt3": {"verbatim", "other case and punctuation", "first half", "1 word replaced"}
    | {"clauses swapped"},
    "palm": {"verbatim", "other case and punctuation"},
    "palm_any": {"verbatim", "other case and punctuation"},
    "exact": {"verbatim", "other case and punctuation", "short"},
    "near": {*("verbatim", "other case and punctuation"), *("1 word replaced", "3 words replaced")},
}


def searched(folder: Path, methods=OF_WORDS, texts=None, **options):
    fields = fields_of_rows(task_named("glue_rte"), rows())
    parts = [Part(path) for path in write_pages(folder, texts or pages())]
    processes = options.pop("processes", 1)
    search = Search(fields, methods, **options)
    return search, *search_parts(search, parts, processes)


def verdicts(search: Search, found, method) -> dict[str, str]:
    """Return row -> verdict on its first field."""
    lengths = [len(units) for units in search.units]
    limits = thresholds(method, search.fields, lengths)
    names = [row["idx"] for row in rows()]
    return {
        names[field.row]: verdict_of(
            method, limits[field.task, field.name], lengths[n], *([found[n]] if n in found else [])
        )
        for n, field in enumerate(search.fields)
        if field.name == "sentence1"
    }


@pytest.mark.parametrize("method", OF_WORDS, ids=lambda method: method.name)
def test_each_method_finds_its_rows_and_misses_the_others(tmp_path: Path, method) -> None:
    search, found, _ = searched(tmp_path)
    of_rows = verdicts(search, found, method)
    assert {name for name, verdict in of_rows.items() if verdict == "dirty"} == FOUND[method.name]


def test_every_measure_is_that_of_a_search_over_strings(tmp_path: Path) -> None:
    search, found, _ = searched(tmp_path)
    texts = [plain(page) for page in pages()]
    compared = 0
    for number, field in enumerate(search.fields):
        words = len(words_of(field.text))
        passages = found.get(number)
        longest = brute_longest(field.text, texts)
        # Runs shorter than the seed, which is five words here, are not looked for.
        assert (passages.longest if passages else 0) == (longest if longest >= min(words, 5) else 0)
        if passages and words >= 8:
            ngrams = words - 7
            shares = [passages.page_ngrams / ngrams, len(passages.ngrams) / ngrams]
            expected = [brute_share(field.text, texts, in_one_page=one) for one in (True, False)]
            assert shares == expected
            assert passages.aligned / words == brute_aligned(field.text, texts)
            compared += 1
    assert compared == 7


def test_a_row_that_is_shorter_than_an_ngram_is_unchecked_and_not_clean(tmp_path: Path) -> None:
    search, found, _ = searched(tmp_path)
    by_method = {method.name: verdicts(search, found, method)["short"] for method in OF_WORDS}
    unchecked = {"gpt3", "palm", "palm_any", "near"}
    assert {name for name, verdict in by_method.items() if verdict == "unchecked"} == unchecked


def test_one_process_two_and_any_batch_find_the_same(tmp_path: Path) -> None:
    expected = searched(tmp_path)[1:]
    assert searched(tmp_path, batch_units=1)[1:] == expected
    assert searched(tmp_path, batch_units=64)[1:] == expected
    assert searched(tmp_path, processes=2)[1:] == expected


def test_a_corpus_without_the_rows_has_nothing_of_them(tmp_path: Path) -> None:
    texts = [f"a page of other words {number}" for number in range(50)]
    _, found, units = searched(tmp_path, texts=texts)
    assert (found, units) == ({}, 50 * 6)


def test_a_page_with_a_row_twice_counts_once_and_fifty_pages_count_fifty(tmp_path: Path) -> None:
    text = own(PLANTED["verbatim"], "verbatim")
    search, found, _ = searched(tmp_path, texts=[f"{text} . {text}"] * 50)
    (passages,) = (
        found[n] for n, field in enumerate(search.fields) if field.text == text and n in found
    )
    assert (passages.pages, passages.whole_pages) == (50, 50)
    assert passages.place == (0, 0, 0, 0)


def random_documents(random, sizes: list[int], letters: int) -> Documents:
    units = random.integers(1, letters, sum(sizes)).astype(np.uint32)
    return Documents(np.arange(len(sizes)), units, np.cumsum([0, *sizes]))


@pytest.mark.parametrize("bits", [8, 64])
@pytest.mark.parametrize("seed", [4, 5, 8, 10, 13])
def test_hits_are_those_of_a_comparison_of_all_windows(bits: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    documents = random_documents(random, [40, 1, 0, 90, 13, 60], 3)
    pattern = documents.units[45:70]
    fields = [pattern, pattern[:4], pattern[:0], random.integers(1, 3, 40).astype(np.uint32)]
    index = NgramIndex(fields, seed, shortest=4, hash_bits=bits)
    hits = {
        (int(d), int(p), int(f), int(s), int(n))
        for found in index.hits(documents)
        for d, p, f, s, n in zip(*found, strict=True)
    }
    expected = set()
    for number, field in enumerate(fields):
        length = seed if len(field) >= seed else len(field)
        if length < 4:
            continue
        for start in range(len(field) - length + 1):
            for page in range(len(documents.starts) - 1):
                low, high = documents.starts[page : page + 2]
                expected |= {
                    (page, int(place), number, start, length)
                    for place in range(low, high - length + 1)
                    if (
                        documents.units[place : place + length] == field[start : start + length]
                    ).all()
                }
    assert hits == expected
    assert len(hits) > 10


def test_runs_of_ids_with_mismatches_are_those_of_an_enumeration() -> None:
    random = np.random.default_rng(1)
    field = random.integers(1, 500, 60).astype(np.uint32)
    page = np.concatenate([random.integers(1, 500, 20), field, field[30:52]]).astype(np.uint32)
    page[[20 + place for place in (12, 15, 31, 33, 35, 37, 39, 41, 43, 45, 50, 59)]] = 999
    documents = Documents(np.arange(1), page, np.array([0, len(page)]))
    index = NgramIndex([field], 10, shortest=1 << 30)
    measuring = Measuring(index, {}, ["a"], is_aligned=False, is_covered=True)
    covered = measuring.passages_in(documents, 0)[0].covered
    share = brute_covered(field.tolist(), [page.tolist()])
    assert len(covered) / 60 == share
    assert 0.5 < share < 1
