"""Real examples for the benchmarks of packing and fine-tuning, as text and as ids.

SST-2, CoLA and RTE with their training and validation rows, and BoolQ's validation rows, whose
passages are long: made by the stage `tasks`, tokenised with a vocabulary trained on them.
"""

import json
from pathlib import Path

import numpy as np

from t5repro.config.sections.tasks import TasksStage
from t5repro.config.sections.vocab import VocabSettings, VocabStage
from t5repro.config.task_layouts import TASK_FILES
from t5repro.files import read_json_lines, write_text
from t5repro.progress import log_to
from t5repro.tasks.build import write_examples
from t5repro.vocab.train import train_vocabulary

SPLITS = {
    "glue_sst2": ("train", "validation"),
    "glue_cola": ("train", "validation"),
    "glue_rte": ("train", "validation"),
    "super_glue_boolq": ("validation",),
}
PIECES, EXTRA_IDS = 3996, 100  # 4,096 rows of the embedding
ROOM = (512, 114)  # tokens of inputs and targets of a row
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
        TasksStage(),
        task=task,
        files={split: [data / name for name in TASK_FILES[task][split]] for split in splits},
        folder=folder / task,
        manifest=folder / task / "manifest.json",
    )
    path = folder / f"{task}.jsonl"
    write_text(path, "".join((folder / task / f"{s}.jsonl").read_text() for s in splits))
    return path


def _vocabulary(folder: Path, files: dict[str, Path]) -> None:
    rows = (row["inputs"] for path in files.values() for row in read_json_lines(path))
    write_text(folder / "sample.txt", "\n".join(rows) + "\n")
    settings = VocabSettings(vocab_size=PIECES, extra_ids=EXTRA_IDS, required_characters="_")
    train_vocabulary(
        VocabStage.model_validate(
            {"vocab": settings.model_dump(include=set(VocabStage.Vocab.model_fields))}
        ),
        sample=folder / "sample.txt",
        model=folder / VOCABULARY,
        pieces=folder / "sentencepiece.vocab",
        manifest=folder / "vocab.json",
    )


def write_ids(files: dict[str, Path], folder: Path) -> Path:
    """Tokenise all examples and write them, in a shuffled order, for programs without TensorFlow.

    Returns:
        A file with `inputs`, `targets`, the ids one example after another, and the lengths of
        each.
    """
    from t5repro.inputs.finetuning import tokenise

    rows = [row for path in files.values() for row in read_json_lines(path)]
    order = np.random.default_rng(0).permutation(len(rows))
    found = {}
    for side, room in zip(("inputs", "targets"), ROOM, strict=True):
        ids = tokenise(
            [rows[place][side] for place in order],
            proto=(folder / VOCABULARY).read_bytes(),
            max_length=room,
            label=side,
        )
        found[f"{side}_lengths"] = ids.lengths
        found[side] = np.concatenate(
            [ids.ids[at : at + n] for at, n in zip(ids.starts, ids.lengths, strict=True)]
        )
    path = folder / "examples.npz"
    np.savez(path, **found)
    return path


def files_of(folder: Path) -> dict[str, Path]:
    """Return task -> file of what `prepare` wrote."""
    return {task: folder / f"{task}.jsonl" for task in SPLITS}


def describe(path: Path) -> str:
    """Return what an `examples.npz` holds, for the head of a table."""
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
