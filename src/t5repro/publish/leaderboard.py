"""Predictions of the test sets as the files that the GLUE and SuperGLUE leaderboards take.

A leaderboard scores a benchmark as a whole: a zip with a file for every task, a line for every row
of its test set. What is not complete is refused. The same predictions give the same bytes.

Formats: the benchmarks' instructions for submissions; released code, ``prepare_glue_submission``.
An answer that is no label goes in as the first label, because the servers know no other word for
it; how often that happened is in the manifest.
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

EARLIEST = (1980, 1, 1, 0, 0, 0)  # a zip cannot say earlier; the time of writing says nothing here
REGULAR_FILE = 0o100644 << 16
UNIX = 3


@dataclass(frozen=True)
class Entry:
    """One file of a submission.

    Attributes:
        task: whose predictions.
        file: its name in the zip.
        rows: rows of the public test set; for ReCoRD queries, for MultiRC answers.
        words: what to write for each label; empty: what was predicted, as it is.
    """

    task: str
    file: str
    rows: int
    words: tuple[str | int, ...] = ()


GLUE_FILES = (
    Entry("glue_cola", "CoLA.tsv", 1_063, (0, 1)),
    Entry("glue_sst2", "SST-2.tsv", 1_821, (0, 1)),
    Entry("glue_mrpc", "MRPC.tsv", 1_725, (0, 1)),
    Entry("glue_stsb", "STS-B.tsv", 1_379),
    Entry("glue_qqp", "QQP.tsv", 390_965, (0, 1)),
    Entry("glue_mnli_matched", "MNLI-m.tsv", 9_796, INFERENCE),
    Entry("glue_mnli_mismatched", "MNLI-mm.tsv", 9_847, INFERENCE),
    Entry("glue_qnli", "QNLI.tsv", 5_463, ENTAILMENT),
    Entry("glue_rte", "RTE.tsv", 3_000, ENTAILMENT),
    Entry("glue_wnli", "WNLI.tsv", 146, (0, 1)),
    Entry("glue_ax", "AX.tsv", 1_104, INFERENCE),
)

SUPER_GLUE_FILES = (
    Entry("super_glue_boolq", "BoolQ.jsonl", 3_245, ("false", "true")),
    Entry("super_glue_cb", "CB.jsonl", 250, COMMITMENT),
    Entry("super_glue_copa", "COPA.jsonl", 500, (0, 1)),
    Entry("super_glue_multirc", "MultiRC.jsonl", 9_693, (0, 1)),
    Entry("super_glue_record", "ReCoRD.jsonl", 10_000),
    Entry("super_glue_rte", "RTE.jsonl", 3_000, ENTAILMENT),
    Entry("super_glue_wic", "WiC.jsonl", 1_400, ("false", "true")),
    Entry("super_glue_wsc", "WSC.jsonl", 146, ("False", "True")),
    Entry("super_glue_axb", "AX-b.jsonl", 1_104, ENTAILMENT),
    Entry("super_glue_axg", "AX-g.jsonl", 356, ENTAILMENT),
)

LEADERBOARDS: dict[str, tuple[Entry, ...]] = {"glue": GLUE_FILES, "super_glue": SUPER_GLUE_FILES}


def write_submission(
    entries: Sequence[Entry], *, predictions: Path, texts: TaskTexts, output: Path, manifest: Path
) -> None:
    """Write the zip of a leaderboard and its manifest.

    Args:
        entries: the files of the submission.
        predictions: folder of ``<task>.jsonl``, from `evaluate_predict` of the split ``test``.
        texts: the run's, which say how an answer is read.
        output: the zip.
        manifest: which predictions went in; counters per task are rows and invalid answers.

    Raises:
        ArtifactError: predictions are missing or incomplete, or of another split; all files are
            looked at before anything is written.
    """
    paths = {entry.task: predictions / f"{entry.task}.jsonl" for entry in entries}
    if absent := [path.name for path in paths.values() if not path.is_file()]:
        raise ArtifactError(
            f"{predictions} lacks {absent}; a leaderboard takes every task or none: predict them "
            "with evaluate.split: test and all tasks of the benchmark in tasks.names"
        )
    contents: dict[str, str] = {}
    counters: dict[str, Any] = {}
    for entry in entries:
        task = task_named(entry.task, texts)
        rows = _read_complete(paths[entry.task], entry)
        contents[entry.file] = "".join(line + "\n" for line in _lines(entry, task, rows))
        counters[entry.task] = {"rows": len(rows), "invalid": task.invalid_count(rows)}
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
    """Write texts as files of a zip, stored: its bytes depend on nothing but them."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, text in contents.items():
            item = zipfile.ZipInfo(name, EARLIEST)
            item.create_system = UNIX
            item.external_attr = REGULAR_FILE
            archive.writestr(item, text.encode("utf-8"))


def _read_complete(path: Path, entry: Entry) -> Rows:
    """Return the predictions for a whole test set, each row once.

    Raises:
        ArtifactError: they are not.
    """
    rows: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for number, row in enumerate(read_json_lines(path), start=1):
        if absent := [key for key in ("idx", "targets", "prediction") if key not in row]:
            raise ArtifactError(f"{path} line {number} lacks {absent}; rerun evaluate_predict")
        idx = json.dumps(row["idx"], sort_keys=True)
        if idx in seen:
            raise ArtifactError(
                f"{path} line {number} repeats idx {idx} of line {seen[idx]}; allowed: a row of "
                "the test set once; set evaluate.split: test and rerun evaluate_predict"
            )
        seen[idx] = number
        rows.append(row)
    if len(rows) != entry.rows:
        raise ArtifactError(
            f"{path} holds {len(rows)} rows; allowed: {entry.rows}, the whole test set of "
            f"{entry.task}; set evaluate.split: test and evaluate.max_examples: 0, use the "
            "original files, and rerun evaluate_predict"
        )
    if entry.file.endswith(".tsv") and (
        wrong := [row["idx"] for number, row in enumerate(rows) if row["idx"] != number]
    ):
        raise ArtifactError(
            f"{path} holds idx {wrong[0]!r} out of turn; allowed: 0 to {entry.rows - 1} in the "
            "order of the test file; rerun evaluate_predict"
        )
    return rows


def _lines(entry: Entry, task: Task, rows: Rows) -> Iterable[str]:
    answers = [_answer(entry, task, row) for row in rows]
    if entry.file.endswith(".tsv"):
        return [
            "index\tprediction",
            *(f"{row['idx']}\t{answer}" for row, answer in zip(rows, answers, strict=True)),
        ]
    if entry.task == "super_glue_multirc":
        return _nested(rows, answers)
    return [
        json.dumps({"idx": _query_of(row["idx"]), "label": answer}, ensure_ascii=False)
        for row, answer in zip(rows, answers, strict=True)
    ]


def _answer(entry: Entry, task: Task, row: Mapping[str, Any]) -> Any:
    found = task.read_prediction(row["prediction"], row)
    if not entry.words:
        return found
    return entry.words[0 if task.is_invalid(found) else found]


def _query_of(idx: Any) -> Any:
    """Return the identity that a leaderboard knows: of ReCoRD's rows, that of the query."""
    return idx["query"] if isinstance(idx, Mapping) else idx


def _nested(rows: Rows, answers: Sequence[Any]) -> list[str]:
    """Return MultiRC's lines: a paragraph, in it questions, in them answers."""
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
                        {"idx": question, "answers": listed}
                        for question, listed in questions.items()
                    ]
                },
            }
        )
        for paragraph, questions in paragraphs.items()
    ]
