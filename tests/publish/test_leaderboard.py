"""Submissions: formats of the files, completeness, and bytes that are a function of predictions."""

import json
import os
import time
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT

from t5repro.cli.main import main
from t5repro.config.sections.tasks import TaskTexts, TextSettings
from t5repro.errors import ArtifactError
from t5repro.files import read_json, sha256_of, write_json_lines
from t5repro.publish.leaderboard import LEADERBOARDS, NO_TASKS, write_submission
from t5repro.task_facts import Submission

PREDICTIONS = {  # task -> predictions for its three rows; the third is never a label
    "glue_cola": ("acceptable", "unacceptable", "maybe"),
    "glue_sst2": ("positive", "negative", ""),
    "glue_mrpc": ("equivalent", "not_equivalent", "x"),
    "glue_stsb": ("3.4", "0.0", "similar"),
    "glue_qqp": ("duplicate", "not_duplicate", "x"),
    "glue_mnli_matched": ("neutral", "contradiction", "x"),
    "glue_mnli_mismatched": ("entailment", "neutral", "x"),
    "glue_qnli": ("not_entailment", "entailment", "x"),
    "glue_rte": ("not_entailment", "entailment", "x"),
    "glue_wnli": ("the cat", "a dog", ""),
    "glue_ax": ("neutral", "contradiction", "x"),
    "super_glue_boolq": ("True", "False", "x"),
    "super_glue_cb": ("contradiction", "neutral", "x"),
    "super_glue_copa": ("choice2", "choice1", "x"),
    "super_glue_multirc": ("True", "False", "True"),
    "super_glue_record": ("Straße 7", "Ann", ""),
    "super_glue_rte": ("not_entailment", "entailment", "x"),
    "super_glue_wic": ("True", "False", "x"),
    "super_glue_wsc": ("the cat", "a dog", ""),
    "super_glue_axb": ("not_entailment", "entailment", "x"),
    "super_glue_axg": ("entailment", "not_entailment", "x"),
}
MULTIRC = [(5, 8, 0), (5, 8, 1), (6, 9, 0)]


def idx_of(task: str, number: int) -> Any:
    if task == "super_glue_multirc":
        return dict(zip(("paragraph", "question", "answer"), MULTIRC[number], strict=True))
    if task == "super_glue_record":
        return {"passage": 0, "query": 40 + number}
    return number


