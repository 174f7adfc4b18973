"""C4 with more input and more workers: time and peak memory of each rule.

    python benchmarks/c4_scaling.py --wet FILE --punkt FOLDER/punkt_tab/english \
        --bad-words FOLDER/en.25e679f

The input consists of copies of one WET file with different URLs and lines, so that a copy is as
much work as the original and not a duplicate. Every job is a separate process, as in a run.
"""

import argparse
import gzip
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import interleaved_runs as runs

sys.path.insert(0, str(Path(__file__).parent / "peers"))
import c4_ours

from t5repro.c4.wet.pages import read_pages

RECORD = "WARC/1.0\r\nWARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n\r\n{text}\r\n\r\n"


class Cost(NamedTuple):
    """Wall-clock seconds and peak resident memory in MB of a process."""

    seconds: float
    megabytes: float


def copies(wet: Path, count: int, folder: Path) -> list[Path]:
    """Write `count` WET files like `wet` without common URLs and lines; return them."""
    pages = [page for page in read_pages(wet) if page.fault is None]
    files = []
    for number in range(count):
        files.append(folder / f"{number:03}.warc.wet.gz")
        with files[-1].open("wb") as handle:
            for page in pages:
                record = RECORD.format(
                    url=re.sub("^(https?://)", rf"\g<1>{number}.", page.url),
                    date=page.timestamp,
                    text="\n".join(f"Copy {number}: {line}" for line in page.text.split("\n")),
                )
                handle.write(gzip.compress(record.encode(), 6))
    return files


def run(step: str, folder: Path, shards: list[str], options: argparse.Namespace) -> Cost:
    """Run a rule in a process; `shards` are the WET or cleaned files of its job."""
    command = [sys.executable, __file__, "--step", step, "--folder", str(folder)]
    command += [
        "--punkt",
        str(options.punkt),
        "--bad-words",
        str(options.bad_words),
        "--wet",
        *shards,
    ]
    begin = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return Cost(time.perf_counter() - begin, usage.ru_maxrss / 1024)


def run_job(options: argparse.Namespace) -> None:
    """Run one job in this process."""
    options.rules = "tfds"
    rules = {"c4_clean": c4_ours.run_clean, "c4_dedup": c4_ours.run_dedup, "c4": c4_ours.run_corpus}
    rules[options.step](options, options.folder, options.wet)


def measure(
    wet: list[Path], *, shards: int, workers: int, options: argparse.Namespace
) -> list[str]:
    """Return a row: all rules for `wet`, cleaned by `shards` jobs on `workers` workers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files_of_jobs = [[str(path) for path in wet[job::shards]] for job in range(shards)]
        begin = time.perf_counter()
        with ThreadPoolExecutor(workers) as pool:
            cleaned = list(
                pool.map(
                    lambda files_of_job: run("c4_clean", folder, files_of_job, options),
                    files_of_jobs,
                )
            )
        cleaning = time.perf_counter() - begin
        files = sorted(str(path) for path in folder.glob("[0-9]*.parquet"))
        dedup = run("c4_dedup", folder, files, options)
        corpus = run("c4", folder, files, options)
    return [
        str(len(wet)),
        str(shards),
        str(workers),
        f"{cleaning:.1f}",
        f"{max(cost.megabytes for cost in cleaned):.0f}",
        f"{dedup.seconds:.1f}",
        f"{dedup.megabytes:.0f}",
        f"{corpus.seconds:.1f}",
        f"{corpus.megabytes:.0f}",
    ]


def main(options: argparse.Namespace) -> None:
    """Measure and print the table."""
    titles = ["WET files", "jobs", "workers", "c4_clean s", "MB", "c4_dedup s", "MB", "c4 s", "MB"]
    with tempfile.TemporaryDirectory() as name:
        files = copies(options.wet[0], options.times, Path(name))
        print(
            f"copies of {options.wet[0].name}; each job a process, its start included; "
            f"{runs.machine()}\n"
        )
        rows = [
            measure(files[:1], shards=1, workers=1, options=options),
            measure(files, shards=1, workers=1, options=options),
            measure(files, shards=options.times, workers=1, options=options),
            measure(files, shards=options.times, workers=2, options=options),
        ]
    print(runs.table(titles, rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wet", type=Path, nargs="+", required=True)
    parser.add_argument("--punkt", type=Path, required=True)
    parser.add_argument("--bad-words", type=Path, required=True)
    parser.add_argument("--times", type=int, default=10, help="copies of the file")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    run_job(options) if options.step else main(options)
