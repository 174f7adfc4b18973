"""Packing of real examples, and batches of span corruption, in one process.

    python benchmarks/input_pipeline.py --data FOLDER/tasks [--rounds 5]

Packing: `inputs.packing.pack_rows` places the shuffled examples of `glue_data` in rows of 512
inputs and 114 targets; the rows of a mixture (draw, pack, sort) are timed separately. Span
corruption: from random ids of documents of log-normal length to the batches of pre-training, made
by one thread; positions are counted over inputs and targets. Times are wall-clock time and
processor time of all threads.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import glue_data
import interleaved_runs as runs
import numpy as np

from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.inputs.packing import pack_rows
from t5repro.inputs.pretraining import load_corpus_inputs
from t5repro.inputs.task_mixture import Mixture, draw_rows
from t5repro.progress import log_to
from t5repro.vocab.token_files import id_dtype

VOCAB = VocabSettings(vocab_size=32_000, extra_ids=100)
DOCUMENTS = 20_000
SHAPES = {"tiny": (16, 128, 40), "small": (8, 512, 114), "T5-small of the paper": (128, 512, 114)}
TIMED_POSITIONS = 40_000_000


class Seconds(NamedTuple):
    """A reading of both clocks, or a difference of two; seconds."""

    clock: float
    processor: float


def now() -> Seconds:
    """Return both clocks."""
    return Seconds(time.perf_counter(), time.process_time())


def median_seconds(intervals: list[tuple[Seconds, Seconds]]) -> Seconds:
    """Return the medians of intervals from begin to end."""
    clock, processor = (
        median(end[which] - begin[which] for begin, end in intervals) for which in (0, 1)
    )
    return Seconds(clock, processor)


def packing(data: Path, folder: Path, rounds: int) -> list[list[str]]:
    """Return rows of the table of packing."""
    files = glue_data.prepare(data, folder)
    with log_to(folder / "log"):
        ids = glue_data.write_ids(files, folder)
    print(f"real examples: {glue_data.describe(ids)}\n")
    with np.load(ids) as arrays:
        lengths = np.stack([arrays["inputs_lengths"], arrays["targets_lengths"]], axis=1)
    return [_packed(lengths, rounds), _mixed(lengths, rounds)]


def _packed(lengths: np.ndarray, rounds: int) -> list[str]:
    intervals = []
    for _ in range(rounds):
        begin = now()
        rows = pack_rows(lengths, max_lengths=glue_data.MAX_LENGTHS)
        intervals.append((begin, now()))
    return _line("pack", lengths, len(lengths), int(rows.max()) + 1, median_seconds(intervals))


def _mixed(lengths: np.ndarray, rounds: int) -> list[str]:
    mixture = Mixture(("all",), np.ones(1), np.array([len(lengths)]), lengths)
    rows, intervals = 20_000, []
    for _ in range(rounds):
        begin = now()
        mixture_rows = draw_rows(
            mixture, max_lengths=glue_data.MAX_LENGTHS, first_row=0, rows=rows, seed=0
        )
        intervals.append((begin, now()))
    row_lengths = lengths[mixture_rows.examples]
    return _line(
        "rows of a mixture", row_lengths, len(row_lengths), rows, median_seconds(intervals)
    )


def _line(name: str, lengths: np.ndarray, count: int, rows: int, seconds: Seconds) -> list[str]:
    fill = lengths.sum(axis=0) / (rows * np.array(glue_data.MAX_LENGTHS))
    return [
        name,
        f"{count:,}",
        f"{fill[0]:.2%}",
        f"{fill[1]:.1%}",
        f"{count / seconds.clock:,.0f}",
        f"{count / seconds.processor:,.0f}",
    ]


def corruption(folder: Path, rounds: int) -> list[list[str]]:
    """Return rows of the table of span corruption."""
    generator = np.random.default_rng(0)
    lengths = np.maximum(4, generator.lognormal(5.5, 1.0, DOCUMENTS)).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids = generator.integers(3, VOCAB.vocab_size, offsets[-1])
    ids.astype(id_dtype(VOCAB.total_ids)).tofile(folder / "train.ids")
    offsets.astype("<u8").tofile(folder / "train.offsets")
    return [
        _corrupted(folder, name, *shape, concatenate=concatenate, rounds=rounds)
        for name, shape in SHAPES.items()
        for concatenate in (True, False)
    ]


def _corrupted(
    folder: Path, name: str, rows: int, inputs: int, targets: int, *, concatenate: bool, rounds: int
) -> list[str]:
    source = load_corpus_inputs(
        PretrainSettings(
            batch_size=rows,
            inputs_length=inputs,
            targets_length=targets,
            concatenate_documents=concatenate,
        ),
        ids=folder / "train.ids",
        offsets=folder / "train.offsets",
        vocab=VOCAB,
        seed=0,
    )
    positions = rows * (inputs + targets)
    steps = min(4000, TIMED_POSITIONS // positions)
    intervals = []
    for _ in range(rounds):
        batches = source.batches(first_step=0, steps=steps)
        begin = now()  # batches are made when they are read
        count = sum(1 for _ in batches)
        intervals.append((begin, now()))
        if count != steps:
            raise SystemExit(f"{count} batches instead of {steps}")
    seconds = median_seconds(intervals)
    return [
        f"{name}: {rows} x ({inputs} + {targets})",
        "concatenated" if concatenate else "packed",
        f"{1 - source.counters(steps=steps)['padding_share']:.1%}",
        f"{steps * positions / seconds.clock:,.0f}",
        f"{steps * positions / seconds.processor:,.0f}",
    ]


def main() -> None:
    """Measure and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with glue/ and superglue/")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(f"medians of {arguments.rounds} rounds; {runs.machine()}")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        head = ["", "examples", "inputs filled", "targets", "examples/s", "per processor second"]
        print(runs.table(head, packing(arguments.data, folder, arguments.rounds)), end="\n\n")
        head = ["rows", "documents", "filled", "positions/s", "per processor second"]
        print(runs.table(head, corruption(folder, arguments.rounds)))


if __name__ == "__main__":
    main()
