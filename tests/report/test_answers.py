"""The answers page of a task: what is right, by whom, and that hostile text stays text."""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from t5repro.config.schema import ReportStage
from t5repro.errors import ArtifactError
from t5repro.report.answers import MAX_EXAMPLES, answers_page, is_right, read_predictions
from t5repro.report.experiments import Experiment
from t5repro.report.page import report_texts
from t5repro.tasks.registry import task_named

HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">\u202e'
WORDS = ("unacceptable", "acceptable")


def row(answer: int, prediction: str, inputs: str = "cola sentence: x") -> dict[str, Any]:
    return {
        "answer": answer,
        "idx": 0,
        "inputs": inputs,
        "prediction": prediction,
        "targets": WORDS[answer],
    }


def page_of(rows: dict[str, list], *experiments: Experiment) -> str:
    return answers_page(
        task_named("glue_cola"),
        rows,
        experiments or [Experiment(name=arm, arms=(arm,), seeds=(0,)) for arm in rows],
        run="demo",
        split="validation",
        report="../report.html",
        others={"glue_cola": "glue_cola.html", "squad": "squad.html"},
    )


def test_each_row_has_the_answers_of_every_experiment_marked_right_or_wrong() -> None:
    page = page_of(
        {
            "a": [row(1, "acceptable"), row(0, "acceptable")],
            "b": [row(1, "Acceptable"), row(0, "unacceptable")],
        }
    )
    assert re.findall(r'<li id="row-(\d)" data-wrong="([\d ]*)">', page) == [("1", "1"), ("2", "0")]
    assert page.count("✓ right") == page.count("✗ wrong") == 2
    assert "1 of 2 rows right" in page
    assert '<a href="squad.html">SQuAD</a>' in page
    assert '<a href="../report.html">run report</a>' in page


def test_a_row_is_wrong_for_an_experiment_if_a_seed_is_wrong() -> None:
    seeds = Experiment(name="a", arms=("a", "b", "c"), seeds=(0, 1, 2))
    rows = {"a": [row(1, "acceptable")], "b": [row(1, "unacceptable")], "c": [row(1, "acceptable")]}
    page = page_of(rows, seeds)
    assert 'data-wrong="0"' in page
    assert "seed 0, 2" in page
    assert "seed 1" in page
    assert "0 of 1 rows right" in page


def test_the_confusion_matrix_counts_every_pair_and_invalid_answers() -> None:
    rows = [row(0, "unacceptable")] * 3 + [row(0, "acceptable")] + [row(1, "acceptable")] * 4
    page = page_of({"a": [*rows, row(1, "perhaps"), row(1, "unacceptable")]})
    table = page.partition("Confusion matrix</caption>")[2].partition("</table>")[0]
    cells = re.findall(r"<td[^>]*>(\d+)</td>", table)
    assert cells == ["3", "1", "0", "1", "4", "1"]
    scores = page.partition("Scores by label</caption>")[2].partition("</table>")[0]
    assert re.findall(r'<td class="number">([\d.]+)</td>', scores) == [
        *("75.00", "75.00", "75.00", "4"),
        *("80.00", "66.67", "72.73", "6"),
    ]


def test_a_long_file_shows_as_many_wrong_rows_as_right_ones() -> None:
    rows = [row(1, "acceptable" if number % 10 else "no") for number in range(3000)]
    page = page_of({"a": rows})
    wrong = re.findall(r'data-wrong="(\d*)"', page)
    assert len(wrong) == MAX_EXAMPLES
    assert wrong.count("0") == MAX_EXAMPLES // 2
    numbers = [int(number) for number in re.findall(r'<li id="row-(\d+)"', page)]
    assert numbers == sorted(numbers)
    few_wrong = page_of({"a": [row(1, "acceptable")] * 500 + [row(1, "no")] * 3})
    assert re.findall(r'data-wrong="(\d*)"', few_wrong).count("0") == 3


