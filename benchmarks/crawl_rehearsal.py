"""A small part of a crawl through `c4_dedup` and `c4`: tasks, shuffled bytes, time, disk, memory.

    python benchmarks/crawl_rehearsal.py --pages 250000 500000 --buckets 4096

The cleaned files are synthetic: random keys, partly repeated with Zipf's frequencies, and pages of
random English words. Each rule runs in a process of its own, on this machine and on Spark; Spark's
event log lists the tasks and the bytes that they moved. A tenth of a crawl costs what the largest
number of pages costs beyond the smallest, by the page; the last table multiplies the largest
number's rows by the number of pages of a whole crawl.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import interleaved_runs as runs
import numpy as np
import pyarrow as pa

from t5repro.c4 import tables, write
from t5repro.c4.clean import cleaned_writer
from t5repro.c4.dedup import key_rows
from t5repro.c4.dedup.spill import MAX_BUCKETS
from t5repro.c4.deduplicate import deduplicate
from t5repro.c4.keys import md5
from t5repro.c4.reasons import LINE_REASONS
from t5repro.c4.wet.reader import CleanTally
from t5repro.config.schema import Settings
from t5repro.config.sections.c4 import SparkSettings
from t5repro.config.stage_settings import stage_model, stage_settings
from t5repro.jobs.corpus import CorpusJob, DedupJob

CRAWL_PAGES = 2_550_000_000  # CC-MAIN-2019-18
URL_COPIES = 0.05  # share of the pages whose URL another page has
SHORTENED = 0.45  # share of the pages with repeated units
REPEATED = 0.6  # share of the units of these pages
ZIPF = 1.15
POLL_SECONDS = 0.25
WORDS = (
    *("the", "of", "and", "to", "in", "is", "was", "for", "on", "with", "that", "this", "from"),
    *("they", "have", "been", "were", "which", "their", "would", "about", "there", "other", "some"),
    *("people", "time", "year", "house", "water", "small", "great", "never", "early", "before"),
    *("garden", "winter", "summer", "school", "city", "river", "market", "children", "family"),
)
# The shuffles of `c4_dedup` in their order, with the bytes of a row in Spark's memory: 8 for nulls
# and 8 for each column of `c4/spark/dedup.py`. Decisions have bytes of any length.
SHUFFLES = {"URLS": 80, "COPIES of pages": 40, "UNITS": 56, "COPIES of units": 40, "DECISIONS": 0}


class Cost(NamedTuple):
    """Use of a process and its children; disk and memory are the most bytes at any time."""

    seconds: float
    processor: float
    disk: int
    memory: int


def write_cleaned(folder: Path, pages: int, shards: int, units: int) -> None:
    """Write synthetic cleaned files.

    Args:
        folder: receives them.
        pages: number of pages of all files.
        shards: number of files.
        units: units of text of a page.
    """
    for shard in range(shards):
        random = np.random.default_rng(shard)
        count = pages // shards
        path = folder / f"{shard:05d}.parquet"
        with cleaned_writer(path, CleanTally()) as writer:
            groups = (
                (batch, [len(text) for text in batch.column("text").to_pylist()])
                for batch in _batches(random, shard, count, pages, units)
            )
            for group in tables.row_groups(groups):
                writer.write_table(group)


def _batches(
    random: np.random.Generator, shard: int, count: int, pages: int, units: int
) -> Iterator[pa.RecordBatch]:
    for first in range(0, count, tables.GROUP_PAGES):
        size = min(tables.GROUP_PAGES, count - first)
        numbers = shard * count + np.arange(first, first + size)
        # A copy has the URL of any page of the crawl.
        copies = random.random(size) < URL_COPIES
        urls = [
            f"http://page/{n}" for n in np.where(copies, random.integers(0, pages, size), numbers)
        ]
        shared = (random.random((size, 1)) < SHORTENED) & (random.random((size, units)) < REPEATED)
        keys = random.integers(0, 1 << 64, (size, units, 2), dtype=np.uint64)
        keys[shared] = (random.zipf(ZIPF, int(shared.sum())) % pages).astype(np.uint64)[:, None]
        keys *= np.uint64(0x9E3779B97F4A7C15)  # spreads the small numbers
        words = np.array(WORDS)[random.integers(0, len(WORDS), (size, units, 10))]
        columns: dict[str, Any] = {
            "file": [f"{shard}.warc.wet.gz"] * size,
            "record": range(first, first + size),
            "url": urls,
            "timestamp": [f"2019-04-{1 + n % 28:02d}T00:00:00Z" for n in numbers.tolist()],
            "url_key": [md5(url) for url in urls],
            "owner": [md5(f"{n}") for n in numbers.tolist()],
            "reason": [None] * size,
            "text": ["\n".join(f"The {' '.join(line)}." for line in page) for page in words],
            "language": ["en"] * size,
            "probability": [0.99999] * size,
            "kept_lines": [units] * size,
            **{f"lines_{reason}": [0] * size for reason in LINE_REASONS},
            "line_keys": [page.tobytes() for page in keys],
            "span_keys": [None] * size,
            "span_places": [None] * size,
        }
        yield pa.record_batch(
            [pa.array(columns[field.name], field.type) for field in tables.CLEANED],
            schema=tables.CLEANED,
        )


def run_rule(options: argparse.Namespace) -> None:
    """Run one rule in this process."""
    settings = Settings(
        c4={"languages": ["en"], "dedup": {"unit": "line"}, "output_shards": options.shards},
        vocab={"language_parts": {"en": 1}},
        tokens={"languages": ["en"]},
    )
    stage = stage_model(options.rule)(**stage_settings(settings, options.rule))
    cleaned = sorted(options.folder.glob("cleaned/*.parquet"))
    work = options.folder / options.engine
    decisions, corpus = work / "c4_dedup", work / "c4"
    if options.rule == "c4_dedup":
        job: Any = DedupJob(stage, cleaned, decisions, decisions / "manifest.json")
    else:
        job = CorpusJob(stage, cleaned, decisions, corpus, corpus / "manifest.json")
    if options.engine == "local":
        # A part of a crawl has few buckets; the rows of a whole one fall into the most there are.
        key_rows.bucket_count = write.bucket_count = lambda *_: options.buckets
        (deduplicate if options.rule == "c4_dedup" else write.write_corpus)(job)
        return
    from t5repro.c4.spark import steps
    from t5repro.c4.spark.session import session

    events = work / f"events-{options.rule}"
    events.mkdir(parents=True)
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": events.as_uri(),
        "spark.local.dir": str(work / "spark"),
    }
    with session(SparkSettings(master=options.master, conf=conf), options.rule) as spark:
        (steps.deduplicate if options.rule == "c4_dedup" else steps.write_corpus)(spark, job)


def measure(options: argparse.Namespace, rule: str, engine: str) -> Cost:
    """Run a rule in a process; return the cost of it and its children."""
    command = [sys.executable, __file__, "--folder", str(options.folder), "--rule", rule]
    command += ["--engine", engine, "--master", options.master, "--shards", str(options.shards)]
    command += ["--buckets", str(options.buckets)]
    work = options.folder / engine
    initial_bytes, disk, memory, processor = _bytes_below(work), 0, 0, {}
    begin = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    finished = threading.Event()
    threading.Thread(target=lambda: (process.wait(), finished.set()), daemon=True).start()
    while not finished.wait(POLL_SECONDS):
        running = _running(process.pid)
        processor.update({name: seconds for name, (seconds, _) in running.items()})
        memory = max(memory, sum(size for _, size in running.values()))
        disk = max(disk, _bytes_below(work) - initial_bytes)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(time.perf_counter() - begin, sum(processor.values()), disk, memory)


def _running(session: int) -> dict[str, tuple[float, int]]:
    """Return process -> processor seconds so far and resident bytes, of those of a session."""
    running = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        if int(fields[3]) == session:
            seconds = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
            running[stat.parent.name] = seconds, int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    return running


def _bytes_below(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(parent, name)).st_blocks * 512
            except OSError:  # deleted meanwhile
                continue
    return total


def stages_of(folder: Path) -> list[dict[str, int]]:
    """Return tasks, and rows and bytes written to a shuffle, of each stage of an event log."""
    stages: dict[int, dict[str, int]] = {}
    for path in folder.iterdir():
        for line in path.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] != "SparkListenerTaskEnd" or not event.get("Task Metrics"):
                continue
            zero = {"tasks": 0, "rows": 0, "bytes": 0}
            stage = stages.setdefault(event["Stage ID"], zero)
            written = event["Task Metrics"]["Shuffle Write Metrics"]
            stage["tasks"] += 1
            stage["rows"] += written["Shuffle Records Written"]
            stage["bytes"] += written["Shuffle Bytes Written"]
    return [stages[number] for number in sorted(stages)]


def cost_row(
    pages: int, rule: str, engine: str, cost: Cost, stages: list[dict[str, int]]
) -> list[str]:
    """Return a row of the table of costs."""
    return [
        f"{pages:,}",
        rule,
        engine,
        str(sum(stage["tasks"] for stage in stages) or 1),
        f"{sum(stage['bytes'] for stage in stages) / 1e6:.1f}",
        f"{cost.processor:.0f}",
        f"{cost.seconds:.0f}",
        f"{cost.disk / 1e6:.0f}",
        f"{cost.memory / 1e6:.0f}",
    ]


def tenth_row(rule: str, engine: str, few: tuple[int, Cost], many: tuple[int, Cost]) -> list[str]:
    """Return what a tenth of a crawl costs, by two numbers of pages and their costs."""
    factor = CRAWL_PAGES / 10 / (many[0] - few[0])
    processor, disk = many[1].processor - few[1].processor, many[1].disk - few[1].disk
    return [rule, engine, f"{processor * factor / 3600:.1f}", f"{disk * factor / 1e9:.0f}"]


def shuffle_row(name: str, stage: dict[str, int], factor: float) -> list[str]:
    """Return a row of the table of shuffles; `factor` times the pages are a crawl."""
    return [
        name,
        f"{stage['rows']:,}",
        str(SHUFFLES.get(name) or "-"),
        f"{stage['bytes'] / stage['rows']:.1f}",
        f"{stage['rows'] * factor:.2g}",
        f"{stage['bytes'] * factor / 1e9:.0f}",
    ]


def rehearse(
    options: argparse.Namespace, rule: str, engine: str
) -> tuple[Cost, list[dict[str, int]]]:
    """Run a rule; return its cost and, on Spark, its stages."""
    cost = measure(options, rule, engine)
    return cost, stages_of(options.folder / engine / f"events-{rule}") if engine == "spark" else []


def shuffles_of(rule: str, stages: list[dict[str, int]], factor: float) -> list[list[str]]:
    """Return the rows of a rule in the table of shuffles."""
    names = list(SHUFFLES) if rule == "c4_dedup" else ["pages of the corpus"]
    shuffling = [stage for stage in stages if stage["rows"]]
    return [shuffle_row(name, stage, factor) for name, stage in zip(names, shuffling, strict=False)]


def equal_files(folder: Path) -> list[bool]:
    """Return, for each file of decisions and of the corpus, whether the engines' are equal."""
    return [
        (folder / "local" / path.relative_to(folder / "spark")).read_bytes() == path.read_bytes()
        for path in sorted((folder / "spark").glob("c4*/*.parquet"))
    ]


