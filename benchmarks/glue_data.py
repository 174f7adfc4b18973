"""Real examples for the benchmarks of packing and fine-tuning, as text and as ids.

Training and validation rows of SST-2, CoLA and RTE, and the validation rows of BoolQ, which has
long passages. The stage `tasks` writes them; a vocabulary trained on them tokenises them.
"""

import json
from pathlib import Path

import numpy as np

from t5repro.config.sections.tasks import TasksStage
from t5repro.config.sections.vocab import VocabStage, VocabTraining
from t5repro.files import read_json_lines, write_text
from t5repro.inputs.finetuning import tokenise
from t5repro.jobs.corpus import VocabJob
from t5repro.jobs.tasks import TasksJob
from t5repro.progress import log_to
from t5repro.task_table import BY_NAME
from t5repro.tasks.build import write_examples
from t5repro.vocab.train import make_vocabulary
from t5repro.vocab.vocabulary import Vocabulary

SPLITS = {
    "glue_sst2": ("train", "validation"),
    "glue_cola": ("train", "validation"),
    "glue_rte": ("train", "validation"),
    "super_glue_boolq": ("validation",),
}
PIECES, EXTRA_IDS = 3996, 100  # 4,096 rows of the embedding
MAX_LENGTHS = (512, 114)  # tokens of inputs and targets of a row
VOCABULARY = "sentencepiece.model"


def prepare(data: Path, folder: Path) -> dict[str, Path]:
    """Write one file of examples for each task, and a vocabulary; return task -> file."""
    with log_to(folder / "log"):
        files = {task: _examples(data, folder, task) for task in SPLITS}
        _vocabulary(folder, files)
    return files


def _examples(data: Path, folder: Path, task: str) -> Path:
    splits = SPLITS[task]
    write_examples(
        TasksJob(
            TasksStage(),
            task=task,
            files={split: [data / name for name in BY_NAME[task].files[split]] for split in splits},
            folder=folder / task,
            manifest=folder / task / "manifest.json",
        )
    )
    path = folder / f"{task}.jsonl"
    write_text(path, "".join((folder / task / f"{s}.jsonl").read_text() for s in splits))
    return path


def _vocabulary(folder: Path, files: dict[str, Path]) -> None:
    rows = (row["inputs"] for path in files.values() for row in read_json_lines(path))
    write_text(folder / "sample.txt", "\n".join(rows) + "\n")
    settings = VocabTraining(vocab_size=PIECES, extra_ids=EXTRA_IDS, required_characters="_")
    make_vocabulary(
        VocabJob(
            VocabStage(vocab=settings),
            sample=folder / "sample.txt",
            model=folder / VOCABULARY,
            pieces=folder / "sentencepiece.vocab",
            manifest=folder / "vocab.json",
        )
    )


def write_ids(files: dict[str, Path], folder: Path) -> Path:
    """Tokenise all examples and write them in shuffled order, for programs without t5repro.

    Returns:
        Path of an npz file: `inputs` and `targets` are the concatenated ids of all examples,
        `inputs_lengths` and `targets_lengths` their lengths.
    """
    rows = [row for path in files.values() for row in read_json_lines(path)]
    order = np.random.default_rng(0).permutation(len(rows))
    vocabulary = Vocabulary.load(folder / VOCABULARY)
    arrays = {}
    for side, max_length in zip(("inputs", "targets"), MAX_LENGTHS, strict=True):
        ids = tokenise(
            [rows[index][side] for index in order],
            vocabulary=vocabulary,
            max_length=max_length,
            label=side,
        )
        arrays[f"{side}_lengths"] = ids.lengths
        arrays[side] = np.concatenate(
            [
                ids.ids[first_id : first_id + length]
                for first_id, length in zip(ids.starts, ids.lengths, strict=True)
            ]
        )
    path = folder / "examples.npz"
    np.savez(path, **arrays)
    return path


def files_of(folder: Path) -> dict[str, Path]:
    """Return task -> file that `prepare` wrote."""
    return {task: folder / f"{task}.jsonl" for task in SPLITS}


def describe(path: Path) -> str:
    """Return the statistics of an `examples.npz`, for the head of a table."""
    with np.load(path) as arrays:
        inputs, targets = arrays["inputs_lengths"], arrays["targets_lengths"]
    return json.dumps(
        {
            "examples": len(inputs),
            "inputs": {
                "mean": round(float(inputs.mean()), 1),
                **{f"p{p}": int(np.percentile(inputs, p)) for p in (50, 90, 99)},
            },
            "targets_mean": round(float(targets.mean()), 1),
        }
    )
