"""The run of `finished_run` with all that a model card quotes, from raw files to a report."""

import json
from pathlib import Path

from finished_run import RUN, VOCABULARY, settings, write_run
from made_exports import recorded
from made_graphs import manifest, write

from t5repro.files import write_json
from t5repro.report.experiments import Experiment
from t5repro.report.rows import score_rows
from t5repro.report.scores_csv import csv_text

ORIGINS = {
    "https://huggingface.co/datasets/owner/crawl/resolve/main/0.wet": "odc-by",
    "written | by <hand>": "CC0",
}
ACCURACY = {"baseline": 62.5, "baseline_seed_1": 50.0}
HERE = Path()


def write_published_run(folder: Path) -> None:
    """Write the run in the current folder, which is `folder`."""
    write_run(folder)
    write(HERE, "Snakefile", "# none\n")
    raw = ["data/crawl/0.wet", "data/tasks/one.tsv", "data/tasks/unused.tsv"]
    for name in raw:
        write(HERE, name, f"raw {name}")
    files = ({raw[0]: ""}, {raw[1]: "", raw[2]: ""})
    sources = [
        {
            "origin": origin,
            "licence": licence,
            "files": {name.removeprefix("data/"): "" for name in names},
        }
        for (origin, licence), names in zip(ORIGINS.items(), files, strict=True)
    ]
    data = {"data": {"folder": "data", "sources": sources}}
    manifest(HERE, f"{RUN}/data/manifest.json", rule="data", outputs=raw, settings=data)
    corpus = write(HERE, f"{RUN}/c4/baseline/en.parquet", "rows").as_posix()
    pages = {"train_pages": 1173, "train_characters": 23662, "validation_pages": 36}
    manifest(
        HERE,
        f"{RUN}/c4/baseline/manifest.json",
        rule="c4",
        inputs=raw[:1],
        outputs=[corpus],
        counters={"languages": {"en": pages, "de": pages}},
    )
    ids = write(HERE, f"{RUN}/tokens/baseline/train.ids", "ids").as_posix()
    manifest(
        HERE,
        f"{RUN}/tokens/baseline/manifest.json",
        rule="tokens",
        inputs=[corpus],
        outputs=[ids],
        settings={"tokens": {"languages": ["en"]}},
    )
    examples = write(HERE, f"{RUN}/tasks/one/train.jsonl", "{}\n").as_posix()
    manifest(
        HERE,
        f"{RUN}/tasks/one/manifest.json",
        rule="tasks",
        inputs=raw[1:2],
        outputs=[examples, f"{RUN}/tasks/one/validation.jsonl"],
    )
    for steps, arm in enumerate(("other", "baseline")):
        _write_training(arm, steps, ids, examples)
    _write_scores()


def _write_training(arm: str, steps: int, ids: str, examples: str) -> None:
    """Write pre-training and fine-tuning of an arm; the weights of both are the same."""
    stage = settings(())
    shape = {"model": stage.model.model_dump(), "vocab": stage.vocab.model_dump()}
    pretrain = {"batch_size": 12, "objective": "replace_spans", "steps": steps}
    tuned = f"{RUN}/finetune/{arm}"
    trained = f"{RUN}/pretrain/{arm}"
    Path(trained).mkdir(parents=True)
    weights = Path(f"{trained}/weights.safetensors")
    weights.write_bytes(Path(f"{tuned}/weights.safetensors").read_bytes())
    manifest(
        HERE,
        f"{trained}/manifest.json",
        rule="pretrain",
        inputs=[ids],
        outputs=[weights.as_posix()],
        settings={**shape, "pretrain": pretrain, "seed": 0},
        counters={"parameters": 9876, "steps": steps, "final_loss": 2.25 if steps else None},
    )
    manifest(
        HERE,
        f"{tuned}/manifest.json",
        rule="finetune",
        inputs=[weights.as_posix(), VOCABULARY.as_posix(), examples],
        outputs=[f"{tuned}/weights.safetensors"],
        settings={**shape, "pretrain": pretrain, "finetune": {"batch_size": 16}, "seed": 0},
        counters={
            "parameters": 9876,
            "steps": 100,
            "final_loss": 0.5,
            "examples": {"one": 96},
            "drawn": {"one": 1600},
        },
    )
    recorded(HERE, f"finetune/{arm}", "finetune", f"{tuned}/manifest.json", 4)


def scores_of(accuracy: float) -> dict[str, object]:
    """Return the content of a ``scores.json``."""
    one = {
        "metrics": {"accuracy": accuracy, "f1": None},
        "primary_metric": "accuracy",
        "baseline": {"kind": "majority", "metrics": {"accuracy": 62.5, "f1": 0.0}},
        "examples": 11,
        "invalid": 2,
    }
    return {"tasks": {"one": one}, "averages": {"glue": {"value": None, "missing": []}}}


def _write_scores() -> None:
    predictions = f"{RUN}/evaluate_predict/baseline/one.jsonl"
    scores = f"{RUN}/evaluate_score/baseline/scores.json"
    write(HERE, scores, json.dumps(scores_of(ACCURACY["baseline"])))
    manifest(
        HERE,
        f"{RUN}/evaluate_score/baseline/manifest.json",
        rule="evaluate_score",
        inputs=[predictions],
        outputs=[scores],
    )
    rows = score_rows(
        [Experiment("baseline", tuple(ACCURACY), (0, 1))],
        {arm: scores_of(accuracy) for arm, accuracy in ACCURACY.items()},
    )
    table = write(HERE, f"{RUN}/report/scores.csv", csv_text(rows)).as_posix()
    manifest(HERE, f"{RUN}/report/manifest.json", rule="report", inputs=[scores], outputs=[table])
    write_json(Path("dvc.lock"), {})
