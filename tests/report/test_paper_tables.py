"""The paper's tables with ours beside them: which are shown, what counts, what is behind."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from t5repro.config.schema import Experiment
from t5repro.report.published_scores import (
    baseline_deviation,
    exceeds_deviation,
    near_best,
    published_row,
    published_score,
)


class Tables(HTMLParser):
    """Collects the cells of every table of the paper: text, links, classes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[dict[str, Any]]]] = {}
        self.rows: list[list[dict[str, Any]]] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "table" and "paper-table" in (attributes.get("class") or ""):
            self.rows = []
        elif self.rows is None:
            return
        elif tag == "caption":
            self.tables[attributes["id"] or ""] = self.rows
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append({"text": "", "links": [], "bold": False})
        elif self.rows and self.rows[-1]:
            cell = self.rows[-1][-1]
            if tag == "a":
                cell["links"].append(attributes["href"])
            if tag in ("data", "span") and (attributes.get("class") or "").strip() in (
                "best",
                "near",
            ):
                cell["bold"] = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self.rows = None

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1]["text"] += data


def tables_of(page: str) -> dict[str, list[list[dict[str, Any]]]]:
    return Tables(page).tables


def row_named(rows: list[list[dict[str, Any]]], name: str) -> list[dict[str, Any]]:
    return next(row for row in rows if row[0]["text"].strip().startswith(name))


def with_experiments(run: Any, *experiments: Experiment) -> None:
    run.settings = run.settings.model_copy(update={"experiments": list(experiments)})


def test_only_tables_with_a_row_of_the_run_are_shown(report: Any) -> None:
    assert list(tables_of(report.page)) == ["paper-1", "paper-16"]


def test_our_row_follows_the_papers_row(run: Any) -> None:
    rows = tables_of(run.at_paper_scale().write().page)["paper-1"]
    assert [row[0]["text"] for row in rows] == [
        "Row",
        "the paper’s standard deviation",
        "Baseline average",
        "baseline",
        "No pre-training",
        "no_pretraining",
    ]
    assert [cell["text"].strip() for cell in rows[1][1:]] == [
        "0.235",
        "0.065",
        "0.343",
        "0.416",
        "0.112",
        "0.090",
        "0.108",
    ]
    assert rows[2][3]["text"] == "80.88"
    assert rows[3][3]["text"].startswith("23.33−57.55 ●")  # 23.333… - 80.88, over 2 x 0.343


def test_a_difference_within_two_deviations_is_not_marked(run: Any) -> None:
    run.scores["baseline"]["tasks"]["squad"]["metrics"]["em"] = 80.88 - 0.686
    run.scores["no_pretraining"]["tasks"]["squad"]["metrics"]["em"] = 50.31 - 0.70
    rows = tables_of(run.at_paper_scale().write().page)["paper-1"]
    assert rows[3][3]["text"].startswith("80.19−0.69seed 0")
    assert rows[5][3]["text"].startswith("49.61−0.70 ●seed 0")


def test_each_of_our_scores_links_to_its_scores_and_predictions(report: Any) -> None:
    cell = tables_of(report.page)["paper-1"][3][3]
    assert cell["links"] == [
        "../score/baseline/scores.json",
        "../evaluate_predict/baseline/squad.jsonl",
    ]
    for rows in tables_of(report.page).values():
        for cell in (cell for row in rows for cell in row):
            for link in cell["links"]:
                assert (report.html.parent / link).is_file()


def test_each_score_links_to_its_files(report: Any) -> None:
    table = report.page.partition('<table class="scores">')[2].partition("</table>")[0]
    cells = re.findall(r'<td class="number ours">(.*?)</td>', table, flags=re.DOTALL)
    assert len(cells) == 38
    assert all("scores.json" in cell for cell in cells)
    assert sum(".jsonl" in cell for cell in cells) == 34  # all but the benchmarks' means


def test_an_undefined_average_names_the_missing_tasks(report: Any) -> None:
    rows = tables_of(report.page)["paper-1"]
    assert rows[3][1]["text"].startswith("–")
    assert "GLUE: undefined, lacks QQP, QNLI (baseline, no_pretraining)." in report.page