@pytest.mark.parametrize(
    ("task", "answer", "prediction", "expected"),
    [
        ("glue_stsb", 2.6, "2.6", True),
        ("glue_stsb", 2.6, "2.8", False),
        ("squad", ["The red house", "house"], "red house", True),
        ("squad", ["The red house"], "blue house", False),
        ("wmt_en_de", "Guten Tag", "Guten Tag", True),
        ("wmt_en_de", "Guten Tag", "guten tag", False),
        ("super_glue_record", {"answers": ["Rome"], "group": [1, 2]}, "Rome", True),
        ("super_glue_multirc", {"label": 1, "group": 4}, "True", True),
        ("super_glue_multirc", {"label": 1, "group": 4}, "False", False),
    ],
)
def test_a_prediction_is_read_as_the_metrics_read_it(
    task: str, answer: Any, prediction: str, expected: bool
) -> None:
    assert is_right(task_named(task), {"answer": answer, "prediction": prediction}) is expected


def test_hostile_text_of_rows_and_models_is_only_text() -> None:
    page = page_of({"a": [row(1, HOSTILE, HOSTILE)]})
    assert page.count("<script>") == 1
    assert page.count("</script>") == 1
    assert "<img" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;alert(1)" in page
    script = page.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = page.partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0]
    assert policy.startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    assert f"script-src &#39;sha256-{digest}&#39;;" in policy
    assert "unsafe" not in policy


def test_predictions_of_kept_steps_are_not_read(tmp_path: Path) -> None:
    last, kept = tmp_path / "glue_cola.jsonl", tmp_path / "step-3/glue_cola.jsonl"
    last.write_text(json.dumps(row(1, "acceptable")) + "\n")
    answered = read_predictions({"a": [last, kept]})
    assert list(answered) == ["glue_cola"]
    assert answered["glue_cola"]["a"] == [row(1, "acceptable")]


def test_a_damaged_prediction_is_named(tmp_path: Path) -> None:
    path = tmp_path / "glue_cola.jsonl"
    path.write_text("{}\n")
    with pytest.raises(ArtifactError, match=r"glue_cola\.jsonl line 1 lacks \['inputs'"):
        read_predictions({"a": [path]})


def texts_of(report: Any, predictions: dict[str, list[Path]], answers: dict[str, Path]) -> Any:
    files = {
        name: {arm: Path(f"{folder}/{arm}/{file}") for arm in report.scores}
        for name, folder, file in (
            ("scores", "score", "scores.json"),
            ("pretrain", "pretrain", "history.csv"),
            ("finetune", "finetune", "history.csv"),
        )
    }
    return report_texts(
        ReportStage(settings=report.settings),
        scores=files["scores"],
        histories={
            arm: {phase: files[phase][arm] for phase in ("pretrain", "finetune")}
            for arm in report.scores
        },
        corpus=dict.fromkeys(report.scores, Path("c4/manifest.json")),
        html=report.html,
        csv=report.csv,
        predictions=predictions,
        answers=answers,
    )


def test_the_report_links_to_answers_and_shows_intervals_in_any_order_of_files(report: Any) -> None:
    predictions: dict[str, list[Path]] = {}
    for arm in report.scores:
        for task in ("glue_cola", "glue_sst2"):
            path = Path(f"evaluate_predict/{arm}/{task}.jsonl")
            rows = [row(number % 2, WORDS[number % 3 % 2]) for number in range(30)]
            path.write_text("".join(json.dumps(entry) + "\n" for entry in rows))
            predictions.setdefault(arm, []).append(path)
    pages = {task: Path(f"report/answers/{task}.html") for task in ("glue_cola", "glue_sst2")}
    texts = texts_of(report, predictions, pages)
    assert '<a href="answers/glue_cola.html">CoLA</a>' in texts.html
    assert texts.html.count('class="interval"') == 2 * 3  # two experiments and their difference
    assert "95 % interval over rows" in texts.html
    assert '<a href="../report.html">' in texts.answers["glue_cola"]
    assert '<a href="glue_sst2.html">SST-2</a>' in texts.answers["glue_cola"]
    reversed_files = {arm: paths[::-1] for arm, paths in predictions.items()}
    assert texts_of(report, reversed_files, dict(reversed(pages.items()))) == texts
