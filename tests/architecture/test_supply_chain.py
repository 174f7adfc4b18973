"""What is installed or run from elsewhere is named by its hash."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
COMMIT = re.compile(r"uses: \S+@[0-9a-f]{40} # v\d")


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_package_of_a_lock_has_a_hash(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    packages = [line for line in text.splitlines() if re.match(r"[A-Za-z0-9]", line)]
    assert packages
    assert [line for line in packages if "--hash=sha256:" not in line or "==" not in line] == []


def test_make_installs_packages_from_locks_with_hashes_only() -> None:
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    installing = [line for line in lines if "pip install" in line]
    assert len(installing) == 10
    own = [line for line in installing if "--require-hashes" not in line]
    assert {line.split("--no-deps")[1] for line in own} == {" --no-build-isolation --editable ."}


@pytest.mark.parametrize("workflow", ["check", "release"])
def test_actions_of_the_hosted_workflows_are_commits(workflow: str) -> None:
    text = (ROOT / f".github/workflows/{workflow}.yml").read_text(encoding="utf-8")
    uses = [line for line in text.splitlines() if "uses:" in line]
    assert uses
    assert [line for line in uses if not COMMIT.search(line)] == []
