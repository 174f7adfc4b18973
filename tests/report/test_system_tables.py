"""The tables of the systems before T5: their figures, and our rows in them."""

import json
from statistics import mean
from typing import Any

import pytest

from t5repro.config.schema import Experiment
from t5repro.config.system_rows import Placement
from t5repro.published.tables import system_tables_content
from t5repro.report.experiments import Experiment as ShownExperiment
from t5repro.report.published_table import OurScores
from t5repro.report.system_tables import system_tables

TABLES = system_tables_content()["tables"]
GPT = "ELECTRA 1: GPT, 4.0e19 / 3.0e10 FLOP (training / inference), 117M parameters"


def rows_of(paper: str, number: str, split: str = "validation") -> list[dict[str, Any]]:
    """Return the rows of a table as mappings from columns to figures."""
    table = next(
        table
        for table in TABLES
        if (table["paper"], table["table"], table["split"]) == (paper, number, split)
    )
    return [
        {"name": row["name"], **dict(zip(table["columns"], row["values"], strict=True))}
        for row in table["rows"]
    ]


def test_every_row_has_a_figure_for_each_column_or_none() -> None:
    for table in TABLES:
        assert len(set(table["columns"])) == len(table["columns"])
        for row in table["rows"]:
            assert len(row["values"]) == len(table["columns"]), (table["title"], row["name"])
            assert all(value is None or 0 < value <= 100 for value in row["values"])
    assert (
        sum(value is not None for t in TABLES for r in t["rows"] for value in r["values"]) == 1173
    )


@pytest.mark.parametrize("number", ["3", "4", "5", "7", "8"])
def test_albert_averages_are_means_of_five_tasks(number: str) -> None:
    """Each SQuAD enters as the mean of F1 and exact match."""
    for row in rows_of("ALBERT", number):
        keys = ("squad.{}", "squad_2.best_{}")
        squads = [mean((row[key.format("f1")], row[key.format("em")])) for key in keys]
        others = [
            row["glue_mnli_matched.accuracy"],
            row["glue_sst2.accuracy"],
            row["race.accuracy"],
        ]
        assert mean([*squads, *others]) == pytest.approx(row["average.average"], abs=0.08), row


def test_electra_averages_are_means_of_eight_tasks() -> None:
    for row in rows_of("ELECTRA", "2"):
        tasks = [value for key, value in row.items() if key not in ("name", "average.average")]
        assert len(tasks) == 8
        assert mean(tasks) == pytest.approx(row["average.average"], abs=0.06), row["name"]


def test_mrqa_averages_are_means_of_five_tasks() -> None:
    for row in rows_of("SpanBERT", "2", "test"):
        tasks = [value for key, value in row.items() if key.endswith(".f1")]
        assert mean(tasks) == pytest.approx(row["average.average"], abs=0.1), row["name"]


def with_system(run: Any, system: str, row: str = "") -> Any:
    """Give a run an experiment of a system, with the scores of its baseline."""
    scores, histories = run.scores["baseline"], run.histories["baseline"]
    labelled = [name for name in run.settings.tasks.names if "glue" in name]
    run.settings = run.settings.model_copy(
        update={
            "tasks": run.settings.tasks.model_copy(update={"names": labelled, "segments": True}),
            "experiments": [
                Experiment(name="baseline"),
                Experiment(
                    name="mine",
                    row=row,
                    change={"use": [f"systems/{system}"], "model.max_positions": 4096},
                ),
            ],
        }
    )
    run.scores = {"baseline": scores, "mine": json.loads(json.dumps(scores))}
    run.histories = dict.fromkeys(("baseline", "mine"), histories)
    return run


def section_of(page: str) -> str:
    return page.partition('<section id="systems"')[2].partition("</section>")[0]


def test_our_row_follows_the_row_that_it_names_with_what_differs(run: Any) -> None:
    run = with_system(run, "gpt", row=GPT)
    run.scores["mine"]["tasks"]["glue_sst2"]["metrics"]["accuracy"] = 12.34
    page = run.write().page
    shown, _, hidden = section_of(page).partition("<details><summary>Tables without")
    assert "GPT, 4.0e19" in shown
    assert "ELECTRA, table 1 (arXiv 2003.10555)" in shown
    assert "mine" in shown
    assert "mine: stand-in: model.max_positions 4096 for 512, pretrain.batch_size" in shown
    assert "117M parameters: stand-in: Wikipedia of 2023 and BookCorpusOpen" in shown
    assert "mine" not in hidden
    assert f"corresponds to the paper’s row “{GPT}”" in page


