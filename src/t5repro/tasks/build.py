"""One task's original files to JSON lines, split by split (rule `tasks`).

Rows keep the order of their files. The splits of a task are written together, or not at all if a
row is refused.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from t5repro.errors import SettingsError, TaskDataError
from t5repro.files import atomic_path, write_json_lines, write_manifest
from t5repro.jobs.tasks import TasksJob
from t5repro.progress import Progress
from t5repro.task_facts import SPLITS
from t5repro.tasks.registry import task_named
from t5repro.tasks.task import Example, Task

PROGRESS_ROWS = 1000


def write_examples(job: TasksJob) -> None:
    """Write ``<folder>/<split>.jsonl`` for every split, and the manifest.

    Raises:
        SettingsError: the task or a split is unknown, or a split has no files.
        TaskDataError: a file is missing or broken, or a split has no row; nothing is written.
    """
    definition = task_named(job.task, job.settings.tasks)
    _check_splits(definition, job.files)
    splits = [split for split in SPLITS if split in job.files]
    counters: dict[str, Any] = {}
    # The files are renamed into place when the stack closes, so an error in the last split leaves
    # none.
    with ExitStack() as stack:
        for split in splits:
            path = stack.enter_context(atomic_path(job.folder / f"{split}.jsonl"))
            counters[split] = _write_split(
                definition,
                split,
                job.files[split],
                path,
                writes_segments=job.settings.tasks.segments,
            )
    for split in SPLITS:  # of an earlier run with other files
        if split not in job.files:
            (job.folder / f"{split}.jsonl").unlink(missing_ok=True)
    write_manifest(
        job.manifest,
        rule="tasks",
        settings=job.settings.model_dump(mode="json"),
        inputs=[path for split in splits for path in dict.fromkeys(job.files[split])],
        outputs=[job.folder / f"{split}.jsonl" for split in splits],
        counters=counters,
    )


def _check_splits(task: Task, files: Mapping[str, Sequence[Path]]) -> None:
    if not files:
        raise SettingsError(f"task {task.name!r} got no files; name a file for one of {SPLITS}")
    for split, paths in files.items():
        if split not in SPLITS:
            raise SettingsError(f"task {task.name!r}: unknown split {split!r}; splits are {SPLITS}")
        if not paths:
            raise SettingsError(
                f"task {task.name!r}: split {split!r} got no files; name at least one"
            )
    if "train" in files and task.evaluation_only:
        raise SettingsError(
            f"task {task.name!r} is never trained on, but got the training files "
            f"{[str(path) for path in files['train']]}; remove tasks.files.{task.name}.train"
        )


def _write_split(
    task: Task, split: str, files: Sequence[Path], path: Path, *, writes_segments: bool
) -> dict[str, Any]:
    excluded: Counter[str] = Counter()
    counts: dict[str, int] = {}
    rows: Iterator[dict[str, Any]] = (
        {
            "inputs": example.inputs,
            "targets": example.targets,
            "idx": example.idx,
            "answer": example.answer,
            **(_segment_fields(example) if writes_segments else {}),
        }
        for example in _examples(task, split, files, excluded, counts)
    )
    if not write_json_lines(path, rows):
        raise TaskDataError(
            f"task {task.name!r}: split {split!r} has no rows in {[str(name) for name in files]}; "
            "allowed: at least one; download the files again, or name others under tasks.files"
        )
    return counts | {"left_out": dict(sorted(excluded.items()))}


def _segment_fields(example: Example) -> dict[str, Any]:
    """Return the fields of an example that a network of labels reads in place of its text."""
    fields: dict[str, Any] = {"segments": example.segments or (example.inputs,)}
    if example.options:
        fields["options"] = example.options
    if example.spans:
        fields["spans"] = example.spans
    if example.number is not None:
        fields["number"] = example.number
    return fields


def _examples(
    task: Task, split: str, files: Sequence[Path], excluded: Counter[str], counts: dict[str, int]
) -> Iterator[Example]:
    number = labelled = longest = 0
    with Progress(f"tasks {task.name} {split}", total=None, unit="rows") as progress:
        for row in task.read(files, split, excluded):
            for example in task.to_examples(row):
                number += 1
                labelled += example.answer is not None
                longest = max(longest, len(example.inputs))
                yield example
                if number % PROGRESS_ROWS == 0:
                    progress.advance(PROGRESS_ROWS)
        progress.advance(number % PROGRESS_ROWS)
    counts.update(rows=number, labelled=labelled, longest_inputs_chars=longest)
