"""Submissions to the GLUE and SuperGLUE leaderboards, from predictions of the test sets.

A leaderboard scores a whole benchmark: a zip with one file per task and one line per row of its
test set. Incomplete predictions are refused. Equal predictions give equal bytes.

An answer that is not a label becomes the first label, because the servers accept nothing else; the
manifest counts such answers.

Source: submission instructions of the two benchmarks; released code, ``prepare_glue_submission``.
To add a leaderboard, add its files to `LEADERBOARDS`.
"""

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.config.sections.tasks import TaskTexts
from t5repro.errors import ArtifactError
from t5repro.files import atomic_path, read_json_lines, write_manifest
from t5repro.tasks.glue import ENTAILMENT, INFERENCE
from t5repro.tasks.registry import task_named
from t5repro.tasks.super_glue import COMMITMENT
from t5repro.tasks.task import Task

Rows = Sequence[Mapping[str, Any]]

ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed time, so that bytes do not depend on the clock
REGULAR_FILE = 0o100644 << 16  # mode in the upper half of the external attributes
UNIX = 3  # fixed too: zipfile would write the system of this machine


@dataclass(frozen=True)
class SubmissionFile:
    """One file of a submission.

    Attributes:
        task: name of the task.
        name: name of the file in the zip.
        rows: number of rows of the public test set; queries of ReCoRD, answers of MultiRC.
        labels: the leaderboard's label for each label index; if empty, predictions are written
            unchanged.
    """

    task: str
    name: str
    rows: int
    labels: tuple[str | int, ...] = ()


GLUE_FILES = (
    SubmissionFile("glue_cola", "CoLA.tsv", 1_063, (0, 1)),
    SubmissionFile("glue_sst2", "SST-2.tsv", 1_821, (0, 1)),
    SubmissionFile("glue_mrpc", "MRPC.tsv", 1_725, (0, 1)),
    SubmissionFile("glue_stsb", "STS-B.tsv", 1_379),
    SubmissionFile("glue_qqp", "QQP.tsv", 390_965, (0, 1)),
    SubmissionFile("glue_mnli_matched", "MNLI-m.tsv", 9_796, INFERENCE),
    SubmissionFile("glue_mnli_mismatched", "MNLI-mm.tsv", 9_847, INFERENCE),
    SubmissionFile("glue_qnli", "QNLI.tsv", 5_463, ENTAILMENT),
    SubmissionFile("glue_rte", "RTE.tsv", 3_000, ENTAILMENT),
    SubmissionFile("glue_wnli", "WNLI.tsv", 146, (0, 1)),
    SubmissionFile("glue_ax", "AX.tsv", 1_104, INFERENCE),
)

SUPER_GLUE_FILES = (
    SubmissionFile("super_glue_boolq", "BoolQ.jsonl", 3_245, ("false", "true")),
    SubmissionFile("super_glue_cb", "CB.jsonl", 250, COMMITMENT),
    SubmissionFile("super_glue_copa", "COPA.jsonl", 500, (0, 1)),
    SubmissionFile("super_glue_multirc", "MultiRC.jsonl", 9_693, (0, 1)),
    SubmissionFile("super_glue_record", "ReCoRD.jsonl", 10_000),
    SubmissionFile("super_glue_rte", "RTE.jsonl", 3_000, ENTAILMENT),
    SubmissionFile("super_glue_wic", "WiC.jsonl", 1_400, ("false", "true")),
    SubmissionFile("super_glue_wsc", "WSC.jsonl", 146, ("False", "True")),
    SubmissionFile("super_glue_axb", "AX-b.jsonl", 1_104, ENTAILMENT),
    SubmissionFile("super_glue_axg", "AX-g.jsonl", 356, ENTAILMENT),
)

LEADERBOARDS: dict[str, tuple[SubmissionFile, ...]] = {
    "glue": GLUE_FILES,
    "super_glue": SUPER_GLUE_FILES,
}


