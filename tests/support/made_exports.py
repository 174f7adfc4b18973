"""A run with records, a corpus in Parquet, a model and scores: what documents are made from."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from made_graphs import described, manifest, write

from t5repro.files import sha256_of, write_json

RUN = "results/r"
CORPUS = f"{RUN}/c4/a"
MODEL = f"{RUN}/finetune/a/weights.safetensors"
SCORES = f"{RUN}/evaluate_score/a/scores.json"
SHARDS = {
    "en-train-00000-of-00002": 3,
    "en-train-00001-of-00002": 2,
    "en-validation-00000-of-00001": 1,
    "ro-train-00000-of-00001": 2,
}
COMMIT = "c0ffee" + "0" * 34


def exported_run(root: Path, data_folder: str = "data") -> Path:
    """Write the run below `root`, its raw files in `data_folder`; return `root`."""
    write(root, "Snakefile", "include: 'workflow/rules/all.smk'\n")
    write(root, "workflow/rules/all.smk", "rule all:\n    input: []\n")
    raw = [f"{data_folder}/crawl/0.warc.wet", f"{data_folder}/tasks/one.tsv"]
    for name in raw:
        write(root, name, f"raw {name[-12:]}")
    data = {"data": {"folder": data_folder, "source": "https://user:secret@host.example/x?token=1"}}
    _job(root, "data", "data", [], raw, data, hour=0)
    corpus = [_shard(root, name, rows) for name, rows in SHARDS.items()]
    languages = {"en": (5, 1), "ro": (2, 0)}
    _job(
        root,
        "c4/a",
        "c4",
        raw[:1],
        corpus,
        {"c4": {"modulus": 7}},
        hour=1,
        counters={
            "languages": {
                name: {"train_pages": train, "validation_pages": validation}
                for name, (train, validation) in languages.items()
            }
        },
    )
    _write_and_record(root, "tasks/one", "tasks", raw[1:], ["train.jsonl"], hour=1)
    _write_and_record(root, "vocab/a", "vocab", corpus, ["sentencepiece.model"], hour=2)
    _write_and_record(
        root,
        "pretrain/a",
        "pretrain",
        [f"{CORPUS}/manifest.json", f"{RUN}/vocab/a/sentencepiece.model"],
        ["weights.safetensors"],
        hour=3,
    )
    examples = f"{RUN}/tasks/one/train.jsonl"
    _write_and_record(
        root,
        "finetune/a",
        "finetune",
        [f"{RUN}/pretrain/a/weights.safetensors", examples],
        ["weights.safetensors"],
        hour=4,
    )
    _write_and_record(
        root, "evaluate_predict/a", "evaluate_predict", [MODEL, examples], ["one.jsonl"], hour=5
    )
    write(root, SCORES, json.dumps({"tasks": {"one": {"metrics": {"accuracy": 62.5}}}}))
    predictions = f"{RUN}/evaluate_predict/a/one.jsonl"
    _job(root, "evaluate_score/a", "evaluate_score", [predictions], [SCORES], {}, hour=6)
    return root


def _shard(root: Path, name: str, rows: int) -> str:
    path = root / CORPUS / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {
        "url": [f"https://{name}.example/{row}" for row in range(rows)],
        "text": [f"page {row} of {name}" for row in range(rows)],
        "timestamp": ["2019-04-25T12:57:54Z"] * rows,
        "language": [name[:2]] * rows,
    }
    pq.write_table(pa.table(columns), path)
    return path.relative_to(root).as_posix()


def _write_and_record(
    root: Path, name: str, rule: str, inputs: list[str], outputs: list[str], hour: int
) -> None:
    paths = [f"{RUN}/{name}/{output}" for output in outputs]
    for path in paths:
        write(root, path, f"made {path}")
    _job(root, name, rule, inputs, paths, {rule: {"rate": 0.1, "steps": 8}, "seed": 3}, hour=hour)


def _job(
    root: Path,
    name: str,
    rule: str,
    inputs: list[str],
    outputs: list[str],
    settings: dict[str, Any],
    hour: int,
    counters: dict[str, Any] | None = None,
) -> None:
    path = f"{RUN}/{name}/manifest.json"
    manifest(root, path, rule=rule, inputs=inputs, outputs=outputs, settings=settings)
    if counters:
        values = json.loads((root / path).read_bytes())
        write_json(root / path, {**values, "counters": counters})
    recorded(root, name, rule, path, hour)


def recorded(root: Path, name: str, rule: str, manifest_path: str, hour: int) -> None:
    """Write the record of a job, ending half an hour after it started."""
    write_json(
        root / f"records/r/{name}.json",
        {
            "format": 1,
            "run": "r",
            "rule": rule,
            "node": name.partition("/")[2],
            "start": {
                "at": f"2026-01-02T{hour:02}:00:00+00:00",
                "attempt": 1,
                "commit": COMMIT,
                "uncommitted": None,
                "code": {f"src/t5repro/{rule}.py": sha256_of(root / "Snakefile")},
                "settings": {},
                "seeds": {"seed": 3},
                "machine": {
                    "system": "Linux x86_64",
                    "processor": None,
                    "processors": 2,
                    "python": "CPython 3.11.7",
                    "libraries": {"keras": "3.15.1", "snakemake": "9.27.1"},
                    "locks": {"requirements/cpu-gpu.txt": "1" * 64},
                    "installed": "2" * 64,
                },
            },
            "end": {
                "at": f"2026-01-02T{hour:02}:30:00+00:00",
                "seconds": 1800.0,
                "ok": True,
                "error": None,
                "inputs": [],
                "outputs": [described(root, manifest_path)],
                "code_changed": [],
                "devices": None,
            },
        },
    )
