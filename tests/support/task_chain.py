"""The smallest chain that Snakemake runs, raw files to the examples of one task, for attacks."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from clones import commit, environment, run_in, small_run

from t5repro.lineage.shared_facts import put_back, reader_of

TASK = "glue_sst2"
STAGE = f"tasks_{TASK}"
FOLDER = f"results/demo/tasks/{TASK}"
EXAMPLES = f"{FOLDER}/validation.jsonl"
MANIFEST = f"{FOLDER}/manifest.json"
RECORD = f"records/demo/tasks/{TASK}.json"
RAW = "data/tasks/glue/SST-2"
# Code of an attacker: the first example of a file says what he wants.
FORGERY = """
import t5repro.tasks.build as _build
_honest = _build.write_json_lines
def _forged(path, rows):
    rows = list(rows)
    rows[0] = {**rows[0], "targets": "forged"}
    return _honest(path, rows)
_build.write_json_lines = _forged
"""


def task_chain(folder: Path) -> Path:
    """Build the examples of one task in a clone, sealed and committed."""
    small_run(folder, f"stage_{STAGE}")
    commit(folder, "results")
    return folder


def rerun(folder: Path, *, python: str = sys.executable, **variables: str) -> None:
    """Run the job again as its rule does, with these variables in addition."""
    settings = json.dumps(record(folder)["start"]["settings"])
    splits = {"train": "train", "validation": "dev", "test": "test"}
    command = [python, "-m", "t5repro", "stage", "tasks", "--settings", settings, "--task", TASK]
    command += ["--files", *(f"{split}={RAW}/{name}.tsv" for split, name in splits.items())]
    command += ["--folder", FOLDER, "--manifest", MANIFEST, "--log", f"logs/demo/tasks/{TASK}.log"]
    subprocess.run(command, cwd=folder, env={**environment(folder), **variables}, check=True)


def t5repro(folder: Path, *words: str, **variables: str) -> tuple[int, str]:
    """Run a command of the clone's code; return the exit code and all that it printed."""
    process = run_in(folder, "t5repro", *words, **variables)
    return process.returncode, process.stdout


def findings(folder: Path) -> dict[str, dict[str, Any]]:
    """Return path -> finding of `verify` about the code and settings that ran.

    A forged output and a record that is not sealed are findings as well.
    """
    _, text = t5repro(folder, "verify", "--json")
    answer = json.loads(text[text.index("{") :])
    entries = [*answer["findings"], *answer["warnings"]]
    kinds = ("code changed", "foreign code", "settings", "since changed")
    return {entry["path"]: entry for entry in entries if entry["kind"] in kinds}


def record(folder: Path) -> dict[str, Any]:
    """Return the whole record of the job, as the job wrote it."""
    path = folder / RECORD
    return put_back(json.loads(path.read_text(encoding="utf-8")), reader_of(path))


def is_forged(folder: Path) -> bool:
    """Return whether the code of `FORGERY` ran."""
    first = (folder / EXAMPLES).read_text(encoding="utf-8").splitlines()[0]
    return bool(json.loads(first)["targets"] == "forged")


def append(path: Path, text: str) -> None:
    """Append to a file, in place."""
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def keep_times(path: Path, edit: str, replacement: str) -> None:
    """Edit a file so that its size and times stay as they were."""
    status = os.stat(path)
    data = path.read_bytes()
    assert edit.encode() in data
    assert len(edit) == len(replacement)
    path.write_bytes(data.replace(edit.encode(), replacement.encode()))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
