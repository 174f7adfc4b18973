"""Every hostile form of JSON in every kind of file: a message of every command, no traceback."""

from pathlib import Path

import pytest
from hostile_forms import FORMS
from made_graphs import SCORES
from made_records import sealed_run

from t5repro.cli.main import main

FILES = {
    "manifest": "results/r/evaluate_score/a/manifest.json",
    "record": "records/r/evaluate_score/a.json",
    "index": "records/r.index.json",
}
COMMANDS = {
    "verify": ("verify",),
    "verify --json": ("verify", "--json"),
    "trace": ("trace", SCORES),
    "diff": ("diff", ".", "."),
    "impact": ("impact", "data/tasks/one.tsv"),
}


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sealed_run(tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", FILES)
def test_no_command_ends_in_a_traceback_and_verify_names_the_file(
    sealed: Path,
    kind: str,
    form: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path = sealed / FILES[kind]
    honest = path.read_bytes()
    monkeypatch.chdir(sealed)
    path.write_bytes(FORMS[form])
    try:
        for name, words in COMMANDS.items():
            code = main(words)  # an exception fails the test
            printed = "".join(capfd.readouterr())
            assert not {"\x1b", "\x07"} & set(printed), name
            if name.startswith("verify"):
                assert code == 1, (name, printed)
                assert FILES[kind] in printed, name
    finally:
        path.write_bytes(honest)
