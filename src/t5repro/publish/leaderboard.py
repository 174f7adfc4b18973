"""Submissions to the GLUE and SuperGLUE leaderboards, from predictions of the test sets.

A leaderboard scores a whole benchmark: a zip with one file per task and one line per row of its
test set. Incomplete predictions are refused; a task that a system does not answer can have trivial
answers, as WNLI in BERT's paper. Equal predictions give equal bytes.

An answer that is not a label becomes the first label, and a number outside the bounds of its task
the nearest of them, because the servers accept nothing else; the manifest counts both.

Source: submission instructions of the two benchmarks; released code, ``prepare_glue_submission``.
To add a file, set `submission` in the row of its task.
"""

import json
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from t5repro.config.sections.tasks import TaskTexts
from t5repro.errors import ArtifactError
from t5repro.files import atomic_path, read_json_lines, write_manifest
from t5repro.task_facts import Submission
from t5repro.task_table import BENCHMARK_TITLES, BY_NAME, TASKS
from t5repro.tasks.registry import task_named
from t5repro.tasks.task import Task

Rows = Sequence[Mapping[str, Any]]

ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed time, so that bytes do not depend on the clock
REGULAR_FILE = 0o100644 << 16  # mode in the upper half of the external attributes
UNIX = 3  # fixed too: zipfile would write the system of this machine


NO_TASKS: Mapping[str, Path | None] = MappingProxyType({})

# Benchmark -> task -> its file.
LEADERBOARDS: dict[str, dict[str, Submission]] = {
    benchmark: {
        task.name: task.submission
        for task in TASKS
        if task.benchmark == benchmark and task.submission
    }
    for benchmark in BENCHMARK_TITLES
}


def write_submission(
    submissions: Mapping[str, Submission],
    *,
    predictions: Path,
    texts: TaskTexts,
    output: Path,
    manifest: Path,
    trivial: Mapping[str, Path | None] = NO_TASKS,
) -> None:
    """Write the zip of a leaderboard and its manifest.

    Args:
        submissions: task -> its file.
        predictions: folder with ``<task>.jsonl``, from `evaluate_predict` on the split ``test``.
        texts: text settings of the run, which decide how an answer is read.
        output: zip to write.
        manifest: manifest to write; its counters per task are rows, invalid answers, and lines
            with another answer than the prediction, or rows and ``trivial: true``.
        trivial: tasks without predictions that get a trivial answer -> original file of the test
            set, or None for a task with a majority class.

    Raises:
        ArtifactError: predictions are missing, incomplete or of another split, or a task has no
            trivial answer, or predictions as well. All files are checked before anything is
            written.
    """
    _check_present(predictions, submissions, trivial)
    paths = {name: predictions / f"{name}.jsonl" for name in submissions} | dict(trivial)
    contents: dict[str, str] = {}
    counters: dict[str, Any] = {}
    for name, submission in submissions.items():
        task, path = task_named(name, texts), paths[name]
        if name in trivial or path is None:
            rows, answers = _trivial(submission, task, path)
            counters[name] = {"rows": len(rows), "trivial": True}
        else:
            rows = _read_complete(path, name, submission)
            answers, replaced = _answers(submission, task, rows)
            counters[name] = {
                "rows": len(rows),
                "invalid": task.invalid_count(rows),
                "replaced": replaced,
            }
        lines = _lines(submission, rows, answers)
        contents[submission.file] = "".join(line + "\n" for line in lines)
    with atomic_path(output) as temporary:
        write_zip(temporary, contents)
    write_manifest(
        manifest,
        rule="submit",
        settings={"tasks": texts.model_dump(mode="json")},
        inputs=[path for path in paths.values() if path],
        outputs=[output],
        counters=counters,
    )


def _check_present(
    predictions: Path, submissions: Mapping[str, Submission], trivial: Mapping[str, Path | None]
) -> None:
    """Raise ArtifactError unless each task has predictions, or is to get a trivial answer."""
    if unfilled := sorted(set(trivial) - set(submissions)):
        raise ArtifactError(f"--trivial names {unfilled}; tasks of the benchmark: {[*submissions]}")
    present = {name for name in submissions if (predictions / f"{name}.jsonl").is_file()}
    # A wrong list would otherwise replace answers of the model without a word.
    if both := sorted(present & set(trivial)):
        raise ArtifactError(
            f"{predictions} has predictions of {both}; leave them out of --trivial, which replaces "
            "no prediction"
        )
    if missing := [f"{name}.jsonl" for name in submissions if name not in present | set(trivial)]:
        raise ArtifactError(
            f"{predictions} lacks {missing}; a leaderboard takes every task or none: predict them "
            "with evaluate.split: test and all tasks of the benchmark in tasks.names, or fill "
            "those that the network cannot answer: --trivial TASK"
        )


