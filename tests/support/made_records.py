"""Records, index and commits of a run written by hand, as jobs and `seal` write them."""

import hashlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from made_graphs import keep_folder, lock, small_run, write

from t5repro.files import sha256_of, write_json
from t5repro.lineage.dvc_lock import read_lock
from t5repro.lineage.graph import DATA, job_name
from t5repro.lineage.record import FORMAT, numbers_in, seeds_in
from t5repro.lineage.record_index import index_path, stages_by_folder
from t5repro.lineage.shared_facts import SHARED
from t5repro.lineage.sources import closure_text, tree_of

CODE = ("src/t5repro/one.py", "src/t5repro/two.py")
# Python runs it for every rule, and so the two files of `CODE`, whose statements have effects.
INIT = "src/t5repro/__init__.py"
LOCKS = {"requirements/cpu-gpu.txt": "numpy==2.4.6 \\\n    --hash=sha256:0\nkeras==3.15.1\n"}
START, END = "2100-01-02T03:04:05+00:00", "2100-01-02T03:04:08+00:00"
IGNORED = "/results/\n/data/\n/work/\n/.dvc/cache/\n/.dvc/tmp/\n/.dvc/config.local\n"
STAGES = ("c4_clean/a", "c4/a", "data", "tasks/one", "tasks/two", "finetune/a")
FOLDERS = tuple(f"results/r/{name}" for name in (*STAGES, "evaluate_predict/a", "evaluate_score/a"))


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    return subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path, message: str) -> str:
    """Commit everything; return the commit."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def sealed_run(root: Path) -> Path:
    """Write a run with jobs of a clean commit, recorded, sealed and committed."""
    write(root, INIT, "import t5repro.one\nimport t5repro.two\n")
    for name in CODE:
        write(root, name, f"print({name!r})\n")
    for name, text in LOCKS.items():
        write(root, name, text)
    write(root, ".gitignore", IGNORED)
    git(root, "init", "--quiet", "--initial-branch=main")
    revision = commit(root, "code")
    small_run(root)
    write_records(root, revision)
    lock(root, folders=FOLDERS, code=closure_text(syntax(root)))
    raw = f"outs:\n- path: data\n  hash: md5\n  md5: {keep_folder(root, 'data')}\n"
    write(root, "data.dvc", raw)
    write_index(root)
    commit(root, "results")
    return root


def syntax(root: Path) -> dict[str, str]:
    return tree_of(root).closure("data") if (root / INIT).is_file() else {}


def write_records(root: Path, revision: str | None) -> None:
    """Write the record of every job of the run."""
    for path in sorted((root / "results").rglob("*manifest.json")):
        name = job_name(path.relative_to(root).as_posix())
        values = record_of_job(root, name, path, revision)
        write_json(root / f"records/{name}.json", values)


def record_of_job(root: Path, name: str, manifest: Path, revision: str | None) -> dict[str, Any]:
    listed = json.loads(manifest.read_text())
    own = {
        "path": manifest.relative_to(root).as_posix(),
        "bytes": manifest.stat().st_size,
        "sha256": sha256_of(manifest),
    }
    inputs, outputs = listed["inputs"], listed["outputs"]
    if listed["rule"] == DATA:
        inputs, outputs = outputs, []
    scores = manifest.parent / "scores.json"
    tasks = json.loads(scores.read_text())["tasks"] if scores.is_file() else None
    run, rule, *node = name.split("/")
    machine = {
        "system": "Linux x86_64",
        "processor": "A processor",
        "processors": 2,
        "python": "CPython 3.11.7",
        "libraries": {"numpy": "2.4.6", "keras": "3.15.1"},
        "locks": {path: sha256_of(root / path) for path in LOCKS if (root / path).is_file()},
        "installed": "0" * 64,
    }
    start = {
        "at": START,
        "attempt": 1,
        "commit": revision,
        "uncommitted": None,
        "code": {path: sha256_of(root / path) for path in CODE if (root / path).is_file()},
        "settings": listed["settings"],
        "seeds": dict(seeds_in(listed["settings"])),
        "machine": machine,
        "closure": syntax(root),
    }
    end = {
        "at": END,
        "seconds": 2.9,
        "ok": True,
        "error": None,
        "inputs": inputs,
        "outputs": [*outputs, own],
        "code_changed": [],
        "devices": None,
        "numbers": {
            **dict(numbers_in(listed["counters"])),
            **(dict(numbers_in({"tasks": tasks})) if tasks else {}),
        },
    }
    return {
        "run": run,
        "rule": rule,
        "node": "/".join(node),
        "start": start,
        "end": end,
        "format": FORMAT,
    }


def write_index(root: Path, run: str = "r") -> None:
    """Seal the records as they are now."""
    content = read_lock(root)
    stages: dict[str, Mapping[str, Any]] = {}
    for folder, stage in stages_by_folder(content).items():
        paths = sorted((root / folder.replace("results", "records", 1)).rglob("*.json"))
        single = root / f"{folder.replace('results', 'records', 1)}.json"
        paths += [single] if single.is_file() else []
        stages[stage] = {
            "md5": content.stages[stage].outs[folder],
            "records": {
                path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in paths
            },
        }
    shared = sorted((root / "records" / run / SHARED).glob("*.json"))
    if shared:
        stages[SHARED] = {
            "md5": "",
            "records": {path.relative_to(root).as_posix(): sha256_of(path) for path in shared},
        }
    write_json(root / index_path(run), {"format": 1, "stages": stages})
