from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.config.sections.vocab import VocabSampleStage
from t5repro.errors import CorpusError, SettingsError
from t5repro.files import read_json
from t5repro.jobs.corpus import VocabSampleJob
from t5repro.vocab.sample import MAX_LINE_BYTES, Reservoir, characters, cut_paragraph, sample_corpus

PARTS = {"en": 10, "de": 1, "fr": 1, "ro": 1}


def sample_settings(chars: int, parts: dict[str, int] = PARTS, seed: int = 0) -> VocabSampleStage:
    return VocabSampleStage.model_validate(
        {"vocab": {"language_parts": parts, "sample_chars": chars, "sample_seed": seed}}
    )


def draw(settings: VocabSampleStage, corpus: Path, folder: Path) -> tuple[str, dict]:
    output = folder / "sample.txt"
    sample_corpus(
        VocabSampleJob(settings, corpus=corpus, sample=output, manifest=folder / "manifest.json")
    )
    return output.read_text(encoding="utf-8"), read_json(folder / "manifest.json")["counters"]


def test_languages_give_their_parts_of_the_characters(write_corpus, four_languages, tmp_path):
    text, counters = draw(sample_settings(13_000), write_corpus(four_languages), tmp_path)
    longest_line = max(map(len, text.split("\n")))
    assert list(counters) == ["de", "en", "fr", "ro"]
    for language, counts in counters.items():
        assert counts["asked_chars"] == 1000 * PARTS[language]
        assert 0 <= counts["given_chars"] - counts["asked_chars"] < longest_line
    assert sum(counts["given_chars"] for counts in counters.values()) == len(text.replace("\n", ""))
    assert text.count("\n") == sum(counts["lines"] for counts in counters.values())


def test_the_sample_depends_on_the_pages_not_on_their_shards(
    write_corpus, four_languages, tmp_path: Path
):
    one = write_corpus(four_languages, folder=tmp_path / "one")
    many = write_corpus(four_languages, folder=tmp_path / "many", shards=3)
    settings = sample_settings(13_000)
    assert draw(settings, one, tmp_path / "a")[0] == draw(settings, many, tmp_path / "b")[0]


def test_another_seed_draws_other_pages(write_corpus, four_languages, tmp_path: Path):
    corpus = write_corpus(four_languages)
    first = draw(sample_settings(2600), corpus, tmp_path)[0]
    assert first != draw(sample_settings(2600, seed=1), corpus, tmp_path)[0]


def test_a_scarce_language_gives_all_it_has_and_the_counts_say_so(
    write_corpus, four_languages, tmp_path: Path, capfd
):
    four_languages["ro"] = ["Moara veche.\nDoar atât."]
    text, counters = draw(sample_settings(13_000), write_corpus(four_languages), tmp_path)
    assert counters["ro"] == {"asked_chars": 1000, "given_chars": 22, "lines": 2, "pages": 1}
    assert "Doar atât.\n" in text
    assert "ro has 22 characters, fewer than the target of 1,000" in capfd.readouterr().err


@pytest.mark.parametrize("pages", [{}, {"ro": []}, {"ro": [" \n\n "]}])
def test_a_language_without_text_is_named_and_nothing_is_written(
    write_corpus, four_languages, tmp_path: Path, pages
):
    del four_languages["ro"]
    corpus = write_corpus(four_languages | pages)
    with pytest.raises(CorpusError, match=r"no 'ro' text .* vocab.language_parts"):
        draw(sample_settings(13_000), corpus, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_part_below_one_is_refused(write_corpus, four_languages, tmp_path: Path):
    with pytest.raises(SettingsError, match=r"vocab.language_parts.de is 0; .* from 1"):
        draw(sample_settings(1000, {"en": 10, "de": 0}), write_corpus(four_languages), tmp_path)


@given(
    pages=st.lists(
        st.tuples(st.integers(0, 1000), st.integers(1, 50)),
        min_size=1,
        unique_by=lambda page: page[0],
    ),
    target=st.integers(1, 300),
    order=st.randoms(use_true_random=False),
)
def test_the_reservoir_keeps_the_smallest_keys_in_any_order(pages, target, order):
    kept: list[int] = []
    for key, _ in sorted(pages):
        if sum(dict(pages)[other] for other in kept) < target:
            kept.append(key)
    shuffled = pages.copy()
    order.shuffle(shuffled)
    reservoir = Reservoir(target)
    for key, chars in shuffled:
        if reservoir.accepts(key):
            reservoir.add(key, (f"{key}".ljust(chars, "x")[:chars],))
    assert [-key for key, _ in sorted(reservoir.pages, reverse=True)] == kept
    assert reservoir.chars == sum(map(characters, reservoir.sorted_pages()))


@given(st.text(max_size=300), st.integers(8, 60))
def test_cut_lines_fit_and_hold_every_character(text: str, max_bytes: int):
    lines = list(cut_paragraph(text, max_bytes))
    assert all(0 < len(line.encode()) <= max_bytes for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.replace("\0", " ").split())


def test_a_paragraph_that_sentencepiece_would_skip_is_cut_between_words():
    paragraph = "word " * 2000 + "w" * 10_000
    lines = list(cut_paragraph(paragraph))
    assert max(len(line) for line in lines) <= MAX_LINE_BYTES
    assert lines[0] == " ".join(["word"] * 838)  # 838 * 5 - 1 = 4189 bytes
