"""A task added to a copy of the package in two places, and a program that sends it through a run.

python added_task.py FOLDER prints what each part of the package says of the task, as JSON.
"""

import json
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

from checkout import ROOT
from task_run import build_examples, facts_of_program, report, train_and_score, train_vocabulary

NAME = "toy_pairs"
EXPERIMENTS = ("text", "labels")
ROW = """    TaskFacts(
        "toy_pairs",
        "Toy pairs",
        files={
            "train": ("toy/train.tsv",),
            "validation": ("toy/dev.tsv",),
            "test": ("toy/test.tsv",),
        },
        heading="Toy tasks",
        validation_rows=8,
        benchmark="glue",
        scores=("accuracy",),
        submission=Submission("Toy.tsv", 4, BINARY),
    ),
"""
FUNCTIONS = """    classification(
        "toy_pairs",
        read=_table(PAIR, "label", ("0", "1")),
        prefix="toy",
        fields=("sentence1", "sentence2"),
        labels=("different", "equal"),
        metrics=("accuracy",),
    ),
"""
PLACES = (("task_table.py", "    WMT_EN_RO,\n)\n", ROW), ("tasks/glue.py", "),\n)\n", FUNCTIONS))
ROWS = {"train": 16, "dev": 8, "test": 4}
MODEL = {"d_model": 32, "d_ff": 64, "d_kv": 8, "num_heads": 4, "num_encoder_layers": 1}
TRAINING = {"steps": 2, "batch_size": 4, "inputs_length": 32, "targets_length": 8}
LABELS = {
    "use": ["systems/bert", "sizes/bert_tiny"],
    "model.num_encoder_layers": 1,
    "tasks.segments": True,
}


def copy_with_task(folder: Path) -> Path:
    """Copy the package and add the task in its two places; return the folder of the copy."""
    copy = folder / "src"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "t5repro", copy / "t5repro", ignore=ignored)
    (folder / "configs").symlink_to(ROOT / "configs")
    for name, row_end, text in PLACES:
        path = copy / "t5repro" / name
        source = path.read_text(encoding="utf-8")
        head, matched, tail = source.rpartition(row_end)
        closing = matched.removesuffix(")\n")
        path.write_text(f"{head}{closing}{text})\n{tail}", encoding="utf-8")
    return copy


def facts_of_run(folder: Path) -> dict[str, Any]:
    """Return the facts of the task in a run with the copy of the package."""
    return facts_of_program(__file__, str(folder), folder=folder, package=folder / "src")


def write_files(folder: Path) -> None:
    """Write the original files of the task."""
    words = ("mill", "river", "grain", "wheel")
    for name, count in ROWS.items():
        lines = ["sentence1\tsentence2" + ("" if name == "test" else "\tlabel")]
        for row in range(count):
            first, second = words[row % 4], words[row // 2 % 4]
            label = "" if name == "test" else f"\t{int(first == second)}"
            lines.append(f"the {first} turns\tthe {second} turns{label}")
        path = folder / f"data/tasks/toy/{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def run_values(folder: Path) -> dict[str, Any]:
    """Return the settings of a run of the task: as text by T5, and as labels by BERT."""
    from t5repro.files import sha256_of

    files = {
        path.relative_to(folder / "data").as_posix(): sha256_of(path)
        for path in sorted((folder / "data").rglob("*.tsv"))
    }
    source = {"origin": "by hand: https://toy.example/", "licence": "CC0-1.0", "files": files}
    return {
        "run": {"name": "toy"},
        "data": {"folder": "data", "sources": [source]},
        "vocab": {"vocab_size": 33, "extra_ids": 8, "character_coverage": 1.0},
        "model": {**MODEL, "num_decoder_layers": 1},
        "pretrain": {**TRAINING, "steps": 0},
        "finetune": TRAINING,
        "evaluate": {"batch_size": 4, "inputs_length": 32, "max_decode_length": 4},
        "tasks": {"names": [NAME], "segments": True},
        "experiments": [{"name": "text"}, {"name": "labels", "change": LABELS}],
    }


def main(folder: Path) -> dict[str, Any]:
    """Send the task through the package; return what each part says of it."""
    from t5repro.cli.main import main as command
    from t5repro.config.load import load_settings
    from t5repro.config.task_files import task_files
    from t5repro.estimate.machines import machine_named
    from t5repro.estimate.plan import estimate_run
    from t5repro.estimate.work import examples_of

    write_files(folder)
    values = run_values(folder)
    run_file = folder / "toy.yaml"
    run_file.write_text(json.dumps(values), encoding="utf-8")
    facts: dict[str, Any] = {"validate": command(["config", "validate", str(run_file)])}
    settings = load_settings(values)
    facts["files"] = task_files(settings, NAME)
    facts["rows"] = examples_of([NAME], settings.evaluate, {})
    works = estimate_run(settings, machine_named("v5e-8")).nodes
    facts["flops"] = {f"{entry.node.rule}/{entry.node.name}": entry.work.flops for entry in works}
    build_examples(folder, settings, NAME, facts["files"])
    vocabulary = train_vocabulary(folder, settings)
    for name in EXPERIMENTS:
        train_and_score(folder, settings, name, vocabulary, task=NAME)
    facts["scores"] = {
        name: json.loads((folder / f"{name}/score/scores.json").read_text()) for name in EXPERIMENTS
    }
    facts["example"] = json.loads((folder / "tasks/train.jsonl").read_text().splitlines()[1])
    page = report(folder, settings, EXPERIMENTS)
    facts["page"] = {text: text in page for text in ("Toy tasks", "Toy pairs", NAME)}
    return facts | submission(folder)


def submission(folder: Path) -> dict[str, Any]:
    """Return the lines of the task's file on the leaderboard."""
    from t5repro.config.sections.tasks import TaskTexts
    from t5repro.publish.leaderboard import LEADERBOARDS, write_submission

    write_submission(
        {NAME: LEADERBOARDS["glue"][NAME]},
        predictions=folder / "labels/test",
        texts=TaskTexts(),
        output=folder / "glue.zip",
        manifest=folder / "glue.json",
    )
    with zipfile.ZipFile(folder / "glue.zip") as archive:
        lines = {name: archive.read(name).decode().splitlines() for name in archive.namelist()}
    return {"leaderboard": list(LEADERBOARDS["glue"]), "submission": lines}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