def test_seeds_are_a_mean_a_deviation_and_one_link_each(run: Any) -> None:
    scores = run.scores["baseline"]
    with_experiments(
        run,
        *(
            Experiment(name=name, row="Baseline average", change={"seed": seed})
            for seed, name in enumerate(("baseline", "again", "third"))
        ),
    )
    run.scores, run.histories = (
        {},
        dict.fromkeys(("baseline", "again", "third"), run.histories["baseline"]),
    )
    for name, value in (("baseline", 20.0), ("again", 22.0), ("third", 27.0)):
        run.scores[name] = json.loads(json.dumps(scores))
        run.scores[name]["tasks"]["squad"]["metrics"]["em"] = value
    page = run.at_paper_scale().write().page
    cell = row_named(tables_of(page)["paper-1"], "baseline")[3]
    assert cell["text"].startswith("23.00 ±3.61−57.88 ●seed 0: 20.00")
    assert cell["links"] == [
        f"../{path}"
        for name in ("baseline", "again", "third")
        for path in (f"score/{name}/scores.json", f"evaluate_predict/{name}/squad.jsonl")
    ]
    assert "seeds 0, 1, 2" in page
    assert "1 experiment on 12 tasks" in page


def test_the_baseline_reproduces_its_row_under_another_name(run: Any) -> None:
    with_experiments(
        run,
        run.settings.experiments[0],
        Experiment(name="no_pretraining", row="3", change={"pretrain.steps": 0}),
    )
    rows = tables_of(run.write().page)["paper-7"]
    names = [row[0]["text"] for row in rows]
    assert names[2:4] == ["Baseline (i.i.d.)", "baseline"]
    assert names[5:7] == ["3", "no_pretraining"]
    assert len(rows[4]) == 8  # a row of the paper that no experiment stands for


@pytest.mark.parametrize(
    ("row", "table", "note"),
    [
        ("Adapter d=2048", 10, "Table 10 prints the row of d=128 here by mistake (D-014)."),
        ("4x ensembled", 13, "Table 16 prints 28.09 for English to Romanian (D-015)."),
    ],
)
def test_misprints_of_the_paper_are_footnotes(run: Any, row: str, table: int, note: str) -> None:
    with_experiments(
        run,
        run.settings.experiments[0],
        Experiment(name="no_pretraining", row=row, change={"pretrain.steps": 0}),
    )
    page = run.write().page
    assert row_named(tables_of(page)[f"paper-{table}"], row)[0]["text"] == f"{row}1"
    assert note in page


def test_bold_is_within_two_deviations_of_the_best_of_the_column(run: Any) -> None:
    with_experiments(
        run,
        run.settings.experiments[0],
        Experiment(name="no_pretraining", row="3", change={"pretrain.steps": 0}),
    )
    rows = tables_of(run.at_paper_scale().write().page)["paper-7"]
    glue = {row[0]["text"]: row[1]["bold"] for row in rows[2:]}
    # 83.54 is best; 83.54 - 2 x 0.235 = 83.07
    assert glue == {
        "Baseline (i.i.d.)": True,
        "baseline": False,
        "2": True,
        "3": True,
        "no_pretraining": False,
        "5": True,
        "10": False,
    }
    german = {row[0]["text"]: row[5]["bold"] for row in rows[2:]}
    assert german["baseline"]  # 14.125, the other is 4.125 below
    assert not german["no_pretraining"]


def test_scores_of_another_model_are_neither_compared_nor_bold(run: Any) -> None:
    page = run.write().page
    rows = tables_of(page)["paper-16"]
    ours = [cell for row in rows for cell in row if cell["links"]]
    assert ours
    assert not any(cell["bold"] or "●" in cell["text"] for cell in ours)
    assert "model (model.d_model 64 instead of 768, " in page
    assert "steps (pretrain.steps 300 instead of 524288, finetune.steps 400 instead of " in page
    assert "data (a corpus of 623 pages instead of 364,868,892)" in page
    assert "Our rows: other model, data or steps, not comparable" in page


def test_scores_of_the_papers_model_data_and_steps_are_compared(run: Any) -> None:
    page = run.at_paper_scale().write().page
    assert "Model, data and steps of this run are the paper’s." in page
    assert "not comparable" not in page


def test_a_run_without_a_row_of_the_paper_has_a_note(run: Any) -> None:
    with_experiments(
        run,
        Experiment(name="baseline"),
        Experiment(name="no_pretraining", change={"pretrain.steps": 0}),
    )
    page = run.write().page
    assert tables_of(page) == {}
    assert "No experiment of this run reproduces a row" in page
    assert "the paper, for reference" in page


