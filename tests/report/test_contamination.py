"""The page of evaluated rows in the corpus: counts, scores without them, text that stays text."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from t5repro.errors import ArtifactError
from t5repro.report.contamination import (
    MAX_PASSAGES,
    contamination_page,
    passage_links,
    searched_corpora,
)
from t5repro.report.subset_scores import FEWEST_ROWS
from t5repro.tasks.registry import task_named

TASK = "glue_cola"
HOSTILE = "<script>alert(1)</script>\u202e"
ROWS = 2 * FEWEST_ROWS


def method(*dirty: int) -> dict[str, Any]:
    counts = {"dirty": len(dirty), "between": 0, "clean": ROWS - len(dirty), "unchecked": 0}
    return {"rows": counts, "fields": {}, "dirty": list(dirty), "unchecked": []}


def passage(row: int, length: int, **values: Any) -> dict[str, Any]:
    return {
        "row": row,
        "idx": row,
        "field": "sentence",
        "unit": "words",
        "length": length,
        "of": 12,
        "pages": 3,
        "methods": ["near"],
        "in_row": "a row",
        "in_page": "a page with a row",
        "file": "results/r/c4/baseline/en-train-00000-of-00001.parquet",
        "document": 7,
        "name": "http://h.example/7",
        **values,
    }


def write(path: Path, methods: dict[str, Any], found: list[dict[str, Any]]) -> Path:
    corpus = {"methods": methods, "found": found}
    content = {
        "methods": list(methods),
        "searched": {"corpus": {"words": 1234}},
        "tasks": {TASK: {"corpus": corpus}},
    }
    path.write_text(json.dumps(content))
    return path


def predictions(right: int) -> list[dict[str, Any]]:
    """Return rows of which the first ones are answered rightly."""
    return [
        {
            "answer": number % 2,
            "idx": number,
            "prediction": ("unacceptable", "acceptable")[(number + (number >= right)) % 2],
        }
        for number in range(ROWS)
    ]


def text_of(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page)).split())


def page_of(files: dict[str, Path], answered: dict[str, Any]) -> str:
    searched = searched_corpora(files, {TASK: task_named(TASK)}, {TASK: answered})
    return contamination_page(searched, run="demo", report="report.html")


def test_arms_with_one_search_share_it_and_have_scores_of_their_own(tmp_path) -> None:
    dirty = range(FEWEST_ROWS)
    path = write(
        tmp_path / "found.json",
        {"longest": method(), "near": method(*dirty)},
        [passage(number, 10) for number in dirty],
    )
    # The first is right on the rows that are found and wrong on all others.
    answered = {"a": predictions(FEWEST_ROWS), "b": predictions(ROWS)}
    page = page_of({"a": path, "b": path}, answered)
    text = text_of(page)
    assert page.count("<h2") == 1
    assert f"CoLA {ROWS} 0 (0.0 %) {FEWEST_ROWS} (50.0 %) 0" in text
    assert "of rows that near finds and of others" in text
    assert re.search(r"a 0\.0 \(.*?\) of 60 rows −100\.0 \(.*?\) of 30 rows 100\.0", text)
    assert re.search(r"b 100\.0 \(.*?\) of 60 rows 100\.0 \(.*?\) of 30 rows 100\.0", text)
    assert "a page with a row http://h.example/7 and 2 more" in text


def test_only_the_predicted_rows_of_a_limited_run_are_scored(tmp_path) -> None:
    path = write(tmp_path / "f.json", {"longest": method(1, ROWS - 1)}, [passage(1, 9)])
    answered = {"a": predictions(ROWS)[:FEWEST_ROWS]}
    assert f"of {FEWEST_ROWS} rows no score of {FEWEST_ROWS - 1} rows" in text_of(
        page_of({"a": path}, answered)
    )


def test_the_longest_passages_come_first_and_the_others_are_counted(tmp_path) -> None:
    found = [passage(number, length=number % 12) for number in range(ROWS)]
    path = write(tmp_path / "f.json", {"longest": method(*range(ROWS))}, found)
    page = page_of({"a": path}, {"a": predictions(0)})
    sizes = [int(size) for size in re.findall(r"sentence: (\d+) of 12 words", page)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == MAX_PASSAGES
    assert f"{ROWS - MAX_PASSAGES} more are in the file" in page


def test_text_of_rows_and_pages_stays_text(tmp_path) -> None:
    hostile = passage(1, 9, in_row=HOSTILE, in_page=HOSTILE, name=HOSTILE, idx=HOSTILE)
    path = write(tmp_path / "f.json", {"longest": method(1)}, [hostile])
    page = page_of({"a": path}, {"a": predictions(0)})
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 4
    assert "\u202e" not in page


def test_a_row_of_the_answers_page_links_to_its_longest_passage(tmp_path) -> None:
    files = [
        write(tmp_path / f"{arm}.json", {"longest": method(4)}, [passage(4, 8), passage(4, 9)])
        for arm in "ab"
    ]
    answered = {"a": predictions(0), "b": predictions(0)}
    searched = searched_corpora(
        dict(zip("ab", files, strict=True)), {TASK: task_named(TASK)}, {TASK: answered}
    )
    page = contamination_page(searched, run="demo", report="report.html", lineage="trace.html")
    links = passage_links(searched, TASK, "../contamination.html")
    assert links == {5: "../contamination.html#a-glue_cola-4"}
    assert passage_links(searched, TASK, "") == {}
    assert re.findall(r'<li id="([^"]+)"', page) == ["a-glue_cola-4", "b-glue_cola-4"]
    shard = "results.r.c4.baseline.en-train-00000-of-00001.parquet"
    assert page.count(f'<a href="trace.html#file:{shard}">en-train-') == 4


def test_a_task_without_predictions_has_counts_and_no_scores(tmp_path) -> None:
    path = write(tmp_path / "f.json", {"longest": method(1)}, [passage(1, 9)])
    searched = searched_corpora({"a": path}, {}, {})
    assert searched[0].tasks[0].found == ("1 (1.7 %)",)
    assert searched[0].tasks[0].scores == {}


@pytest.mark.parametrize("text", ["{}", "[]", '{"methods": ["none"], "searched": {}, "tasks": {}}'])
def test_a_damaged_file_is_named_with_the_stage_to_rerun(tmp_path, text) -> None:
    path = tmp_path / "f.json"
    path.write_text(text)
    with pytest.raises(ArtifactError, match=r"f\.json.*rerun the stage contamination"):
        searched_corpora({"a": path}, {}, {})
