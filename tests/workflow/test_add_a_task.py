"""`docs/add_a_task.md`, walked: its commands run, their output compared."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from clones import ROOT, artifact_hashes, copy_clone, run_in, snakemake

from t5repro.files import read_json, sha256_of

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
REFUSED = ("t5repro stage tasks ", "t5repro tasks new gap.tsv")  # the page shows what they say


class Step(NamedTuple):
    """A command and what the page says it prints."""

    command: str
    text: str


def steps_of(page: str) -> list[Step]:
    return list(_steps(page))


def _steps(page: str) -> Iterator[Step]:
    for block in BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, text = part.partition("\n")
            yield Step(command, text)


def hashes_of_package(folder: Path) -> dict[str, str]:
    return {path.name: sha256_of(path) for path in sorted((folder / "src").rglob("*.py"))}


def test_the_walk_does_what_the_page_says(finished: Path, tmp_path: Path) -> None:
    folder = copy_clone(finished, tmp_path / "clone")
    steps = steps_of((ROOT / "docs" / "add_a_task.md").read_text("utf-8"))
    assert len(steps) == 15
    before = hashes_of_package(folder)
    demo = artifact_hashes(folder)
    printed: dict[str, str] = {}
    for command, text in steps:
        ran = run_in(folder, "bash", "-c", command)
        assert (ran.returncode == 0) != command.startswith(REFUSED), ran.stdout
        for line in text.splitlines():  # what goes to standard error may come between
            assert line in ran.stdout.splitlines(), (command, ran.stdout)
        printed[command] = ran.stdout
    assert "c4" not in " ".join(path.name for path in (folder / "results/feelings").iterdir())
    assert list((folder / "out").iterdir()) == []
    (scores,) = folder.glob("results/feelings/evaluate_score/*/scores.json")
    entry = read_json(scores)["tasks"]["feelings"]
    assert entry["examples"] == 24
    assert entry["primary_metric"] == "accuracy"
    (answer,) = [text for command, text in printed.items() if "a joy" in command]
    assert answer.splitlines()[-1].strip() or "padded_tokens" in answer
    assert hashes_of_package(folder) == before  # the package is as it was
    after = artifact_hashes(folder)
    assert {path: after[path] for path in demo} == demo  # and so is the run that it started from
    # The weights of the run are those that it started from, bit for bit.
    start, weights = (
        f"results/{run}/pretrain/baseline/weights.safetensors" for run in ("demo", "feelings")
    )
    assert after[start] == after[weights]
    # Other weights at that place stop the run, and the error names the file.
    (folder / start).write_bytes(b"other weights")
    ran = snakemake(folder, "--configfile", "feelings.yaml")
    assert ran.returncode != 0
    assert f"{start} has sha256" in ran.stdout
