"""Rows per second from the original files of five GLUE tasks to ids, in one process.

    python benchmarks/tasks_speed.py --data FOLDER/tasks [--rounds 3]

Times the stage `tasks` (read, check, write as JSON lines, flush, hash for the manifest),
the tokenisation of its examples as fine-tuning does it, and SentencePiece alone on the different
texts, the limit of the tokenisation. Imports and the training of the vocabulary are excluded. Wall
time depends on other work on the machine, so processor time of all threads is measured, too.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import interleaved_runs as runs
from sentencepiece import SentencePieceProcessor

from t5repro.config.sections.tasks import TasksStage
from t5repro.config.sections.vocab import VocabStage, VocabTraining
from t5repro.files import read_json, read_json_lines, write_text
from t5repro.inputs.finetuning import ENCODING_THREADS, tokenise
from t5repro.jobs.corpus import VocabJob
from t5repro.jobs.tasks import TasksJob
from t5repro.progress import log_to
from t5repro.task_table import BY_NAME
from t5repro.tasks.build import write_examples
from t5repro.vocab.train import make_vocabulary
from t5repro.vocab.vocabulary import Vocabulary

TASKS = ("glue_sst2", "glue_cola", "glue_rte", "glue_mrpc", "glue_stsb")
SPLITS = ("train", "validation")
PIECES = 8000
MAX_LENGTHS = (512, 84)  # tokens of inputs and targets, as in the paper


class Seconds(NamedTuple):
    """Duration of a part."""

    wall: float
    processor: float


def read_clocks() -> Seconds:
    """Return the present wall time and processor time."""
    return Seconds(time.perf_counter(), time.process_time())


def seconds_since(begin: Seconds) -> Seconds:
    """Return the time that has passed since `begin`."""
    finish = read_clocks()
    return Seconds(finish.wall - begin.wall, finish.processor - begin.processor)


def medians(rounds: list[Seconds]) -> Seconds:
    """Return the median wall time and the median processor time."""
    return Seconds(
        median(seconds.wall for seconds in rounds), median(seconds.processor for seconds in rounds)
    )


def prepare(data: Path, folder: Path) -> tuple[int, Seconds]:
    """Run the stage on every task; return rows and seconds."""
    begin = read_clocks()
    for task in TASKS:
        files = {split: [data / name for name in BY_NAME[task].files[split]] for split in SPLITS}
        write_examples(
            TasksJob(
                TasksStage(),
                task=task,
                files=files,
                folder=folder / task,
                manifest=folder / task / "manifest.json",
            )
        )
    seconds = seconds_since(begin)
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


def tokenise_all(folder: Path, vocabulary: Vocabulary) -> Seconds:
    """Read and tokenise every example as fine-tuning does; return seconds."""
    begin = read_clocks()
    rows = examples(folder)
    for side, max_length in enumerate(MAX_LENGTHS):
        texts = [row[side] for row in rows]
        tokenise(texts, vocabulary=vocabulary, max_length=max_length, label="tokenise")
    return seconds_since(begin)


def sentencepiece_alone(folder: Path) -> Seconds:
    """Encode the different texts of every example, and nothing else; return seconds."""
    processor = SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    texts = [list(dict.fromkeys(side)) for side in zip(*examples(folder), strict=True)]
    begin = read_clocks()
    for side in texts:
        processor.encode(side, num_threads=ENCODING_THREADS)
    return seconds_since(begin)


def train_on_examples(folder: Path) -> Vocabulary:
    """Train a vocabulary on the examples and return it."""
    write_text(folder / "sample.txt", "\n".join(inputs for inputs, _ in examples(folder)) + "\n")
    stage = VocabStage(vocab=VocabTraining(vocab_size=PIECES, required_characters="_"))
    make_vocabulary(
        VocabJob(
            stage,
            sample=folder / "sample.txt",
            model=folder / "sentencepiece.model",
            pieces=folder / "sentencepiece.vocab",
            manifest=folder / "vocab.json",
        )
    )
    return Vocabulary.load(folder / "sentencepiece.model")


def main() -> None:
    """Measure and print one line for each part."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with glue/")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, log_to(Path(name) / "log"):
        folder = Path(name)
        prepared = [prepare(arguments.data, folder) for _ in range(arguments.rounds)]
        vocabulary = train_on_examples(folder)
        tokenised, alone = [], []
        for _ in range(arguments.rounds):
            tokenised.append(tokenise_all(folder, vocabulary))
            alone.append(sentencepiece_alone(folder))
    rows = prepared[0][0]
    print(f"{rows} rows, medians of {arguments.rounds} rounds; {runs.machine()}\n")
    parts = {
        "files to text": [seconds for _, seconds in prepared],
        "text to ids": tokenised,
        "SentencePiece alone": alone,
    }
    table = [
        [name, f"{wall:.2f}", f"{rows / wall:,.0f}", f"{processor:.2f}"]
        for name, (wall, processor) in zip(parts, map(medians, parts.values()), strict=True)
    ]
    print(runs.table(["", "clock, s", "rows/s", "processor, s"], table))


if __name__ == "__main__":
    main()