def test_an_experiment_with_other_settings_is_in_no_row(run: Any) -> None:
    section = section_of(with_system(run, "gpt").write().page)
    assert "ELECTRA, table 1" in section
    assert "mine" not in section


def test_scores_of_another_split_are_not_shown(run: Any) -> None:
    run = with_system(run, "gpt", row="RoBERTa 1: static")
    run.settings = run.settings.model_copy(
        update={"evaluate": run.settings.evaluate.model_copy(update={"split": "test"})}
    )
    section = section_of(run.write().page)
    assert "RoBERTa, table 1" in section  # the row that it names
    assert "mine" not in section


def test_a_run_of_t5_alone_has_no_tables_of_systems(report: Any) -> None:
    assert 'id="systems"' not in report.page


def test_the_tables_of_a_system_are_those_of_its_paper_and_with_its_row() -> None:
    scores = OurScores({}, {}, links=None, is_comparable=False)  # type: ignore[arg-type]
    spanbert = ShownExperiment(name="mine", arms=("mine",), seeds=(0,), system="spanbert")
    labels = [table.label for table in system_tables([], scores, [], split="validation")]
    assert labels == []
    tables = system_tables([spanbert], scores, [], split="validation")
    assert [table.label for table in tables] == [
        "SpanBERT, table 1 (arXiv 1907.10529)",
        "SpanBERT, table 2 (arXiv 1907.10529)",
        "SpanBERT, table 4 (arXiv 1907.10529)",
        "StructBERT, table 1 (arXiv 1908.04577)",
        "GLUE leaderboard",
    ]
    assert not any(table.has_ours for table in tables)
    assert tables[1].columns[-1] == ("Average", "")  # of the tasks of the table
    assert tables[1].columns[0] == ("NewsQA", "F1")


def test_our_accuracy_of_race_is_in_the_tables_of_its_column(run: Any) -> None:
    run = with_system(run, "albert", row="ALBERT 3: ALBERT all-shared, E = 128, 12M parameters")
    race = {"metrics": {"accuracy": 64.37}, "primary_metric": "accuracy", "examples": 8}
    like = run.scores["mine"]["tasks"]["glue_sst2"]
    run.scores["mine"]["tasks"]["race"] = {**like, **race}
    run.settings.tasks.names.append("race")
    section = section_of(run.write().page).partition("<details><summary>Tables without")[0]
    assert "RACE" in section
    assert "64.37" in section


class NoLinks:
    """Links of an experiment without results."""

    def runs_of(self, *_: object) -> tuple[()]:
        return ()


def test_an_experiment_is_in_every_table_that_prints_its_configuration() -> None:
    scores = OurScores({}, {}, links=NoLinks(), is_comparable=False)  # type: ignore[arg-type]
    roberta = ShownExperiment(
        name="mine",
        arms=(),
        seeds=(0,),
        system="roberta",
        placement=Placement("roberta_base_full_sentences"),
    )
    tables = system_tables([roberta], scores, [], split="validation")
    ours = [table for table in tables if table.has_ours]
    assert [table.anchor for table in ours] == ["system-5", "system-6"]  # RoBERTa's 2 and 3
    for table in ours:
        (index,) = [number for number, row in enumerate(table.rows) if row.name == "mine"]
        before = table.rows[index - 1]
        assert before.name in (
            "without next sentence: FULL-SENTENCES",
            "batch 256, 1M steps, rate 1e-4",
        )
        assert table.notes[int(before.note) - 1].startswith(f"{before.name}: stand-in: ")


def test_accuracies_of_pretraining_are_in_the_row_of_the_experiment(run: Any) -> None:
    run = with_system(run, "albert", row="ALBERT 5: SOP")
    run.histories["mine"] = {
        **run.histories["mine"],
        "pretrain": "step,loss,validation_loss\n300,6.4,2.0\n",
    }
    run.trained = {"final_validation_accuracies": {"masked_pieces": 0.125, "pairs": 0.75}}
    table = section_of(run.write().page).partition("ALBERT, table 5")[2].partition("</table>")[0]
    assert "12.50" in table
    assert "75.00" in table
    rows = [line for line in table.split("<tr") if "Next sentence" in line or "order" in line]
    assert len(rows) == 2
    assert "75.00" in rows[1]
