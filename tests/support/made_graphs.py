"""A small run written by hand: files, manifests and links as the stages write them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from whole_records import whole_record

from t5repro.files import describe_file, write_json, write_manifest
from t5repro.lineage.dvc_lock import folder_md5
from t5repro.lineage.hashes import hash_file
from t5repro.lineage.store import files_below


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def described(root: Path, name: str) -> dict[str, Any]:
    return {**describe_file(root / name), "path": name}


def manifest(
    root: Path,
    path: str,
    *,
    rule: str,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    counters: Mapping[str, Any] | None = None,
) -> None:
    write_manifest(
        root / path,
        rule=rule,
        settings=settings or {},
        inputs=[described(root, name) for name in inputs],
        outputs=[described(root, name) for name in outputs],
        counters=counters or {"files": len(outputs)},
    )


RESULT = "results/r"
SCORES = f"{RESULT}/evaluate_score/a/scores.json"
WEIGHTS = f"{RESULT}/finetune/a/weights.safetensors"


def small_run(root: Path, *, rate: float = 0.1, weights: str = "weights") -> Path:
    """Write a run: two raw pages and two tasks -> corpus -> weights -> predictions -> scores."""
    raw = ["data/crawl/0.wet", "data/crawl/1.wet", "data/tasks/one.tsv", "data/tasks/two.tsv"]
    for name in raw:
        if not (root / name).exists():
            write(root, name, f"raw {name}")
    manifest(
        root,
        f"{RESULT}/data/manifest.json",
        rule="data",
        outputs=raw,
        settings={"data": {"folder": "data", "source": ""}},
    )
    cleaned = []
    for shard in (0, 1):
        name = f"{RESULT}/c4_clean/a/{shard}.parquet"
        write(root, name, "cleaned " + (root / raw[shard]).read_text())
        manifest(
            root,
            f"{RESULT}/c4_clean/a/{shard}.manifest.json",
            rule="c4_clean",
            inputs=[raw[shard]],
            outputs=[name],
        )
        cleaned.append(name)
    corpus = f"{RESULT}/c4/a/en-train.parquet"
    write(root, corpus, "".join((root / name).read_text() for name in cleaned))
    manifest(root, f"{RESULT}/c4/a/manifest.json", rule="c4", inputs=cleaned, outputs=[corpus])
    examples = []
    for task, source in (("one", raw[2]), ("two", raw[3])):
        name = f"{RESULT}/tasks/{task}/train.jsonl"
        write(root, name, f"examples of {(root / source).read_text()}")
        manifest(
            root,
            f"{RESULT}/tasks/{task}/manifest.json",
            rule="tasks",
            inputs=[source],
            outputs=[name],
        )
        examples.append(name)
    corpus_sha256 = hashlib.sha256((root / corpus).read_bytes()).hexdigest()
    write(root, WEIGHTS, f"{weights} {rate} {corpus_sha256}")
    manifest(
        root,
        f"{RESULT}/finetune/a/manifest.json",
        rule="finetune",
        inputs=[corpus, *examples],
        outputs=[WEIGHTS],
        settings={"finetune": {"rate": rate}, "devices": {"kind": "cpu"}},
    )
    predictions = []
    for task in ("one", "two"):
        name = f"{RESULT}/evaluate_predict/a/{task}.jsonl"
        write(root, name, f"{task} by {(root / WEIGHTS).read_text()}")
        predictions.append(name)
    manifest(
        root,
        f"{RESULT}/evaluate_predict/a/manifest.json",
        rule="evaluate_predict",
        inputs=[WEIGHTS, *examples],
        outputs=predictions,
    )
    lengths = {task: {"metrics": {"accuracy": 50.0}} for task in ("one", "two")}
    write(root, SCORES, json.dumps({"tasks": lengths, "of": (root / WEIGHTS).read_text()}))
    manifest(
        root,
        f"{RESULT}/evaluate_score/a/manifest.json",
        rule="evaluate_score",
        inputs=[*predictions, *examples],
        outputs=[SCORES],
    )
    return root


def two_phases(root: Path) -> str:
    """Write a pre-training on one text that another on a second text continues; name its score."""
    weights: list[str] = []
    for phase, steps, count in (("first", 900, 900), ("second", 1100, 2000)):
        corpus = one_output(root, "c4", phase, "en-train.parquet", ())
        ids = one_output(root, "tokens", phase, "train.ids", [corpus])
        trained = {"steps": steps, "optimizer_step": count}
        weights = [
            one_output(root, "pretrain", phase, "weights.safetensors", [ids, *weights], trained)
        ]
    scores = json.dumps({"tasks": {"one": {"metrics": {"accuracy": 50.0}}}})
    return one_output(root, "evaluate_score", "phases", "scores.json", weights, text=scores)


def one_output(
    root: Path,
    rule: str,
    node: str,
    file: str,
    inputs: Sequence[str],
    counters: Mapping[str, Any] | None = None,
    text: str = "",
) -> str:
    """Write a job with one output; return its path."""
    folder = f"{RESULT}/{rule}/{node}"
    write(root, f"{folder}/{file}", text or f"{file} of {node}")
    manifest(
        root,
        f"{folder}/manifest.json",
        rule=rule,
        inputs=inputs,
        outputs=[f"{folder}/{file}"],
        settings={"devices": {"kind": "cpu"}},
        counters=counters,
    )
    return f"{folder}/{file}"


def record(root: Path, job: str, **start: Any) -> None:
    """Write the record of a job as `lineage.recording` does: what it ran, on what."""
    write_json(root / f"records/{job}.json", whole_record(job, start))


def lock(
    run: Path, *, folders: tuple[str, ...] = ("results/r/finetune", "data"), code: str = ""
) -> None:
    """Write a `dvc.lock` that tracks some folders, and the objects that DVC's cache holds.

    With `code`, the text that stands for the code of every rule, each folder is a stage.
    """
    stages: dict[str, dict[str, Any]] = {}
    for folder in folders:
        md5 = keep_folder(run, folder)
        rule, _, node = folder.removeprefix("results/r/").partition("/")
        name = f"{rule}-{node}".strip("-") if code else "all"
        stage = stages.setdefault(name, {"cmd": "run", "outs": []})
        stage["outs"].append({"path": folder, "hash": "md5", "md5": md5})
        if code:
            path = f"configs/resolved/code/{rule}.json"
            write(run, path, code)
            stage["deps"] = [{"path": path, "hash": "md5", "md5": hash_file(run / path).md5}]
            leaves = settings_leaves(run / folder / "manifest.json", name)
            stage["params"] = {"configs/resolved/r.json": leaves}
    write(run, "dvc.lock", yaml.safe_dump({"schema": "2.0", "stages": stages}, sort_keys=False))
    pipeline = {
        name: {
            "cmd": "run",
            "deps": [dep["path"] for dep in stage.get("deps", [])],
            "outs": [out["path"] for out in stage["outs"]],
        }
        for name, stage in stages.items()
    }
    write(run, "dvc.yaml", yaml.safe_dump({"stages": pipeline}, sort_keys=False))


def settings_leaves(path: Path, stage: str) -> dict[str, Any]:
    """Return the settings in a manifest as `dvc.lock` has them."""
    values = json.loads(path.read_text())["settings"] if path.is_file() else {}
    return {
        f"{stage}.{section}.{name}": value
        for section, leaves in values.items()
        for name, value in leaves.items()
    }


def keep_folder(run: Path, folder: str) -> str:
    """Put the files of a folder and their list into DVC's cache; return its hash."""
    listed = {}
    for path in files_below(run / folder):
        md5 = hash_file(Path(path)).md5
        listed[Path(path).relative_to(run / folder).as_posix()] = md5
        keep(run, md5, Path(path).read_bytes())
    text = json.dumps([{"md5": listed[name], "relpath": name} for name in sorted(listed)])
    md5 = folder_md5(listed)
    keep(run, md5, text.encode())
    return md5


