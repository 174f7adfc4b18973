import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.config.corpus_files import SPLITS, CorpusFile, corpus_file


@given(
    language=st.sampled_from(["en", "ceb", "und", "zh-cn"]),
    split=st.sampled_from(SPLITS),
    total=st.integers(1, 99_999),
    data=st.data(),
)
def test_a_file_of_the_corpus_is_read_from_the_name_it_gets(language, split, total, data):
    file = CorpusFile(language, split, data.draw(st.integers(0, total - 1)), total)
    assert corpus_file(f"corpus/c4/{file.name}") == file


@pytest.mark.parametrize(
    "name",
    [
        "manifest.json",
        "EN-train-00000-of-00001.parquet",
        "en-test-00000-of-00001.parquet",
        "en-train-0-of-1.parquet",
        "en-train-00000-of-00001.parquet.tmp",
        "mine-en-train-00000-of-00001.parquet",
        "en-train-00000-of-00001.parquet\n",
    ],
)
def test_other_names_are_no_file_of_the_corpus(name):
    assert corpus_file(name) is None