def write_submission(
    files: Sequence[SubmissionFile],
    *,
    predictions: Path,
    texts: TaskTexts,
    output: Path,
    manifest: Path,
) -> None:
    """Write the zip of a leaderboard and its manifest.

    Args:
        files: files of the submission.
        predictions: folder with ``<task>.jsonl``, from `evaluate_predict` on the split ``test``.
        texts: text settings of the run, which decide how an answer is read.
        output: zip to write.
        manifest: manifest to write; its counters per task are rows and invalid answers.

    Raises:
        ArtifactError: predictions are missing, incomplete or of another split. All files are
            checked before anything is written.
    """
    paths = {file.task: predictions / f"{file.task}.jsonl" for file in files}
    if missing := [path.name for path in paths.values() if not path.is_file()]:
        raise ArtifactError(
            f"{predictions} lacks {missing}; a leaderboard takes every task or none: predict them "
            "with evaluate.split: test and all tasks of the benchmark in tasks.names"
        )
    contents: dict[str, str] = {}
    counters: dict[str, Any] = {}
    for file in files:
        task = task_named(file.task, texts)
        rows = _read_complete(paths[file.task], file)
        contents[file.name] = "".join(line + "\n" for line in _lines(file, task, rows))
        counters[file.task] = {"rows": len(rows), "invalid": task.invalid_count(rows)}
    with atomic_path(output) as temporary:
        write_zip(temporary, contents)
    write_manifest(
        manifest,
        rule="submit",
        settings={"tasks": texts.model_dump(mode="json")},
        inputs=list(paths.values()),
        outputs=[output],
        counters=counters,
    )


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


def _read_complete(path: Path, file: SubmissionFile) -> Rows:
    """Return the predictions of a whole test set, each row once.

    Raises:
        ArtifactError: a row is missing, repeated or out of order.
    """
    rows: list[dict[str, Any]] = []
    line_of_idx: dict[str, int] = {}
    for line, row in enumerate(read_json_lines(path), start=1):
        if missing := [key for key in ("idx", "targets", "prediction") if key not in row]:
            raise ArtifactError(f"{path} line {line} lacks {missing}; rerun evaluate_predict")
        idx = json.dumps(row["idx"], sort_keys=True)
        if idx in line_of_idx:
            raise ArtifactError(
                f"{path} line {line} repeats idx {idx} of line {line_of_idx[idx]}; allowed: each "
                "row of the test set once; set evaluate.split: test and rerun evaluate_predict"
            )
        line_of_idx[idx] = line
        rows.append(row)
    if len(rows) != file.rows:
        raise ArtifactError(
            f"{path} has {len(rows)} rows; allowed: {file.rows}, the whole test set of "
            f"{file.task}; set evaluate.split: test and evaluate.max_examples: 0, use the "
            "original files, and rerun evaluate_predict"
        )
    # GLUE's servers read lines by position; SuperGLUE's by the idx of each line.
    if file.name.endswith(".tsv") and (
        misplaced := [row["idx"] for number, row in enumerate(rows) if row["idx"] != number]
    ):
        raise ArtifactError(
            f"{path} has idx {misplaced[0]!r} out of order; allowed: 0 to {file.rows - 1} in the "
            "order of the test file; rerun evaluate_predict"
        )
    return rows


def _lines(file: SubmissionFile, task: Task, rows: Rows) -> Iterable[str]:
    answers = [_answer(file, task, row) for row in rows]
    if file.name.endswith(".tsv"):
        return [
            "index\tprediction",
            *(f"{row['idx']}\t{answer}" for row, answer in zip(rows, answers, strict=True)),
        ]
    if file.task == "super_glue_multirc":
        return _multirc_lines(rows, answers)
    return [
        json.dumps({"idx": _leaderboard_idx(row["idx"]), "label": answer}, ensure_ascii=False)
        for row, answer in zip(rows, answers, strict=True)
    ]


def _answer(file: SubmissionFile, task: Task, row: Mapping[str, Any]) -> Any:
    answer = task.read_prediction(row["prediction"], row)
    if not file.labels:
        return answer
    return file.labels[0 if task.is_invalid(answer) else answer]


def _leaderboard_idx(idx: Any) -> Any:
    """Return the leaderboard's identity of a row; for ReCoRD that of the query."""
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
