"""The stages of a run with one task, one after another and without Snakemake."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def facts_of_program(program: str, *arguments: str, folder: Path, package: Path) -> dict[str, Any]:
    """Run a program of this folder in a process of its own; return the JSON of its last line.

    Args:
        program: its file.
        arguments: of the program.
        folder: the current folder.
        package: folder with the package `t5repro`.
    """
    process = subprocess.run(
        [sys.executable, program, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{package}:{Path(__file__).parent}"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    facts: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return facts


def build_examples(
    folder: Path, settings: Any, task: str, files: Mapping[str, Sequence[str]]
) -> None:
    """Write the examples as the rule `tasks` does."""
    from t5repro.config.sections.tasks import TasksStage
    from t5repro.config.stage_settings import stage_settings
    from t5repro.jobs.tasks import TasksJob
    from t5repro.tasks.build import write_examples

    write_examples(
        TasksJob(
            TasksStage.model_validate(stage_settings(settings, "tasks")),
            task=task,
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


def train_and_score(
    folder: Path,
    settings: Any,
    name: str,
    vocabulary: Path,
    *,
    task: str,
    splits: Sequence[str] = ("validation", "test"),
) -> None:
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
            examples={task: folder / "tasks/train.jsonl"},
            vocabulary=vocabulary,
            folder=out / "finetune",
            work=out / "work",
            manifest=out / "finetune/manifest.json",
        ),
        code={},
    )
    for split in splits:
        predict(
            PredictJob(
                PredictStage.model_validate(stage_settings(changed, "evaluate_predict")),
                weights=[out / "finetune/manifest.json"],
                examples={task: folder / f"tasks/{split}.jsonl"},
                vocabulary=vocabulary,
                folder=out / split,
                manifest=out / split / "manifest.json",
            )
        )
    score(
        ScoreJob(
            ScoreStage.model_validate(stage_settings(changed, "evaluate_score")),
            predictions={task: out / f"validation/{task}.jsonl"},
            train={task: folder / "tasks/train.jsonl"},
            scores=out / "score/scores.json",
            manifest=out / "score/manifest.json",
        )
    )


def report(folder: Path, settings: Any, experiments: Sequence[str]) -> str:
    """Write the report; return its page."""
    from t5repro.config.schema import ReportStage
    from t5repro.jobs.report import ReportJob
    from t5repro.report.page import write_report

    html, history = folder / "report/report.html", "finetune/history.csv"
    write_report(
        ReportJob(
            ReportStage(settings=settings),
            scores={name: folder / name / "score/scores.json" for name in experiments},
            pretrain_history={name: folder / name / history for name in experiments},
            finetune_history={name: folder / name / history for name in experiments},
            corpus={},
            html=html,
            csv=html.with_name("scores.csv"),
            manifest=html.with_name("manifest.json"),
            metrics={name: html.with_name(f"{name}.metrics.json") for name in experiments},
        )
    )
    return html.read_text(encoding="utf-8")
