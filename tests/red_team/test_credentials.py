"""Attacks with credentials: none may reach a record, a manifest, git, an export or a page."""

import json
import string
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from t5repro.audit.withdraw import withdraw
from t5repro.cli.main import main
from t5repro.config.credentials import find_credential
from t5repro.config.load import load_run_file, load_settings
from t5repro.config.run_file import read_sources
from t5repro.config.validation import parse_engine, parse_stage
from t5repro.errors import SettingsError
from t5repro.lineage.redaction import redact

SECRET = "s3cr3tVALUE0123456789"  # noqa: S105 what must not be found
ORIGINS = (
    f"https://user:{SECRET}@host.example/data.zip",
    f"HTTPS://user:{SECRET}@host.example/data.zip",
    f"hTTp://{SECRET}@host.example/data.zip",
    f"by hand: https://u:{SECRET}@h.example?x=1",
    f"by hand: https://h.example/a?token={SECRET}",
    f"(see HTTPS://h.example/a?Token={SECRET})",
    f"s3://KEY:{SECRET}@bucket/a",
    f"gs://{SECRET}@bucket/a",
    f"//user:{SECRET}@host.example/a",
    f"https:\\\\user:{SECRET}@host.example",
    f"https://h.example/a?X-Amz-Signature={SECRET}&x=1",
    f"https://h.example/a?x=1&X-Amz-Credential={SECRET}",
    f"https://h.example/a?X%2DAmz%2DSignature={SECRET}",
    f"https://h.example/a?x%252damz%252dsignature={SECRET}",
    f"https://h.example/a?x-goog-signature={SECRET}",
    f"https://h.example/a?sv=1;sig={SECRET}",
    f"https://h.example/a#access_token={SECRET}",
    f"https://h.example/a?key={SECRET}",
    f"https%3A%2F%2Fu:{SECRET}%40h.example",
    f"from the mirror, api_key = {SECRET}",
    f"password={SECRET}",
    f"Authorization: Bearer {SECRET}",
    f"Authorization: Basic {SECRET}",
    "the key AKIAIOSFODNN7EXAMPLE of the bucket",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "-----BEGIN RSA PRIVATE KEY-----",
)
HARMLESS = (
    "https://data.commoncrawl.org/crawl-data/CC-MAIN-2019-18/wet.paths.gz",
    "https://gluebenchmark.com/tasks",
    "by hand: https://www.example.org/terms?lang=en&page=2",
    "mail data@example.org, or see https://example.org/@group/a",
    "gs://bucket/path/file.gz",
    "abfss://container@account.dfs.core.windows.net/path",
    "the tokens of the corpus, a secret garden, a key = value file",
    "the basic rules",
    "question: {a} passage: {b}",
)


def of_origin(origin: str) -> dict[str, Any]:
    source = {"origin": origin, "licence": "none", "files": {"a.zip": ""}}
    return {"data": {"sources": [source]}}


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_credential_in_an_origin_is_refused_and_not_printed(origin: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load_settings(of_origin(origin))
    assert "'data.sources.0.origin' contains" in str(raised.value)
    assert ".dvc/config.local" in str(raised.value)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_record_of_older_code_loses_its_credential_in_exports(origin: str) -> None:
    hidden = redact({"origin": origin, origin: 1})
    assert SECRET not in json.dumps(hidden)
    assert "AKIAIOSFODNN7EXAMPLE" not in json.dumps(hidden)
    assert redact(origin) == redact(origin)  # equal values stay equal


@pytest.mark.parametrize("origin", HARMLESS)
def test_an_origin_without_a_credential_is_accepted(origin: str) -> None:
    assert find_credential(origin) is None
    assert load_settings(of_origin(origin)).data.sources[0].origin == origin


@pytest.mark.parametrize(
    "change",
    [
        {"data.sources": [{"origin": "x", "licence": ORIGINS[0], "files": {}}]},
        {"data.sources": [{"origin": "x", "licence": "x", "files": {ORIGINS[0]: ""}}]},
        {"data.folder": ORIGINS[0]},
        {"data.source": ORIGINS[6]},
        {"c4.crawl_prefix": ORIGINS[6]},
        {"devices.cloud_folder": ORIGINS[7]},
        {"c4.spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": SECRET}}},
        {"c4.spark": {"conf": {"spark.authenticate.secret": SECRET}}},
        {"experiments": [{"name": "a", "change": {"c4.crawl_prefix": ORIGINS[0]}}]},
        {"run": {"name": ORIGINS[0]}},
        {"unknown": ORIGINS[0]},
    ],
)
def test_a_credential_in_any_setting_is_refused_and_not_printed(change: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="contains") as raised:
        load_settings({}, change)
    assert SECRET not in str(raised.value)


def test_the_refusal_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(of_origin(ORIGINS[0])), encoding="utf-8")
    with pytest.raises(SettingsError, match=r"run\.yaml:\d+: setting 'data\.sources\.0\.origin'"):
        load_run_file(path)


def test_an_included_list_of_sources_is_refused_as_well(tmp_path: Path) -> None:
    path = tmp_path / "sources.yaml"
    path.write_text(yaml.safe_dump(of_origin(ORIGINS[0])["data"]["sources"]), encoding="utf-8")
    with pytest.raises(SettingsError, match="entry 0: setting 'origin' contains") as raised:
        read_sources(path)
    assert SECRET not in str(raised.value)


def test_a_job_that_is_started_by_hand_refuses_it_before_it_writes_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--settings", json.dumps(of_origin(ORIGINS[0])), "--manifest", "m.json"]
    assert main(["stage", "data", *words, "--log", "logs/run/data.log"]) == 2
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or SECRET not in path.read_text(encoding="utf-8")
    assert SECRET not in capfd.readouterr().err


def test_settings_of_an_engine_are_checked() -> None:
    with pytest.raises(SettingsError, match="contains a credential by its name"):
        parse_engine(json.dumps({"spark": {"conf": {"fs.s3a.access.key": SECRET}}}))
    with pytest.raises(SettingsError, match="Invalid JSON"):
        parse_stage("data", "{")


def test_the_reason_of_a_withdrawal_is_checked(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="'reason' contains"):
        withdraw(tmp_path, "a.tsv", reason=f"asked at {ORIGINS[0]}")


WORD = st.text(string.ascii_letters + string.digits + "-_.~", min_size=1, max_size=12)
PROSE = st.text(string.ascii_letters + " .,:;()[]äß中", max_size=20)
PARAMETER = st.sampled_from(
    ["token", "ToKeN", "sig", "access_token", "X-Amz-Security-Token", "password", "client_secret"]
)


@given(before=PROSE, after=PROSE, scheme=WORD, user=WORD, host=WORD, name=PARAMETER, data=st.data())
def test_no_surrounding_text_case_or_encoding_hides_a_credential(
    before: str, after: str, scheme: str, user: str, host: str, name: str, data: st.DataObject
) -> None:
    scheme = "h" + scheme.replace("_", "").replace("~", "")
    with_user = f"{scheme}://{user}:{SECRET}@{host}"
    with_parameter = f"{scheme}://{host}/path?a=b&{name}={SECRET}"
    address = data.draw(st.sampled_from([with_user, with_parameter]))
    encoded = data.draw(st.sampled_from([address, quote(address), quote(quote(address))]))
    text = f"{before} {encoded} {after}"
    assert find_credential(text) is not None
    with pytest.raises(SettingsError) as raised:
        load_settings(of_origin(text))
    assert SECRET not in str(raised.value)
    assert SECRET not in redact(text)
