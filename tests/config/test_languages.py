"""Languages are codes of ISO 639; every setting and row that names one is checked alike."""

import json
from pathlib import Path

import pytest

from t5repro.c4.own_text.rows import read_rows
from t5repro.config.languages import is_language
from t5repro.config.load import load_settings
from t5repro.config.sections.corpus import TextRows
from t5repro.errors import RawDataError, SettingsError


@pytest.mark.parametrize("code", ["en", "zh-cn", "iw", "und", "ceb"])
def test_codes_of_languages_are_accepted(code: str) -> None:
    assert is_language(code)


WRONG = ("english", "xx", "EN", "en_us", "e", "", "en-", "xx-cn", "en\n")


@pytest.mark.parametrize("code", WRONG)
@pytest.mark.parametrize(
    "settings",
    [
        lambda code: {"c4.languages": [code]},
        lambda code: {"tokens.languages": [code]},
        lambda code: {"vocab.language_parts": {code: 1}},
        lambda code: {"c4.punkt_parameters": {code: "folder"}},
        lambda code: {"c4.bad_word_lists": {code: "file"}},
        lambda code: {"c4.punkt_language": code or "xx"},
        lambda code: {"corpus": {"files": ["a.txt"], "language": code or "xx"}},
    ],
)
def test_a_setting_that_names_no_language_is_refused(settings, code: str) -> None:
    with pytest.raises(SettingsError, match="a language is a code of ISO 639"):
        load_settings(settings(code))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("english", "; nearest: 'en'"),
        ("Englsh", "; nearest: 'en'"),
        ("deutsch", "; nearest: 'de'"),
        ("EN", "; nearest: 'en'"),
        ("zh_CN", "; nearest: 'zh-cn'"),
        ("xx", "; nearest: 'xh'"),
        ("1", ""),
    ],
)
def test_the_nearest_known_language_is_named(tmp_path: Path, code: str, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({"c4.languages": [code]})
    assert str(caught.value).endswith(f"such as 'zh-cn'{expected}")
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"text": "a", "lang": code}) + "\n")
    with pytest.raises(RawDataError, match=f"such as 'en'{expected}; correct it"):
        list(read_rows(path, path.name, TextRows(files=["rows.jsonl"], language_column="lang")))


@pytest.mark.parametrize("code", WRONG)
def test_a_row_that_names_no_language_is_refused(tmp_path: Path, code: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"text": "a", "lang": code}) + "\n")
    with pytest.raises(RawDataError, match=r"row 0|line 1"):
        list(read_rows(path, path.name, TextRows(files=["rows.jsonl"], language_column="lang")))


def test_every_language_that_langdetect_finds_is_known() -> None:
    langdetect = pytest.importorskip("langdetect")
    factory = langdetect.detector_factory
    factory.init_factory()
    assert [code for code in factory._factory.langlist if not is_language(code)] == []
