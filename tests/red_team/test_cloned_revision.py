"""A revision holds in a clone that pulled it, and what is missing there is answered with a cure."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from made_graphs import RESULT, WEIGHTS, write
from made_records import commit, git

from t5repro.cli.main import main
from t5repro.files import write_json
from t5repro.lineage.dvc_cache import object_path
from t5repro.lineage.findings import Verdict
from t5repro.lineage.hashes import hash_file
from t5repro.lineage.store import Revision, open_store
from t5repro.lineage.verify import verify_tree
from t5repro.lineage.verify_revision import verify_revision

pytestmark = pytest.mark.workflow
SETTINGS = "configs/resolved/r.json"


def dvc(folder: Path, *words: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "dvc", *words],
        cwd=folder,
        env={**os.environ, "DVC_NO_ANALYTICS": "1"},
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert ran.returncode == 0, ran.stdout


def verified(folder: Path, *, deep: bool = False) -> Verdict:
    revision = open_store(folder, "HEAD")
    assert isinstance(revision, Revision)
    return verify_revision(revision, deep=deep)


@pytest.fixture(scope="session")
def origin(sealed_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sealed run with a generated file that git keeps, pushed by DVC to a folder."""
    folder = tmp_path_factory.mktemp("pushed")
    run = Path(shutil.copytree(sealed_once, folder / "origin", symlinks=True))
    write_json(run / SETTINGS, {"settings": 1})
    md5 = hash_file(run / SETTINGS).md5
    with (run / "dvc.lock").open("a") as lock:
        out = f"{{path: {SETTINGS}, hash: md5, md5: {md5}}}"
        lock.write(f"  settings:\n    cmd: run\n    outs:\n    - {out}\n")
    with (run / "dvc.yaml").open("a") as pipeline:
        out = f"{SETTINGS}:\n        cache: false"
        pipeline.write(f"  settings:\n    cmd: run\n    outs:\n    - {out}\n")
    write(run, ".dvc/config", f"[core]\n    remote = store\n{remote(folder / 'store')}")
    commit(run, "with DVC")
    dvc(run, "push", "--quiet")
    return run


def remote(store: Path) -> str:
    return f"['remote \"store\"']\n    url = {store}\n"


@pytest.fixture(scope="session")
def pulled_once(origin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pulled") / "clone"
    git(folder.parent, "clone", "--quiet", str(origin), str(folder))
    dvc(folder, "pull", "--quiet")
    return folder


@pytest.fixture
def pulled(pulled_once: Path, tmp_path: Path) -> Path:
    """A clone that pulled everything."""
    return Path(shutil.copytree(pulled_once, tmp_path / "clone", symlinks=True))


@pytest.fixture
def cloned(origin: Path, tmp_path: Path) -> Path:
    """A clone that pulled nothing."""
    git(tmp_path, "clone", "--quiet", str(origin), str(tmp_path / "clone"))
    return tmp_path / "clone"


def test_a_pulled_revision_holds(pulled: Path) -> None:
    for deep in (False, True):
        assert verified(pulled, deep=deep).findings == ()
    assert verify_tree(pulled).findings == ()


def test_before_the_pull_the_cure_helps(
    cloned: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(cloned)
    assert main(["verify", "HEAD"]) == 1
    assert "get it with dvc fetch --all-commits" in capsys.readouterr().out
    dvc(cloned, "fetch", "--all-commits", "--quiet")
    assert main(["verify", "HEAD"]) == 0


def test_without_a_remote_the_cure_is_another(cloned: Path) -> None:
    write(cloned, ".dvc/config", "")
    finding = verified(cloned).findings[0]
    assert finding.kind == "missing"
    assert "no remote of DVC is configured to fetch it from" in finding.message


def test_an_object_of_the_cache_that_was_altered_is_named(pulled: Path) -> None:
    path = object_path(pulled, hash_file(pulled / WEIGHTS).md5)
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(bytes(data))
    assert {finding.path for finding in verified(pulled, deep=True).findings} == {WEIGHTS}


def test_records_of_a_revision_are_checked(pulled: Path) -> None:
    record = pulled / "records/r/finetune/a.json"
    record.write_text(record.read_text().replace('"attempt": 1', '"attempt": 2'))
    commit(pulled, "an edited record")
    (finding,) = verified(pulled).findings
    assert (finding.kind, finding.path) == ("altered", "records/r/finetune/a.json")
    record.unlink()
    commit(pulled, "a deleted record")
    (finding,) = verified(pulled).findings
    assert (finding.kind, finding.path) == ("missing", "records/r/finetune/a.json")


def test_settings_that_changed_after_the_results_are_a_warning(pulled: Path) -> None:
    write_json(pulled / SETTINGS, {"settings": 2})
    commit(pulled, "other settings")
    verdict = verified(pulled)
    assert verdict.findings == ()
    assert SETTINGS in {warning.path for warning in verdict.warnings}
    (pulled / SETTINGS).unlink()
    commit(pulled, "no settings")
    (finding,) = verified(pulled).findings
    assert (finding.kind, finding.path) == ("missing", SETTINGS)
    assert (pulled / RESULT).is_dir()
