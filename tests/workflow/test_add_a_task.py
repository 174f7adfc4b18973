"""`docs/add_a_task.md`, walked: its files are written, its commands run, their output compared."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from clones import ROOT, environment

from t5repro.files import read_json, sha256_of

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

BLOCK = re.compile(
    r"(?:^`(?P<path>[^`\n]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
REFUSED = "t5repro tasks "  # the page shows what it says of a broken row


class Step(NamedTuple):
    """A file to write, or a command and what the page says it prints."""

    path: str
    command: str
    text: str


def steps_of(page: str) -> list[Step]:
    steps = []
    for block in BLOCK.finditer(page):
        if block["path"]:
            steps.append(Step(block["path"], "", block["body"]))
        elif block["kind"] == "console":
            for part in re.split(r"^\$ ", block["body"], flags=re.M)[1:]:
                command, _, printed = part.partition("\n")
                steps.append(Step("", command, printed))
    return steps


def hashes_of_package(folder: Path) -> dict[str, str]:
    return {path.name: sha256_of(path) for path in sorted((folder / "src").rglob("*.py"))}


def test_the_walk_does_what_the_page_says(fresh: Path) -> None:
    steps = steps_of((ROOT / "docs" / "add_a_task.md").read_text("utf-8"))
    assert len([step for step in steps if step.path]) == 3
    assert len([step for step in steps if step.command]) == 11
    before = hashes_of_package(fresh)
    for step in steps:
        if step.path:
            target = fresh / step.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(step.text, "utf-8")
            continue
        ran = subprocess.run(
            ["bash", "-c", step.command],
            cwd=fresh,
            env=environment(fresh),
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert (ran.returncode == 0) != step.command.startswith(REFUSED), ran.stdout
        assert step.text in ran.stdout, step.command
        if step.command.startswith("t5repro show"):
            assert "reviews" in ran.stdout
    assert list((fresh / "out").iterdir()) == []
    (scores,) = fresh.glob("results/reviews/evaluate_score/*/scores.json")
    entry = read_json(scores)["tasks"]["reviews"]
    assert entry["examples"] == 4
    assert entry["primary_metric"] == "accuracy"
    assert entry["baseline"] == {"kind": "majority", "metrics": {"accuracy": 50.0, "f1": 0.0}}
    assert hashes_of_package(fresh) == before  # the package is as it was
