"""A task added to a copy of the package in two places, and a program that sends it through a run.

python added_task.py FOLDER prints what each part of the package says of the task, as JSON.
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from checkout import ROOT

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
    process = subprocess.run(
        [sys.executable, __file__, str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder / 'src'}:{Path(__file__).parent}"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    facts: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return facts


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
    build_examples(folder, settings, facts["files"])
    vocabulary = train_vocabulary(folder, settings)
    for name in EXPERIMENTS:
        train_and_score(folder, settings, name, vocabulary)
    facts["scores"] = {
        name: json.loads((folder / f"{name}/score/scores.json").read_text()) for name in EXPERIMENTS
    }
    facts["example"] = json.loads((folder / "tasks/train.jsonl").read_text().splitlines()[1])
    facts |= report(folder, settings) | submission(folder)
    return facts


def build_examples(folder: Path, settings: Any, files: dict[str, list[str]]) -> None:
    """Write the examples as the rule `tasks` does."""
    from t5repro.config.sections.tasks import TasksStage
    from t5repro.config.stage_settings import stage_settings
    from t5repro.jobs.tasks import TasksJob
    from t5repro.tasks.build import write_examples

    write_examples(
        TasksJob(
            TasksStage.model_validate(stage_settings(settings, "tasks")),
            task=NAME,
            files={
                split: [folder / "data" / name for name in names] for split, names in files.items()
            },
            folder=folder / "tasks",
            manifest=folder / "tasks/manifest.json",
        )
    )


def train_vocabulary(folder: Path, settings: Any) -> Path:
    """Train a vocabulary on the texts of the task."""
    from t5repro.config.sections.vocab import VocabStage
    from t5repro.config.stage_settings import stage_settings
    from t5repro.jobs.corpus import VocabJob
    from t5repro.vocab.train import make_vocabulary

    rows = [json.loads(line) for line in (folder / "tasks/train.jsonl").read_text().splitlines()]
    texts = (f"{row['inputs']} {row['targets']}" for row in rows * 8)
    (folder / "sample.txt").write_text("\n".join(texts), encoding="utf-8")
    make_vocabulary(
        VocabJob(
            VocabStage.model_validate(stage_settings(settings, "vocab")),
            sample=folder / "sample.txt",
            model=folder / "vocab.model",
            pieces=folder / "vocab.pieces",
            manifest=folder / "vocab.json",
        )
    )
    return folder / "vocab.model"


def train_and_score(folder: Path, settings: Any, name: str, vocabulary: Path) -> None:
    """Fine-tune new weights on the task, answer its validation and test rows, and score them."""
    from t5repro.config.experiments import settings_of_experiment
    from t5repro.config.sections.evaluate import PredictStage
    from t5repro.config.sections.finetune import FinetuneStage
    from t5repro.config.sections.pretrain import PretrainStage
    from t5repro.config.sections.score import ScoreStage
    from t5repro.config.stage_settings import stage_settings
    from t5repro.engines.devices import prepare
    from t5repro.evaluate.predict import predict
    from t5repro.evaluate.score import score
    from t5repro.jobs.finetune import FinetuneJob
    from t5repro.jobs.predict import PredictJob
    from t5repro.jobs.score import ScoreJob
    from t5repro.train.finetune import finetune

    changed, out = settings_of_experiment(settings, name), folder / name
    tuning = FinetuneStage.model_validate(stage_settings(changed, "finetune"))
    prepare(tuning.devices)  # before TensorFlow is imported
    from t5repro.model.checkpoints import save_optimizer, save_weights
    from t5repro.train.fresh_model import fresh_model

    fresh = fresh_model(PretrainStage.model_validate(stage_settings(changed, "pretrain")), seed=0)
    (out / "start").mkdir(parents=True)
    save_weights(out / "start/weights.safetensors", fresh.network)
    save_optimizer(out / "start/optimizer.safetensors", fresh.optimizer)
    (out / "start/manifest.json").write_text("{}")
    finetune(
        FinetuneJob(
            tuning,
            weights=out / "start/manifest.json",
            examples={NAME: folder / "tasks/train.jsonl"},
            vocabulary=vocabulary,
            folder=out / "finetune",
            work=out / "work",
            manifest=out / "finetune/manifest.json",
        ),
        code={},
    )
    for split in ("validation", "test"):
        predict(
            PredictJob(
                PredictStage.model_validate(stage_settings(changed, "evaluate_predict")),
                weights=[out / "finetune/manifest.json"],
                examples={NAME: folder / f"tasks/{split}.jsonl"},
                vocabulary=vocabulary,
                folder=out / split,
                manifest=out / split / "manifest.json",
            )
        )
    score(
        ScoreJob(
            ScoreStage.model_validate(stage_settings(changed, "evaluate_score")),
            predictions={NAME: out / f"validation/{NAME}.jsonl"},
            train={NAME: folder / "tasks/train.jsonl"},
            scores=out / "score/scores.json",
            manifest=out / "score/manifest.json",
        )
    )


def report(folder: Path, settings: Any) -> dict[str, Any]:
    """Write the report; return its table of scores as rows of a file."""
    from t5repro.config.schema import ReportStage
    from t5repro.jobs.report import ReportJob
    from t5repro.report.page import write_report

    html, history = folder / "report/report.html", "finetune/history.csv"
    write_report(
        ReportJob(
            ReportStage(settings=settings),
            scores={name: folder / name / "score/scores.json" for name in EXPERIMENTS},
            pretrain_history={name: folder / name / history for name in EXPERIMENTS},
            finetune_history={name: folder / name / history for name in EXPERIMENTS},
            corpus={},
            html=html,
            csv=html.with_name("scores.csv"),
            manifest=html.with_name("manifest.json"),
            metrics={name: html.with_name(f"{name}.metrics.json") for name in EXPERIMENTS},
        )
    )
    page = html.read_text(encoding="utf-8")
    return {"page": {text: text in page for text in ("Toy tasks", "Toy pairs", NAME)}}


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
