import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.data import FileSystemPathPointer
from nltk.tokenize.punkt import PunktSentenceTokenizer, load_punkt_params

from t5repro.c4.text.sentences import SentenceSplitter
from t5repro.c4.wet import pages as wet_pages
from t5repro.config.sections.c4 import PUNKT_FILES
from t5repro.errors import RawDataError

PARAMETERS = {
    "abbrev_types.txt": "dr\nusw\ne.g\nst",
    "collocations.tab": "##number##\tnext\nmain\tstreet",
    "ortho_context.tab": "the\t46\nhere\t16\nnext\t80\nstreet\t8\nend\t2",
    "sent_starters.txt": "but\nthe",
}


def write_parameters(folder, **changed):
    for name in PUNKT_FILES:
        text = changed.get(name.partition(".")[0], PARAMETERS[name])
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def nltk_with(folder):
    tokenizer = PunktSentenceTokenizer()
    if folder is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the folder is outside NLTK's own
            tokenizer._params = load_punkt_params(FileSystemPathPointer(str(folder)))
    return tokenizer


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = write_parameters(tmp_path_factory.mktemp("punkt"))
    return SentenceSplitter(folder), nltk_with(folder)


@pytest.fixture(scope="module")
def untrained():
    return SentenceSplitter(), nltk_with(None)


PIECES = st.sampled_from(
    [
        "dr",
        "Dr",
        "e.g",
        "main",
        "Street",
        "street",
        "the",
        "The",
        "Here",
        "here",
        "But",
        "end",
        "3",
        "10",
        "J",
        "x",
        "U.S",
        "foo-bar",
        "foo_bar",
        "don't",
        "Ω",
        "É",
        "²",
        ".",
        ".",
        ".",
        "?",
        "!",
        "..",
        "...",
        " ",
        " ",
        " ",
        " ",
        "  ",
        "\n",
        "\t",
        "\u00a0",
        "\u2028",
        '"',
        "'",
        ")",
        "]",
        "}",
        "(",
        ",",
        ";",
        ":",
        "--",
        "-",
        "*",
        "@",
        "“",
        "”",
    ]
)
TEXTS = st.lists(PIECES, max_size=50).map("".join)


@given(TEXTS)
def test_any_text_is_split_as_nltk_splits_it(both, text):
    ours, nltk = both
    assert list(ours.spans(text)) == list(nltk.span_tokenize(text))


@given(TEXTS)
def test_any_text_is_split_as_untrained_nltk_splits_it(untrained, text):
    ours, nltk = untrained
    assert ours.split(text) == nltk.tokenize(text)


@given(TEXTS, st.integers(-1, 8))
def test_counting_stops_early_and_is_right(both, text, count):
    ours, nltk = both
    assert ours.has_at_least(count, text) == (len(nltk.tokenize(text)) >= count)
    lines = [line for line in text.split("\n") if line.strip()]
    total = sum(len(nltk.tokenize(line)) for line in lines)
    assert ours.lines_have_at_least(count, lines) == (total >= count)


def test_abbreviations_decide(both, untrained):
    text = "We met Dr. Roberts here. He was late. It was e.g. three."
    assert both[0].split(text) == ["We met Dr. Roberts here.", "He was late.", "It was e.g. three."]
    assert len(untrained[0].split(text)) == 5


def test_closing_quotes_and_brackets_belong_to_their_sentence(untrained):
    text = '"One is here." (Two is here.) Three is here.'
    assert untrained[0].split(text) == ['"One is here."', "(Two is here.)", "Three is here."]


def test_lines_join_when_a_text_is_split_as_a_whole(both):
    splitter = both[0]
    lines = ["He is a Dr.", "roberts by name.", "And one more."]
    assert len(splitter.split("\n".join(lines))) == 2
    assert splitter.lines_have_at_least(3, lines)
    assert not splitter.has_at_least(3, "\n".join(lines))


def test_splitting_adds_nothing_to_the_parameters(both):
    splitter = both[0]
    before = len(splitter._parameters.ortho_context)
    for number in range(100):
        splitter.split(f"Dr. Word{number} came. J. Other{number} went. 5. Third{number}")
    assert len(splitter._parameters.ortho_context) == before


@pytest.mark.parametrize("language", ["english", "german", "french", None])
def test_real_pages_are_split_as_nltk_splits_them(real_data, language):
    tables = real_data / "nltk_data" / "tokenizers" / "punkt_tab"
    folder = None if language is None else tables / language
    ours, nltk = SentenceSplitter(folder), nltk_with(folder)
    sentences = 0
    for name in ("real_html", "novels_deu"):
        for page in wet_pages.read_pages(real_data / "wet" / f"{name}.warc.wet.gz"):
            if page.record % 10 == 0:
                spans = list(ours.spans(page.text))
                assert spans == list(nltk.span_tokenize(page.text))
                sentences += len(spans)
    assert sentences > 10_000


def test_a_missing_file_of_parameters_is_named(tmp_path):
    with pytest.raises(RawDataError, match=r"abbrev_types\.txt: cannot be read \(No such file"):
        SentenceSplitter(Path(tmp_path))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"collocations": "a\tb\nalone"}, r"collocations\.tab line 2 is 'alone', which is not two"),
        ({"collocations": "a\tb\tc"}, r"collocations\.tab line 1 is 'a\\tb\\tc'"),
        ({"ortho_context": "word\tmany"}, r"ortho_context\.tab line 1 is 'word\\tmany', which is"),
    ],
)
def test_a_broken_row_of_parameters_is_named(tmp_path, changed, message):
    with pytest.raises(RawDataError, match=message):
        SentenceSplitter(write_parameters(tmp_path, **changed))


def test_parameters_that_are_no_text_are_refused(tmp_path):
    write_parameters(tmp_path)
    (tmp_path / "sent_starters.txt").write_bytes(b"the\n\xff")
    with pytest.raises(RawDataError, match=r"sent_starters\.txt: not UTF-8 at byte 4"):
        SentenceSplitter(tmp_path)


def test_empty_parameters_are_parameters(tmp_path):
    for name in PUNKT_FILES:
        (tmp_path / name).touch()
    assert SentenceSplitter(tmp_path).split("A dr. Here. No") == ["A dr.", "Here.", "No"]