def keep(run: Path, md5: str, data: bytes) -> None:
    path = run / f".dvc/cache/files/md5/{md5[:2]}/{md5[2:]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def large_run(root: Path, artifacts: int) -> str:
    """Write a run of so many artifacts: shards of a crawl, cleaned, and one job that reads all."""
    shards = artifacts // 20
    raw, cleaned = [], []

    def item(path: str) -> dict[str, object]:
        text = path.encode()
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text)
        return {"path": path, "bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}

    def job(path: str, rule: str, inputs: list, outputs: list) -> None:
        values = {
            "rule": rule,
            "settings": {},
            "inputs": inputs,
            "outputs": outputs,
            "counters": {},
        }
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(json.dumps(values))

    for shard in range(shards):
        read = [item(f"data/crawl/{shard}/{number}.wet") for number in range(9)]
        written = [item(f"results/r/c4_clean/a/{shard}/{number}") for number in range(10)]
        job(f"results/r/c4_clean/a/{shard}/manifest.json", "c4_clean", read, written)
        raw += read
        cleaned += written
    job("results/r/data/manifest.json", "data", [], raw)
    scores = item("results/r/evaluate_score/a/scores.json")
    job("results/r/evaluate_score/a/manifest.json", "evaluate_score", cleaned, [scores])
    return "data/crawl/0/0.wet"
