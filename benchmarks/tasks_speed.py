"""Rows a second from the original files of five GLUE tasks to ids, in one process.

    python benchmarks/tasks_speed.py --data FOLDER/tasks [--rounds 3]

Times the stage `tasks` (read, check, write as JSON lines, flush to the disk, hash for the manifest)
and then what fine-tuning does with the examples: read and tokenise inputs and targets in tf.data.
Imports and the training of the vocabulary are not counted; that TensorFlow is not imported before
tokenising is checked. Seconds are of the clock and, since other work on the machine slows the clock
and not the count, of the processor, all threads together.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import interleaved_runs as runs

from t5repro.config.sections.tasks import TasksStage
from t5repro.config.sections.vocab import VocabSettings, VocabStage
from t5repro.config.task_layouts import TASK_FILES
from t5repro.files import read_json, read_json_lines, write_text
from t5repro.progress import log_to
from t5repro.tasks.build import write_examples
from t5repro.vocab.train import train_vocabulary

TASKS = ("glue_sst2", "glue_cola", "glue_rte", "glue_mrpc", "glue_stsb")
SPLITS = ("train", "validation")
PIECES = 8000
ROOM = (512, 84)  # tokens of inputs and targets, as the paper's


class Seconds(NamedTuple):
    """What a part took."""

    clock: float
    processor: float


def now() -> Seconds:
    """Return both clocks."""
    return Seconds(time.perf_counter(), time.process_time())


def since(started: Seconds) -> Seconds:
    """Return what went by."""
    ended = now()
    return Seconds(ended.clock - started.clock, ended.processor - started.processor)


def middle(rounds: list[Seconds]) -> Seconds:
    """Return the medians."""
    return Seconds(
        median(seconds.clock for seconds in rounds), median(seconds.processor for seconds in rounds)
    )


def prepare(data: Path, folder: Path) -> tuple[int, Seconds]:
    """Run the stage on every task; return rows and seconds."""
    started = now()
    for task in TASKS:
        files = {split: [data / name for name in TASK_FILES[task][split]] for split in SPLITS}
        write_examples(
            TasksStage(),
            task=task,
            files=files,
            folder=folder / task,
            manifest=folder / task / "manifest.json",
        )
    seconds = since(started)
    counters = [read_json(folder / task / "manifest.json")["counters"] for task in TASKS]
    return sum(counter[split]["rows"] for counter in counters for split in SPLITS), seconds


def examples(folder: Path) -> list[tuple[str, str]]:
    """Return inputs and targets of every row."""
    return [
        (row["inputs"], row["targets"])
        for task in TASKS
        for split in SPLITS
        for row in read_json_lines(folder / task / f"{split}.jsonl")
    ]


def tokenise_all(folder: Path, model: bytes) -> Seconds:
    """Read and tokenise every example as fine-tuning does; return seconds."""
    from t5repro.inputs.finetuning import tokenise

    started = now()
    rows = examples(folder)
    for side, room in enumerate(ROOM):
        tokenise([row[side] for row in rows], proto=model, max_length=room, label="tokenise")
    return since(started)


def vocabulary_of(folder: Path) -> bytes:
    """Train a vocabulary on the examples and return it."""
    write_text(folder / "sample.txt", "\n".join(inputs for inputs, _ in examples(folder)) + "\n")
    stage = VocabStage.model_validate(
        {
            "vocab": VocabSettings(vocab_size=PIECES, required_characters="_").model_dump(
                include=set(VocabStage.Vocab.model_fields)
            )
        }
    )
    train_vocabulary(
        stage,
        sample=folder / "sample.txt",
        model=folder / "sentencepiece.model",
        pieces=folder / "sentencepiece.vocab",
        manifest=folder / "vocab.json",
    )
    return (folder / "sentencepiece.model").read_bytes()


def main() -> None:
    """Measure and print one line for each part."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with glue/")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, log_to(Path(name) / "log"):
        folder = Path(name)
        prepared = [prepare(arguments.data, folder) for _ in range(arguments.rounds)]
        early = "tensorflow" in sys.modules
        model = vocabulary_of(folder)
        tokenise_all(folder, model)  # imports TensorFlow
        tokenised = [tokenise_all(folder, model) for _ in range(arguments.rounds)]
    rows = prepared[0][0]
    to_text, to_ids = middle([seconds for _, seconds in prepared]), middle(tokenised)
    print(f"{rows} rows, medians of {arguments.rounds} rounds; {runs.machine()}")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, clock, processor in (
        ("files to text", *to_text),
        ("text to ids", *to_ids),
        ("together", to_text.clock + to_ids.clock, to_text.processor + to_ids.processor),
    ):
        print(
            f"{name}: {clock:.2f} s, {rows / clock:,.0f} rows/s; "
            f"processor {processor:.2f} s, {rows / processor:,.0f} rows/s"
        )
    print(f"TensorFlow imported before tokenising: {'yes' if early else 'no'}")


if __name__ == "__main__":
    main()
