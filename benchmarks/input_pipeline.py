"""Packing of real examples, and batches of span corruption, in one process.

    python benchmarks/input_pipeline.py --data FOLDER/tasks [--rounds 5]

Packing: the examples of `glue_data`, shuffled, laid into rows of 512 inputs and 114 targets by
`inputs.packing.pack_rows`; the plan of a mixture (draw, pack, sort) is timed beside it. Span
corruption: the batches of pre-training, through tf.data to the end, from made-up ids of documents
of log-normal length; positions are those of inputs and targets. Seconds are of the clock
and of the processor, all threads together.
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

from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.model.devices import prepare
from t5repro.progress import log_to

VOCAB = VocabSettings(vocab_size=32_000, extra_ids=100)
DOCUMENTS = 20_000
SHAPES = {"tiny": (16, 128, 40), "small": (8, 512, 114), "T5-small of the paper": (128, 512, 114)}
TIMED_POSITIONS = 40_000_000


class Seconds(NamedTuple):
    """What something took."""

    clock: float
    processor: float


def now() -> Seconds:
    """Return both clocks."""
    return Seconds(time.perf_counter(), time.process_time())


def middle(spent: list[tuple[Seconds, Seconds]]) -> Seconds:
    """Return the medians of pairs of begin and end."""
    clock, processor = (
        median(end[which] - begin[which] for begin, end in spent) for which in (0, 1)
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
    return [_packed(lengths, rounds), _planned(lengths, rounds)]


def _packed(lengths: np.ndarray, rounds: int) -> list[str]:
    from t5repro.inputs.packing import pack_rows

    spent = []
    for _ in range(rounds):
        begin = now()
        rows = pack_rows(lengths, max_lengths=glue_data.ROOM)
        spent.append((begin, now()))
    return _line("pack", lengths, len(lengths), int(rows.max()) + 1, middle(spent))


def _planned(lengths: np.ndarray, rounds: int) -> list[str]:
    from t5repro.inputs.task_mixture import Mixture, draw_rows

    mixture = Mixture(("all",), np.ones(1), np.array([len(lengths)]), lengths)
    rows, spent = 20_000, []
    for _ in range(rounds):
        begin = now()
        drawn_rows = draw_rows(mixture, max_lengths=glue_data.ROOM, first_row=0, rows=rows, seed=0)
        spent.append((begin, now()))
    drawn = lengths[drawn_rows.examples]
    return _line("plan of a mixture", drawn, len(drawn), rows, middle(spent))


def _line(name: str, lengths: np.ndarray, count: int, rows: int, spent: Seconds) -> list[str]:
    fill = lengths.sum(axis=0) / (rows * np.array(glue_data.ROOM))
    return [
        name,
        f"{count:,}",
        f"{fill[0]:.2%}",
        f"{fill[1]:.1%}",
        f"{count / spent.clock:,.0f}",
        f"{count / spent.processor:,.0f}",
    ]


def corruption(folder: Path, rounds: int) -> list[list[str]]:
    """Return rows of the table of span corruption."""
    from t5repro.vocab.token_files import id_dtype

    draw = np.random.default_rng(0)
    lengths = np.maximum(4, draw.lognormal(5.5, 1.0, DOCUMENTS)).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids = draw.integers(3, VOCAB.vocab_size, offsets[-1])
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
    from t5repro.inputs.pretraining import load_corpus_inputs

    source = load_corpus_inputs(
        PretrainSettings(
            batch_rows=rows,
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
    spent = []
    for _ in range(rounds):
        batches = iter(source.batches(first_step=0, steps=steps))
        begin = now()  # batches are made from here on
        made = sum(1 for _ in batches)
        spent.append((begin, now()))
        if made != steps:
            raise SystemExit(f"{made} batches in place of {steps}")
    taken = middle(spent)
    return [
        f"{name}: {rows} x ({inputs} + {targets})",
        "concatenated" if concatenate else "packed",
        f"{1 - source.counters(steps=steps)['padding_share']:.1%}",
        f"{steps * positions / taken.clock:,.0f}",
        f"{steps * positions / taken.processor:,.0f}",
    ]


def main() -> None:
    """Measure and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with glue/ and superglue/")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    prepare(DevicesSettings())
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