def _trivial(submission: Submission, task: Task, file: Path | None) -> tuple[Rows, list[Any]]:
    """Return the rows of a test set with their trivial answers: the majority class, or the task's.

    Raises:
        ArtifactError: the task has neither, the file is missing, or it is not the test set.
    """
    if submission.majority is not None:
        if file:
            raise ArtifactError(f"--trivial {task.name} has a majority class and reads no {file}")
        # GLUE numbers the rows of its test sets, so no file of them is needed.
        rows: Rows = [{"idx": number} for number in range(submission.rows)]
        return rows, [submission.labels[submission.majority]] * len(rows)
    if task.trivial_answer is None:
        raise ArtifactError(
            f"--trivial names {task.name}, which networks of labels answer; allowed: "
            "tasks that they cannot answer, which are glue_wnli and super_glue_record"
        )
    if file is None:
        raise ArtifactError(
            f"the trivial answers of {task.name} are made from its test set; name its original "
            f"file: --trivial {task.name}=FILE"
        )
    rows = list(task.read([file], "test", Counter()))
    if len(rows) != submission.rows:
        raise ArtifactError(
            f"{file} has {len(rows)} rows; allowed: {submission.rows}, the whole test set of "
            f"{task.name}"
        )
    return rows, [task.trivial_answer(row) for row in rows]


def write_zip(path: Path, contents: Mapping[str, str]) -> None:
    """Write texts as files of a zip; its bytes are a function of names and texts.

    Files are stored, because the output of deflate depends on the release of zlib.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, text in contents.items():
            info = zipfile.ZipInfo(name, ZIP_EPOCH)
            info.create_system = UNIX
            info.external_attr = REGULAR_FILE
            archive.writestr(info, text.encode("utf-8"))


def _read_complete(path: Path, task: str, submission: Submission) -> Rows:
    """Return the predictions of a whole test set, each row once.

    Raises:
        ArtifactError: a row is missing, repeated or out of order.
    """
    rows: list[dict[str, Any]] = []
    line_of_idx: dict[str, int] = {}
    for line, row in enumerate(read_json_lines(path), start=1):
        if missing := [key for key in ("idx", "targets", "prediction") if key not in row]:
            raise ArtifactError(f"{path} line {line} lacks {missing}; rerun evaluate_predict")
        idx = json.dumps(row["idx"], sort_keys=True)  # a mapping in MultiRC and ReCoRD
        if idx in line_of_idx:
            raise ArtifactError(
                f"{path} line {line} repeats idx {idx} of line {line_of_idx[idx]}; allowed: each "
                "row of the test set once; set evaluate.split: test and rerun evaluate_predict"
            )
        line_of_idx[idx] = line
        rows.append(row)
    if len(rows) != submission.rows:
        raise ArtifactError(
            f"{path} has {len(rows)} rows; allowed: {submission.rows}, the whole test set of "
            f"{task}; set evaluate.split: test and evaluate.max_examples: 0, use the "
            "original files, and rerun evaluate_predict"
        )
    # GLUE's servers read lines by position; SuperGLUE's by the idx of each line.
    if submission.file.endswith(".tsv") and (
        misplaced := [row["idx"] for number, row in enumerate(rows) if row["idx"] != number]
    ):
        raise ArtifactError(
            f"{path} has idx {misplaced[0]!r} out of order; allowed: 0 to {submission.rows - 1} in "
            "the order of the test file; rerun evaluate_predict"
        )
    return rows


def _lines(submission: Submission, rows: Rows, answers: Sequence[Any]) -> Iterable[str]:
    if submission.file.endswith(".tsv"):
        return [
            "index\tprediction",
            *(f"{row['idx']}\t{answer}" for row, answer in zip(rows, answers, strict=True)),
        ]
    if all(isinstance(row["idx"], Mapping) and "paragraph" in row["idx"] for row in rows):
        return _multirc_lines(rows, answers)
    return [
        json.dumps({"idx": _leaderboard_idx(row["idx"]), "label": answer}, ensure_ascii=False)
        for row, answer in zip(rows, answers, strict=True)
    ]


def _answers(submission: Submission, task: Task, rows: Rows) -> tuple[list[Any], int]:
    """Return the answers that the server accepts, and how many are not what the model wrote."""
    predicted = [task.read_prediction(row["prediction"], row) for row in rows]
    allowed = predicted
    labels = submission.labels or task.labels
    if labels:
        allowed = [0 if task.is_invalid(answer) else answer for answer in predicted]
    elif bounds := BY_NAME[task.name].bounds:
        low, high = bounds
        allowed = [min(max(answer, low), high) for answer in predicted]
    replaced = sum(a != b for a, b in zip(allowed, predicted, strict=True))
    return [labels[answer] if labels else answer for answer in allowed], replaced


def _leaderboard_idx(idx: Any) -> Any:
    """Return the leaderboard's identity of a row; for ReCoRD the query's."""
    return idx["query"] if isinstance(idx, Mapping) else idx


def _multirc_lines(rows: Rows, answers: Sequence[Any]) -> list[str]:
    """Return one line per paragraph, with its questions and their answers nested."""
    paragraphs: dict[int, dict[int, list[dict[str, Any]]]] = {}
    for row, answer in zip(rows, answers, strict=True):
        idx = row["idx"]
        questions = paragraphs.setdefault(idx["paragraph"], {})
        questions.setdefault(idx["question"], []).append({"idx": idx["answer"], "label": answer})
    return [
        json.dumps(
            {
                "idx": paragraph,
                "passage": {
                    "questions": [
                        {"idx": question, "answers": labels}
                        for question, labels in questions.items()
                    ]
                },
            }
        )
        for paragraph, questions in paragraphs.items()
    ]
