"""Runs written by hand: manifests and scores of small trainings, without their artifacts."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.finetune import FinetuneSettings, FinetuneStage
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainSettings, PretrainStage
from t5repro.config.sections.tasks import TaskNames
from t5repro.config.sections.vocab import VocabSettings

RAW = "data/crawl/0.wet"
MODEL = ModelSettings(
    d_model=8, d_ff=16, d_kv=4, num_heads=2, num_encoder_layers=1, num_decoder_layers=1
)
VOCAB = VocabSettings(vocab_size=300)
PRETRAIN_STEPS, FINETUNE_STEPS = 10, 5


def pretraining(*, steps: int = PRETRAIN_STEPS, seed: int = 0) -> PretrainStage:
    training = PretrainSettings(steps=steps, batch_size=2, inputs_length=16, targets_length=8)
    return PretrainStage(
        seed=seed, vocab=VOCAB, model=MODEL, pretrain=training, devices=DevicesSettings()
    )


def finetuning(*, seed: int = 0) -> FinetuneStage:
    return FinetuneStage(
        seed=seed,
        vocab=VOCAB,
        model=MODEL,
        tasks=TaskNames(names=["glue_rte"]),
        finetune=FinetuneSettings(
            steps=FINETUNE_STEPS, batch_size=2, inputs_length=16, targets_length=4
        ),
        devices=DevicesSettings(),
    )


def scores_of(value: float | None, **further: float | None) -> dict[str, Any]:
    """Return a `scores.json` with the accuracy of RTE, and further metrics of other tasks."""
    tasks = {"glue_rte": ("accuracy", value)}
    tasks |= {name: ("accuracy", number) for name, number in further.items()}
    return {
        "averages": {"glue": {"missing": ["glue_cola"], "value": None}},
        "tasks": {
            task: {"metrics": {metric: number}, "primary_metric": metric}
            for task, (metric, number) in tasks.items()
        },
    }


def item(path: str, content: str) -> dict[str, Any]:
    """Return the entry of a manifest for a file with this content."""
    data = content.encode()
    return {"path": path, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def write_job(
    root: Path,
    run: str,
    rule: str,
    node: str,
    inputs: Sequence[Mapping[str, Any]],
    outputs: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any] | None = None,
    counters: Mapping[str, Any] | None = None,
) -> None:
    values = {
        "rule": rule,
        "settings": settings or {},
        "inputs": inputs,
        "outputs": outputs,
        "counters": counters or {},
    }
    path = root / "results" / run / rule / node / "manifest.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")


def write_run(
    root: Path,
    run: str = "r",
    scores: Mapping[str, Any] | None = None,
    *,
    steps: int = PRETRAIN_STEPS,
    raw: str = "raw",
) -> Path:
    """Write a run.

    Args:
        root: the checkout.
        run: its name.
        scores: experiment -> content of `scores.json`, JSON values or text; None for an experiment
            that was only pre-trained. The seed of an experiment is its position. By default
            one experiment.
        steps: of pre-training.
        raw: content of the raw file.
    """
    source, ids = item(RAW, raw), item(f"results/{run}/tokens/a/train.ids", f"ids of {raw}")
    write_job(root, run, "data", "", [], [source])
    write_job(root, run, "tokens", "a", [source], [ids], counters={"train": {"tokens": 320}})
    for seed, (name, content) in enumerate((scores or {"a": scores_of(50.0)}).items()):
        text = f"{run} {name} {steps} {raw}"
        pretrained = item(f"results/{run}/pretrain/{name}/weights.safetensors", f"pre {text}")
        tuned = item(f"results/{run}/finetune/{name}/weights.safetensors", f"tuned {text}")
        settings = pretraining(steps=steps, seed=seed).model_dump(mode="json")
        counters = {"parameters": 1234, "final_loss": 2.5, "steps": steps}
        write_job(root, run, "pretrain", name, [ids], [pretrained], settings, counters)
        if content is None:
            continue
        settings = finetuning(seed=seed).model_dump(mode="json")
        write_job(root, run, "finetune", name, [pretrained], [tuned], settings)
        answers = item(f"results/{run}/evaluate_predict/{name}/glue_rte.jsonl", f"answers {text}")
        write_job(root, run, "evaluate_predict", name, [tuned], [answers])
        path = f"results/{run}/evaluate_score/{name}/scores.json"
        content = content if isinstance(content, str) else json.dumps(content)
        write_job(root, run, "evaluate_score", name, [answers], [item(path, content)])
        (root / path).write_text(content, encoding="utf-8")
    return root