def test_a_run_on_the_test_split_has_no_table_of_validation_scores(run: Any) -> None:
    evaluate = run.settings.evaluate.model_copy(update={"split": "test"})
    run.settings = run.settings.model_copy(update={"evaluate": evaluate})
    assert tables_of(run.write().page) == {}


def test_choices_in_force_are_in_the_footer_with_their_decisions(report: Any) -> None:
    footer = report.page.partition("<footer>")[2]
    assert re.search(r"D-008</th><td>COPA target</td><td><code>tasks.text.copa_target", footer)
    assert "D-014" in footer
    assert "no setting" in footer


def test_differences_over_two_deviations_count() -> None:
    assert exceeds_deviation(0.686, 0.343) is False
    assert exceeds_deviation(-0.687, 0.343) is True
    assert exceeds_deviation(9.0, None) is None
    assert near_best([1.0, 2.0, None, 1.8], 0.1) == [False, True, False, True]
    assert near_best([1.0], 0.1) == [False]


def test_deviations_of_table_1_are_those_of_the_task_table() -> None:
    for key, value in published_row(1, "Baseline standard deviation").values.items():
        assert baseline_deviation(key, split="validation") == value
        assert baseline_deviation(key, split="test") is None


def test_a_score_is_read_from_any_table_with_the_configuration() -> None:
    assert (
        published_score("All parameters", "glue_cola.matthews_corrcoef", split="validation")
        == 53.84
    )
    assert published_score("3", "squad.em", split="validation") == 81.84
    assert published_score("3", "glue_cola.matthews_corrcoef", split="validation") is None


def test_the_best_kept_checkpoints_follow_the_last(run: Any) -> None:
    run.scores["baseline"]["checkpoints"] = {
        "chosen_by": "highest mean",
        "scores": {"3": {}, "8": {}},
        "averages": {},
        "best": {
            "squad": {
                "step": 3,
                "metrics": {"squad": {"em": 30.0, "f1": 40.0}},
                "columns": ["squad/em", "squad/f1"],
                "means": {"3": 35.0, "8": 32.27},
                "weights": "step-3/weights.safetensors",
            }
        },
    }
    rows = tables_of(run.at_paper_scale().write().page)["paper-1"]
    assert [row[0]["text"] for row in rows[3:5]] == ["baseline", "baseline:best"]
    assert rows[4][3]["text"].startswith("30.00−50.88 ●")
    assert rows[4][3]["links"][0] == "../score/baseline/scores.json"


def test_repetitions_of_the_baseline_have_a_standard_deviation_next_to_the_papers(run: Any) -> None:
    scores = run.scores["baseline"]
    changes: dict[str, dict[str, int]] = {
        "baseline": {},
        "again_2": {"pretrain.repeat": 1},
        "again_3": {"pretrain.repeat": 2},
        "finetuned_2": {"finetune.repeat": 1},  # shares the pre-training of the first
    }
    with_experiments(
        run,
        *(
            Experiment(name=name, row="Baseline average", change=change)
            for name, change in changes.items()
        ),
    )
    run.scores = {}
    run.histories = dict.fromkeys(changes, run.histories["baseline"])
    for name, value in zip(changes, (20.0, 22.0, 27.0, 90.0), strict=True):
        run.scores[name] = json.loads(json.dumps(scores))
        run.scores[name]["tasks"]["squad"]["metrics"]["em"] = value
    tables = tables_of(run.at_paper_scale().write().page)
    row = row_named(tables["paper-1"], "our standard deviation")
    # GLUE and SuperGLUE have no average in this run; the other scores are equal.
    assert [cell["text"].strip() for cell in row] == [
        "our standard deviation, 3 trainings",
        "–",
        "0.000",
        "3.606",
        "–",
        "0.000",
        "0.000",
        "0.000",
    ]
    header, *rows = tables["paper-16"]
    assert header[3]["text"] == "our SD, 3 trainings"
    assert {len(row) for row in rows} == {len(header)}
    assert {row[3]["text"] for row in rows} == {"–", "0.000", "3.606"}


def test_one_training_of_the_baseline_has_no_standard_deviation(report: Any) -> None:
    assert "our standard deviation" not in report.page
