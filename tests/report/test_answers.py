"""The answers page of a task: what is right, by whom, and that hostile text stays text."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from finished_run import VOCABULARY, write_vocabulary

from t5repro.config.schema import ReportStage
from t5repro.errors import ArtifactError
from t5repro.jobs.report import ReportJob
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


def page_of(
    rows: dict[str, list],
    *experiments: Experiment,
    task: str = "glue_cola",
    unwritable: Mapping[str, str] | None = None,
) -> str:
    return answers_page(
        task_named(task),
        rows,
        experiments or [Experiment(name=arm, arms=(arm,), seeds=(0,)) for arm in rows],
        run="demo",
        split="validation",
        report="../report.html",
        task_links={"glue_cola": "glue_cola.html", "squad": "squad.html"},
        unwritable=unwritable,
    )


def test_each_row_has_the_answers_of_every_experiment_marked_right_or_wrong() -> None:
    page = page_of(
        {
            "a": [row(1, "acceptable"), row(0, "acceptable")],
            "b": [row(1, "Acceptable"), row(0, "unacceptable")],
        }
    )
    assert re.findall(r'<li id="row-(\d)" data-wrong="([\d ]*)"', page) == [("1", "1"), ("2", "0")]
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
    assert "0 of 1 rows right with each of 3 seeds" in page


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
        ("glue_stsb", 2.6, "2.6", None),
        ("squad", ["The red house", "house"], "red house", True),
        ("squad", ["The red house"], "blue house", False),
        ("squad", None, "blue house", None),
        ("glue_cola", None, "acceptable", None),
        ("wmt_en_de", "Guten Tag", "Guten Tag", None),
        ("cnn_dailymail", "a b", "a b c", None),
        ("super_glue_record", {"answers": ["Rome"], "group": [1, 2]}, "Rome", True),
        ("super_glue_record", {"answers": ["The US", "Rome"], "group": [1, 2]}, "the u.s.", True),
        ("super_glue_record", {"answers": ["Rome"], "group": [1, 2]}, "Paris", False),
        ("super_glue_record", None, "Rome", None),
        ("super_glue_multirc", None, "True", None),
        ("super_glue_multirc", {"label": 1, "group": 4}, "True", True),
        ("super_glue_multirc", {"label": 1, "group": 4}, "False", False),
    ],
)
def test_a_prediction_is_read_as_the_metrics_read_it(
    task: str, answer: Any, prediction: str, expected: bool | None
) -> None:
    assert is_right(task_named(task), {"answer": answer, "prediction": prediction}) is expected


def test_rows_whose_answer_is_not_public_are_not_marked() -> None:
    unlabelled = {**row(1, "acceptable"), "answer": None, "targets": "<unk>"}
    page = page_of({"a": [unlabelled] * 3})
    assert "✗ wrong" not in page
    assert "✓ right" not in page
    assert "<unk>" not in page
    assert page.count("no answer known") == 3 + 1
    assert "Confusion matrix" not in page
    mixed = page_of({"a": [unlabelled, row(1, "acceptable")]})
    assert "1 of 1 rows right" in mixed
    assert re.findall(r'data-wrong="(.*?)" data-right="(.*?)"', mixed) == [("", ""), ("", "0")]


def test_answers_are_not_marked_if_the_metrics_compare_whole_texts_or_numbers() -> None:
    summary = {"inputs": "summarize: x", "targets": "a b", "answer": "a b", "prediction": "a b c"}
    page = page_of({"a": [summary] * 300}, task="cnn_dailymail")
    assert "✗ wrong" not in page
    assert "rows right" not in page
    assert "Its metrics know no right or wrong answers" in page
    assert "200 of 300 rows. Long texts" in page


def test_experiments_with_other_rows_answer_only_theirs() -> None:
    first = [row(1, "acceptable", f"cola sentence: {number}") for number in range(5)]
    more = [row(1, "no", f"cola sentence: {number}") for number in range(10)]
    for rows in ({"a": first, "b": more}, {"b": more, "a": first}):
        page = page_of(rows)
        assert "5 of 5 rows right" in page
        assert "0 of 10 rows right" in page
        numbers = re.findall(r'<li id="row-(\d+)".*?sentence: (\d+)</bdi>', page, re.DOTALL)
        assert numbers == [(str(number + 1), str(number)) for number in range(10)]
        assert (page.count("✓ right"), page.count("✗ wrong")) == (5, 10)
    other_split = [row(0, "unacceptable", "cola sentence: other")]
    page = page_of({"a": first, "b": other_split})
    assert len(re.findall(r'<li id="row-', page)) == 6
    assert page.count("✓ right") == 6


def test_equal_rows_of_a_file_stay_separate() -> None:
    page = page_of({"a": [row(1, "acceptable"), row(1, "no")], "b": [row(1, "no")] * 2})
    assert re.findall(r'data-wrong="(.*?)"', page) == ["1", "0 1"]


def test_multirc_has_a_confusion_matrix() -> None:
    answer = {"label": 1, "group": 4}
    option = {"inputs": "i", "targets": "True", "answer": answer, "prediction": "False"}
    page = page_of({"a": [option] * 3}, task="super_glue_multirc")
    table = page.partition("Confusion matrix</caption>")[2].partition("</table>")[0]
    assert re.findall(r"<td[^>]*>(\d+)</td>", table) == ["0", "0", "0", "3", "0", "0"]


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


def test_a_damaged_prediction_is_named(tmp_path: Path) -> None:
    path = tmp_path / "glue_cola.jsonl"
    path.write_text("{}\n")
    with pytest.raises(ArtifactError, match=r"glue_cola\.jsonl line 1 lacks \['inputs'"):
        read_predictions({"a": [path]})


def texts_of(
    report: Any,
    predictions: dict[str, list[Path]],
    answers: dict[str, Path],
    trace: Path | None = None,
    vocabularies: Mapping[str, Path] | None = None,
) -> Any:
    files = {
        name: {arm: Path(f"{folder}/{arm}/{file}") for arm in report.scores}
        for name, folder, file in (
            ("scores", "score", "scores.json"),
            ("pretrain", "pretrain", "history.csv"),
            ("finetune", "finetune", "history.csv"),
        )
    }
    return report_texts(
        ReportJob(
            ReportStage(settings=report.settings),
            scores=files["scores"],
            pretrain_history=files["pretrain"],
            finetune_history=files["finetune"],
            corpus=dict.fromkeys(report.scores, Path("c4/manifest.json")),
            html=report.html,
            csv=report.csv,
            manifest=report.manifest,
            trace=trace,
            predictions=predictions,
            answers=answers,
            vocabularies=vocabularies or {},
        )
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
    assert ">lineage<" not in texts.answers["glue_cola"]
    traced = texts_of(report, predictions, pages, Path("report/trace.html")).answers["glue_cola"]
    assert re.findall(r'<a href="([^"]*)">lineage</a>', traced) == [
        f"../trace.html#file:evaluate_predict.{arm}.glue_cola.jsonl" for arm in report.scores
    ]
    reversed_files = {arm: paths[::-1] for arm, paths in predictions.items()}
    assert texts_of(report, reversed_files, dict(reversed(pages.items()))) == texts


def test_the_answers_say_which_targets_the_vocabulary_of_an_experiment_cannot_write(
    report: Any,
) -> None:
    arm, other = sorted(report.scores)
    write_vocabulary(Path())
    targets = ["yes or no", "yes  or no", "yes\u4e00", "no\u4e01"]
    predictions = {}
    for name in (arm, other):
        path = Path(f"evaluate_predict/{name}/glue_cola.jsonl")
        rows = [{**row(1, "yes"), "targets": target} for target in targets]
        path.write_text("".join(json.dumps(entry) + "\n" for entry in rows))
        predictions[name] = [path]
    pages = {"glue_cola": Path("report/answers/glue_cola.html")}
    texts = texts_of(report, predictions, pages, vocabularies={arm: VOCABULARY})
    page = html.unescape(texts.answers["glue_cola"])
    (note,) = re.findall(r'<p class="note">(.*cannot be answered exactly)', page)
    assert note == (
        f"{arm}: 2 of 4 targets have characters that the vocabulary lacks, such as '\u4e00'; the "
        "model writes ⁇ in their place; 1 of 4 targets are changed by the vocabulary, such as "
        "'yes  or no' to 'yes or no', so these rows cannot be answered exactly"
    )
    texts = texts_of(report, predictions, pages)
    assert "cannot be answered exactly" not in texts.answers["glue_cola"]


def test_targets_that_the_vocabulary_cannot_spell_are_said_of_their_experiment() -> None:
    rows = {"a": [row(1, "acceptable")], "b": [row(1, "acceptable")]}
    assert "answered exactly" not in page_of(rows)
    page = page_of(rows, unwritable={"b": "1 of 1 targets have characters <{>"})
    assert (
        "b: 1 of 1 targets have characters &lt;{&gt;, so these rows cannot be answered exactly"
        in page
    )
