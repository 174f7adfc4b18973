"""Seconds of the auditor's questions on a synthetic graph of 100,000 artifacts, and on a real run.

    python benchmarks/lineage_speed.py [--artifacts 100000] [--checkout FOLDER] [--rounds 5]

Each question is a whole process, as a user starts it: interpreter, reading of all manifests, answer
as JSON. It is asked on an idle machine, and then while two processes keep two cores busy. Wall and
CPU seconds are medians of the rounds; CPU seconds include git, DVC and Snakemake. The synthetic
graph has one cleaning job for 9 raw files and 10 cleaned ones, one job that reads every cleaned
file, and no `dvc.lock`. `--checkout` names a clone with the committed results of the demo; its URL,
domain and stages are asked for as well. A question with "first" runs without what earlier ones have
remembered in `work/lineage`. Seals and dry runs change nothing in a clone that is up to date.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import interleaved_runs as runs
import pyarrow.parquet as pq

from t5repro.lineage.hashes import CACHE_FILE

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))

from made_graphs import large_run  # noqa: E402 a module of the tests, on the path since the line above

DEMO = "results/demo"
T5REPRO = [sys.executable, "-m", "t5repro"]
SNAKEMAKE = [sys.executable, "-m", "snakemake"]
BUSY_PROCESSES = 2
Questions = dict[str, list[str]]


def main() -> None:
    """Time the questions and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--artifacts", type=int, default=100_000)
    parser.add_argument("--checkout", type=Path, help="with results of the demo")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(runs.machine())
    print(f"load before: {os.getloadavg()[0]:.1f}")
    rows = []
    if arguments.checkout:
        rows += timed(arguments.checkout, demo_questions(arguments.checkout), arguments.rounds)
    with tempfile.TemporaryDirectory() as name:
        raw = large_run(Path(name), arguments.artifacts)
        scores = "results/r/evaluate_score/a/scores.json"
        rows += timed(Path(name), graph_questions(scores, raw), arguments.rounds)
    head = ["artifacts", "question", "CPU alone", "wall alone", "CPU beside", "wall beside"]
    print(runs.table(head, rows))


def graph_questions(scores: str, raw: str) -> Questions:
    """Return the questions that need only manifests."""
    return {
        "trace of a score": [*T5REPRO, "trace", scores, "--json"],
        "verify, first": [*T5REPRO, "verify", "--json"],
        "verify": [*T5REPRO, "verify", "--json"],
        "impact of a file": [*T5REPRO, "impact", raw, "--json"],
    }


def demo_questions(checkout: Path) -> Questions:
    """Return all questions about a run of the demo."""
    raw = sorted((checkout / "data/crawl").iterdir())[0].relative_to(checkout).as_posix()
    shard = sorted((checkout / DEMO / "c4/baseline").glob("en-train-*.parquet"))[0]
    url = pq.read_table(shard, columns=["url"])["url"][0].as_py()
    domain = urlsplit(url).netloc.removeprefix("www.")
    name = shard.relative_to(checkout).as_posix()
    return {
        **graph_questions(f"{DEMO}/evaluate_score/baseline/scores.json", raw),
        "verify --deep": [*T5REPRO, "verify", "--deep"],
        "trace of a URL": [*T5REPRO, "trace", url],
        "trace of a URL, --steps": [*T5REPRO, "trace", url, "--steps"],
        "trace of a shard, --pages": [*T5REPRO, "trace", name, "--pages"],
        "impact of a domain": [*T5REPRO, "impact", domain],
        "impact of a file, all revisions": [*T5REPRO, "impact", raw, "--all-revisions"],
        "withdraw a domain, --dry-run": [
            *T5REPRO, "withdraw", domain, "--reason", "benchmark", "--dry-run",
        ],
        "diff of the working tree": [*T5REPRO, "diff", ".", "."],
        "export as PROV": [*T5REPRO, "export", "--format", "prov"],
        "certificate, first": [*T5REPRO, "certificate"],
        "certificate": [*T5REPRO, "certificate"],
        "dvc check": [*T5REPRO, "dvc", "check"],
        "seal": [*T5REPRO, "seal"],
        "snakemake -n": [*SNAKEMAKE, "--profile", "local", "-n"],
    }  # fmt: skip


def timed(folder: Path, questions: Questions, rounds: int) -> list[list[str]]:
    """Return the rows of a folder: medians of the rounds, on an idle and on a busy machine."""
    idle = measure(folder, questions, rounds)
    with busy_processes():
        busy = measure(folder, questions, rounds)
    count = f"{artifacts(folder):,}"
    return [
        [count, name, *(f"{seconds:.2f}" for seconds in (*idle[name], *busy[name]))]
        for name in questions
    ]


def measure(folder: Path, questions: Questions, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the median CPU and wall seconds of each question."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in questions}
    for _ in range(rounds):
        for name, question in questions.items():
            if name.endswith("first"):
                shutil.rmtree(folder / CACHE_FILE.parent, ignore_errors=True)
            seconds[name].append(ask(folder, question))
    return {
        name: (median(cpu for cpu, _ in values), median(wall for _, wall in values))
        for name, values in seconds.items()
    }


def ask(folder: Path, question: list[str]) -> tuple[float, float]:
    """Return the CPU and wall seconds of one question."""
    usage_before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.run(
        question,
        cwd=folder,
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    wall = time.perf_counter() - begin
    if process.returncode not in (0, 1):  # 1: findings
        raise SystemExit(f"{' '.join(question)}: {process.stderr.decode()}")
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime,
        wall,
    )


@contextlib.contextmanager
def busy_processes() -> Iterator[None]:
    """Keep cores busy during the block."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(BUSY_PROCESSES)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def artifacts(folder: Path) -> int:
    """Return the number of files in the manifests of a folder."""
    paths = set()
    for path in (folder / "results").rglob("*manifest.json"):
        paths.add(path.relative_to(folder).as_posix())
        paths |= {entry["path"] for entry in json.loads(path.read_text())["outputs"]}
    return len(paths)


if __name__ == "__main__":
    main()
