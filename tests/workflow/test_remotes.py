"""Results move between checkouts: a folder, an S3-protocol server, or a shared cache."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from clones import artifact_hashes, commit, copy_clone, run_in, snakemake
from s3_server import BUCKET, CREDENTIALS, serve_bucket

pytestmark = pytest.mark.workflow
NOTHING = "Nothing to be done"
SST2 = "data/tasks/glue/SST-2/train.tsv"


@pytest.fixture
def s3_address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an S3-protocol server with an empty bucket."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with serve_bucket() as address:
        yield address


def ran_well(folder: Path, *words: str, **variables: str) -> str:
    """Run a command in a clone and return what it printed."""
    ran = run_in(folder, *words, **variables)
    assert ran.returncode == 0, f"{words}: {ran.stdout[-3000:]}"
    return ran.stdout


def copy_committed(finished: Path, folder: Path) -> Path:
    """Return a copy of a finished clone whose results are committed."""
    commit(copy_clone(finished, folder), "results")
    return folder


def clone_of(origin: Path, folder: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", origin, folder], check=True)
    return folder


def expect_nothing_to_do(clone: Path, origin: Path) -> None:
    """Fail unless the clone has the results and both tools, diff, verify and metrics answer."""
    assert NOTHING in snakemake(clone, "-n").stdout
    assert "up to date" in ran_well(clone, "dvc", "status")
    for words in (["repro", "--dry"], ["repro"]):
        printed = ran_well(clone, "dvc", *words)
        assert "Running stage" not in printed
        assert "up to date" in printed
    assert artifact_hashes(clone) == artifact_hashes(origin)
    ran_well(clone, "t5repro", "diff", "HEAD", "HEAD")
    ran_well(clone, "t5repro", "verify", "HEAD")
    assert json.loads(ran_well(clone, "dvc", "metrics", "diff", "--all", "--json", "HEAD"))
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=clone, check=True, stdout=subprocess.PIPE
    )
    assert status.stdout == b""


def use_server(folder: Path, address: str) -> None:
    ran_well(folder, "dvc", "remote", "add", "--local", "-d", "store", f"s3://{BUCKET}/results")
    ran_well(folder, "dvc", "remote", "modify", "--local", "store", "endpointurl", address)


def test_results_pushed_to_an_s3_server_are_pulled_by_a_clone(
    finished: Path, tmp_path: Path, s3_address: str
) -> None:
    """A folder as remote: tests/workflow/test_versions.py."""
    origin = copy_committed(finished, tmp_path / "origin")
    use_server(origin, s3_address)
    assert "pushed" in ran_well(origin, "dvc", "push")
    clone = clone_of(origin, tmp_path / "clone")
    use_server(clone, s3_address)
    question = ("t5repro", "predict", "results/demo", "sst2 sentence: a joy")
    answer = ran_well(origin, *question).splitlines()[-1]
    # The weights of a revision come from the remote; the working tree stays as it is.
    assert ran_well(clone, *question, "--rev", "HEAD").splitlines()[-1] == answer
    assert not (clone / "results").exists()
    ran_well(clone, "dvc", "pull")
    expect_nothing_to_do(clone, origin)


@pytest.mark.parametrize("level", ["global", pytest.param("system", marks=pytest.mark.slow)])
def test_a_cache_that_checkouts_share_serves_a_clone_without_a_remote(
    finished: Path, tmp_path: Path, level: str
) -> None:
    folders = {
        f"DVC_{name.upper()}_CONFIG_DIR": str(tmp_path / name) for name in ("global", "system")
    }
    shared = tmp_path / "shared"
    origin = copy_committed(finished, tmp_path / "origin")
    shutil.rmtree(origin / ".dvc/cache")
    (tmp_path / level).mkdir()
    ran_well(origin, "dvc", "config", f"--{level}", "cache.dir", str(shared), **folders)
    ran_well(origin, "t5repro", "seal", **folders)
    assert not (origin / ".dvc/cache").exists()
    clone = clone_of(origin, tmp_path / "clone")
    ran_well(clone, "dvc", "checkout", **folders)
    assert artifact_hashes(clone) == artifact_hashes(origin)
    assert "up to date" in ran_well(clone, "dvc", "status", **folders)
    ran_well(clone, "t5repro", "verify", "HEAD", **folders)
    withdrawal = ["t5repro", "withdraw", SST2, "--reason", "ticket 7", "--dry-run", "--json"]
    objects = json.loads(ran_well(clone, *withdrawal, **folders))["cache"]
    assert len(objects) > 20
    assert all(Path(path).is_relative_to(shared) for path in objects)