def main(options: argparse.Namespace) -> None:
    """Write the files, run the rules on both engines and print the tables."""
    print(
        f"{options.units} units of text a page, {options.shards} cleaned files, "
        f"{options.buckets} buckets; {options.master}; {runs.machine()}"
    )
    counts = sorted(options.pages)
    costs: dict[tuple[str, str], list[tuple[int, Cost]]] = {}
    table, shuffles, equal = [], [], []
    for pages in counts:
        with tempfile.TemporaryDirectory() as name:
            options.folder = Path(name)
            cleaned = options.folder / "cleaned"
            cleaned.mkdir()
            write_cleaned(cleaned, pages, options.shards, options.units)
            share = f"1/{CRAWL_PAGES / pages:,.0f} of a crawl"
            print(f"{pages:,} pages ({share}): {_bytes_below(cleaned) / 1e6:.0f} MB cleaned")
            for engine, rule in itertools.product(("local", "spark"), ("c4_dedup", "c4")):
                cost, stages = rehearse(options, rule, engine)
                table.append(cost_row(pages, rule, engine, cost, stages))
                costs.setdefault((rule, engine), []).append((pages, cost))
                if pages == counts[-1]:
                    shuffles += shuffles_of(rule, stages, CRAWL_PAGES / pages)
            equal += equal_files(options.folder)
    titles = ["pages", "rule", "engine", "tasks", "shuffled MB", "processor s", "seconds"]
    print("\n" + runs.table([*titles, "disk MB", "memory MB"], table) + "\n")
    if len(counts) > 1:
        rows = [tenth_row(*key, measured[0], measured[-1]) for key, measured in costs.items()]
        print(runs.table(["a tenth of a crawl", "engine", "processor h", "disk GB"], rows) + "\n")
    titles = ["shuffle", "rows", "bytes in memory", "bytes sent", "rows, crawl", "GB, crawl"]
    print(runs.table(titles, shuffles))
    print(f"\n{sum(equal)} of {len(equal)} files of both engines have equal bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, nargs="+", default=[250_000, 500_000])
    parser.add_argument(
        "--buckets", type=int, default=MAX_BUCKETS, help="of the rows on this machine"
    )
    parser.add_argument("--shards", type=int, default=4, help="cleaned files and corpus files")
    parser.add_argument("--units", type=int, default=10, help="units of text of a page")
    parser.add_argument("--master", default="local[2]", help="`c4.spark.master`")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rule", help=argparse.SUPPRESS)
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    options = parser.parse_args()
    (run_rule if options.rule else main)(options)
