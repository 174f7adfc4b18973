"""Seconds of the auditor's questions on a synthetic graph of 100,000 artifacts, and on a real run.

    python benchmarks/lineage_speed.py [--artifacts 100000] [--checkout FOLDER] [--rounds 3]

Each question is a whole process, as a user starts it: interpreter, reading of all manifests, answer
as JSON. The synthetic graph has one cleaning job for 9 raw files and 10 cleaned ones, one job that
reads every cleaned file, and no `dvc.lock`. `--checkout` names a checkout with results of the demo
to measure as well. The first `verify` reads every file; the second uses the cached hashes. Wall and
CPU seconds are printed; if they differ, the machine had other work.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import interleaved_runs as runs

from t5repro.lineage.hashes import CACHE_FILE

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))

from made_graphs import large_run  # noqa: E402 a module of the tests, on the path since the line above

DEMO = "results/demo/evaluate_score/baseline/scores.json"


def main() -> None:
    """Time the questions and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--artifacts", type=int, default=100_000)
    parser.add_argument("--checkout", type=Path, help="with results of the demo")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        raw = large_run(Path(name), arguments.artifacts)
        scores = "results/r/evaluate_score/a/scores.json"
        rows += timed(Path(name), scores, raw, arguments.rounds)
    if arguments.checkout:
        raw = sorted((arguments.checkout / "data/crawl").iterdir())[0]
        shard = raw.relative_to(arguments.checkout).as_posix()
        rows += timed(arguments.checkout, DEMO, shard, arguments.rounds)
    print(runs.machine())
    print(f"load before: {os.getloadavg()[0]:.1f}")
    head = ["artifacts", "question", "wall, s", "CPU, s", "slowest round, s"]
    print(runs.table(head, rows))


def timed(folder: Path, scores: str, raw: str, rounds: int) -> list[list[str]]:
    """Return the rows of a folder: medians of the rounds."""
    questions = {
        "trace": ["trace", scores, "--json"],
        "verify, first": ["verify", "--json"],
        "verify, again": ["verify", "--json"],
        "impact": ["impact", raw, "--json"],
    }
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in questions}
    for _ in range(rounds):
        (folder / CACHE_FILE).unlink(missing_ok=True)
        for name, question in questions.items():
            seconds[name].append(ask(folder, question))
    count = artifacts(folder)
    return [
        [
            f"{count:,}",
            name,
            *(f"{median(column):.2f}" for column in zip(*rounds_seconds, strict=True)),
            f"{max(wall for wall, _ in rounds_seconds):.2f}",
        ]
        for name, rounds_seconds in seconds.items()
    ]


def ask(folder: Path, question: list[str]) -> tuple[float, float]:
    """Return the wall and CPU seconds of one question."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "t5repro", *question],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def artifacts(folder: Path) -> int:
    """Return the number of files in the manifests of a folder."""
    paths = set()
    for path in (folder / "results").rglob("*manifest.json"):
        paths.add(path.relative_to(folder).as_posix())
        paths |= {entry["path"] for entry in json.loads(path.read_text())["outputs"]}
    return len(paths)


if __name__ == "__main__":
    main()
