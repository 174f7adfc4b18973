"""Every hostile form of the YAML files behind results: a message of `verify`, no crash, no pass."""

from pathlib import Path

import pytest
from hostile_forms import FORMS
from made_records import sealed_run

from t5repro.cli.main import main

FILES = ("dvc.lock", "data.dvc", "withdrawn/pages.yaml", "withdrawn/files.yaml")
# A list without entries says the same; of 10 MB the parser needs long.
HARMLESS = ("empty", "spaces", "mapping", "null", "10 MB")


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sealed_run(tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("form", [form for form in FORMS if form not in HARMLESS])
@pytest.mark.parametrize("name", FILES)
def test_verify_names_a_file_that_cannot_be_read(
    sealed: Path,
    name: str,
    form: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path = sealed / name
    honest = path.read_bytes() if path.exists() else b""
    path.parent.mkdir(exist_ok=True)
    monkeypatch.chdir(sealed)
    path.write_bytes(FORMS[form])
    try:
        assert main(["verify"]) in (1, 2)  # an exception fails the test
        printed = "".join(capfd.readouterr())
        assert name in printed
        assert not {"\x1b", "\x07"} & set(printed)
    finally:
        path.write_bytes(honest)


def test_half_of_a_lock_is_named(sealed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sealed)
    for name in ("dvc.lock", "data.dvc"):
        honest = (sealed / name).read_bytes()
        for length in range(1, len(honest), 7 if name == "data.dvc" else 397):
            (sealed / name).write_bytes(honest[:length])
            assert main(["verify"]) in (1, 2), (name, length)
        (sealed / name).write_bytes(honest)