def predicted(task: str) -> list[dict[str, Any]]:
    return [
        {
            "idx": idx_of(task, number),
            "inputs": "",
            "targets": "The cat",
            "answer": None,
            "prediction": prediction,
        }
        for number, prediction in enumerate(PREDICTIONS[task])
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for task in PREDICTIONS:
        write_json_lines(tmp_path / "predictions" / f"{task}.jsonl", predicted(task))
    return tmp_path


def small(leaderboard: str) -> dict[str, Submission]:
    return {task: replace(file, rows=3) for task, file in LEADERBOARDS[leaderboard].items()}


def submit(
    folder: Path,
    leaderboard: str,
    name: str = "out.zip",
    trivial: Mapping[str, Path | None] = NO_TASKS,
    **texts: Any,
) -> Path:
    write_submission(
        small(leaderboard),
        predictions=folder / "predictions",
        texts=TaskTexts(**texts),
        output=folder / name,
        manifest=folder / "out.manifest.json",
        trivial=trivial,
    )
    return folder / name


def files_of(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_the_glue_zip_has_eleven_tables_of_index_and_prediction(folder: Path) -> None:
    files = files_of(submit(folder, "glue"))
    labels = {
        "CoLA": (1, 0, 0),
        "SST-2": (1, 0, 0),
        "MRPC": (1, 0, 0),
        "QQP": (1, 0, 0),
        "STS-B": (3.4, 0.0, 0.0),
        "MNLI-m": ("neutral", "contradiction", "entailment"),
        "MNLI-mm": ("entailment", "neutral", "entailment"),
        "QNLI": ("not_entailment", "entailment", "entailment"),
        "RTE": ("not_entailment", "entailment", "entailment"),
        "WNLI": (1, 0, 0),
        "AX": ("neutral", "contradiction", "entailment"),
    }
    assert files == {
        f"{name}.tsv": f"index\tprediction\n0\t{a}\n1\t{b}\n2\t{c}\n"
        for name, (a, b, c) in labels.items()
    }


def test_the_super_glue_zip_has_ten_files_of_json_lines(folder: Path) -> None:
    files = files_of(submit(folder, "super_glue"))
    rows = {name: [json.loads(line) for line in text.splitlines()] for name, text in files.items()}
    entailment = ("not_entailment", "entailment", "entailment")
    labels = {
        "BoolQ": ("true", "false", "false"),
        "CB": ("contradiction", "neutral", "entailment"),
        "COPA": (1, 0, 0),
        "RTE": entailment,
        "WiC": ("true", "false", "false"),
        "WSC": ("True", "False", "False"),
        "AX-b": entailment,
        "AX-g": ("entailment", "not_entailment", "entailment"),
    }
    for name, expected in labels.items():
        assert rows.pop(f"{name}.jsonl") == [
            {"idx": number, "label": label} for number, label in enumerate(expected)
        ]
    assert rows.pop("ReCoRD.jsonl") == [
        {"idx": 40, "label": "Straße 7"},
        {"idx": 41, "label": "Ann"},
        {"idx": 42, "label": ""},
    ]
    assert rows.pop("MultiRC.jsonl") == [
        {
            "idx": 5,
            "passage": {
                "questions": [
                    {"idx": 8, "answers": [{"idx": 0, "label": 1}, {"idx": 1, "label": 0}]}
                ]
            },
        },
        {"idx": 6, "passage": {"questions": [{"idx": 9, "answers": [{"idx": 0, "label": 1}]}]}},
    ]
    assert rows == {}


def test_the_bytes_depend_on_the_predictions_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = submit(folder, "glue")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    os.utime(folder / "predictions" / "glue_cola.jsonl", (0, 0))
    second = submit(folder, "glue", "again.zip")
    monkeypatch.undo()
    time.tzset()
    assert first.read_bytes() == second.read_bytes()
    assert sha256_of(first) == ("579d624c139746afdd57be23b83dbb0bb37d25e196067d1a4d2c257fc9b48032")


def test_the_manifest_lists_inputs_and_counts_answers_that_are_not_a_label(folder: Path) -> None:
    submit(folder, "glue")
    manifest = read_json(folder / "out.manifest.json")
    assert len(manifest["inputs"]) == 11
    assert manifest["counters"]["glue_cola"] == {"rows": 3, "invalid": 1, "replaced": 1}
    assert manifest["counters"]["glue_stsb"] == {"rows": 3, "invalid": 1, "replaced": 1}
    assert manifest["outputs"][0]["sha256"] == sha256_of(folder / "out.zip")


def test_every_line_of_sts_b_is_a_number_from_0_to_5(folder: Path) -> None:
    for words, numbers in (
        (("5.8", "-2.0", "nan"), ("5.0", "0.0", "0.0")),
        (("1e999", "-1.0", "4.9999"), ("0.0", "0.0", "4.9999")),
        (("5.0", "0.0", "2.6"), ("5.0", "0.0", "2.6")),
    ):
        rows = [
            row | {"prediction": word}
            for row, word in zip(predicted("glue_stsb"), words, strict=True)
        ]
        write_json_lines(folder / "predictions" / "glue_stsb.jsonl", rows)
        lines = files_of(submit(folder, "glue"))["STS-B.tsv"].splitlines()[1:]
        assert [line.split("\t")[1] for line in lines] == list(numbers)
        counters = read_json(folder / "out.manifest.json")["counters"]["glue_stsb"]
        assert counters["replaced"] == sum(a != b for a, b in zip(words, numbers, strict=True))


def test_answers_are_read_as_the_run_writes_them(folder: Path) -> None:
    answers = ("True", "False", "choice2")
    pairs = zip(predicted("super_glue_copa"), answers, strict=True)
    rows = [row | {"prediction": answer} for row, answer in pairs]
    write_json_lines(folder / "predictions" / "super_glue_copa.jsonl", rows)
    path = submit(folder, "super_glue", text=TextSettings(copa_target="paper"))
    labels = [json.loads(line)["label"] for line in files_of(path)["COPA.jsonl"].splitlines()]
    assert labels == [1, 0, 0]


@pytest.mark.parametrize(
    ("task", "change", "message"),
    [
        (
            "glue_cola",
            None,
            r"predictions lacks \['glue_cola.jsonl'\]; a leaderboard takes every task",
        ),
        ("glue_rte", lambda rows: rows[:2], "glue_rte.jsonl has 2 rows; allowed: 3, the whole"),
        ("glue_rte", lambda rows: [*rows, rows[0]], "line 4 repeats idx 0 of line 1"),
        ("glue_rte", lambda rows: rows[::-1], "has idx 2 out of order; allowed: 0 to 2"),
        ("glue_ax", lambda rows: [{"idx": 0}, *rows[1:]], r"line 1 lacks \['targets', 'predicti"),
    ],
)
def test_incomplete_predictions_are_refused_and_nothing_is_written(
    folder: Path, task: str, change: Any, message: str
) -> None:
    path = folder / "predictions" / f"{task}.jsonl"
    path.unlink()
    if change:
        write_json_lines(path, change(predicted(task)))
    with pytest.raises(ArtifactError, match=message):
        submit(folder, "glue")
    assert sorted(item.name for item in folder.iterdir()) == ["predictions"]


def test_wnli_without_predictions_has_its_majority_class_if_it_is_named(folder: Path) -> None:
    """Devlin et al., 2019, section 4.1: WNLI is excluded; its leaderboard file is the majority."""
    (folder / "predictions" / "glue_wnli.jsonl").unlink()
    with pytest.raises(ArtifactError, match="glue_wnli.jsonl.*--trivial TASK"):
        submit(folder, "glue")
    path = submit(folder, "glue", trivial={"glue_wnli": None})
    assert files_of(path)["WNLI.tsv"] == "index\tprediction\n0\t0\n1\t0\n2\t0\n"
    manifest = read_json(folder / "out.manifest.json")
    assert manifest["counters"]["glue_wnli"] == {"rows": 3, "trivial": True}
    assert len(manifest["inputs"]) == 10


def test_record_without_predictions_has_the_most_frequent_entities(folder: Path) -> None:
    text = "Ann met Bob in Rome. Bob left."
    spans = [{"start": 0, "end": 2}, {"start": 8, "end": 10}, {"start": 15, "end": 18}]
    queries = [{"query": "@placeholder left", "idx": 40 + number} for number in range(3)]
    record = {"passage": {"text": text, "entities": spans}, "qas": queries, "idx": 0}
    file = folder / "test.jsonl"
    file.write_text(json.dumps(record) + "\n")
    (folder / "predictions" / "super_glue_record.jsonl").unlink()
    path = submit(folder, "super_glue", trivial={"super_glue_record": file})
    lines = [json.loads(line) for line in files_of(path)["ReCoRD.jsonl"].splitlines()]
    assert lines == [{"idx": 40 + number, "label": "Bob"} for number in range(3)]


@pytest.mark.parametrize(
    ("task", "file", "keeps", "message"),
    [
        ("glue_wnli", None, True, r"has predictions of \['glue_wnli'\]; leave them out"),
        ("super_glue_wsc", None, False, r"--trivial names \['super_glue_wsc'\]; tasks of the ben"),
        ("glue_cola", None, False, "names glue_cola, which networks of labels answer"),
        ("glue_wnli", Path("test.tsv"), False, "has a majority class and reads no test.tsv"),
    ],
)
def test_trivial_answers_replace_no_prediction_and_only_what_no_network_answers(
    folder: Path, task: str, file: Path | None, keeps: bool, message: str
) -> None:
    if not keeps:
        (folder / "predictions" / f"{task}.jsonl").unlink()
    with pytest.raises(ArtifactError, match=message):
        submit(folder, "glue", trivial={task: file})
    assert not (folder / "out.zip").exists()


def test_labels_of_winograd_schemas_are_those_of_the_leaderboards(folder: Path) -> None:
    """As an encoder writes them, with `tasks.text.winograd: labels`."""
    for task, words in (
        ("glue_wnli", ("entailment", "not_entailment", "x")),
        ("super_glue_wsc", ("True", "False", "x")),
    ):
        rows = [
            row | {"prediction": word} for row, word in zip(predicted(task), words, strict=True)
        ]
        write_json_lines(folder / "predictions" / f"{task}.jsonl", rows)
    text = TextSettings(winograd="labels")
    glue = files_of(submit(folder, "glue", text=text))
    assert glue["WNLI.tsv"].split() == ["index", "prediction", "0", "1", "1", "0", "2", "0"]
    wsc = files_of(submit(folder, "super_glue", text=text))["WSC.jsonl"].splitlines()
    assert [json.loads(line)["label"] for line in wsc] == ["True", "False", "False"]


def test_the_test_sets_have_these_rows() -> None:
    rows = {task: file.rows for files in LEADERBOARDS.values() for task, file in files.items()}
    assert sum(rows.values()) == 426_309 + 29_694
    assert rows.keys() == PREDICTIONS.keys()


def test_the_command_refuses_the_validation_split(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    command = ["tasks", "submit", "glue", "--predictions", str(folder / "predictions"), "--output"]
    assert main([*command, str(folder / "out.zip")]) == 1
    assert "glue_cola.jsonl has 3 rows; allowed: 1063" in capsys.readouterr().err
    assert not (folder / "out.zip").exists()
