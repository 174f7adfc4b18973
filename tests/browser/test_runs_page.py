"""The page of all runs in a browser: opened from disk, searched, sorted and drawn."""

from pathlib import Path
from typing import Any

import pytest
from made_runs import scores_of, write_run

from t5repro.report.runs_page import runs_page
from t5repro.runs.search import search
from t5repro.runs.table import Query

pytestmark = pytest.mark.browser
NARROW = 400


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Any:
    """The page of two runs; what the browser complains of fails."""
    experiments = {"low": scores_of(50.0), "high": scores_of(75.0), "none": scores_of(None)}
    write_run(tmp_path, "first", experiments)
    write_run(tmp_path, "second", {"<b>bold</b>": scores_of(60.0)}, steps=1000)
    (tmp_path / "runs.html").write_text(runs_page(search(tmp_path, Query())), encoding="utf-8")
    complaints: list[str] = []
    with browser.new_context(viewport={"width": NARROW, "height": 900}) as context:
        opened = context.new_page()
        opened.on("console", lambda message: complaints.append(message.text))
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.goto((tmp_path / "runs.html").as_uri())
        yield opened
    assert complaints == []


def experiments_in(page: Any) -> list[str]:
    return list(page.locator("#rows tbody tr td:nth-child(2)").all_inner_texts())


def test_rows_are_searched_and_sorted_with_missing_scores_last(page: Any) -> None:
    assert experiments_in(page) == ["high", "low", "none", "<b>bold</b>"]
    title = page.locator("#rows th button", has_text="glue_rte.accuracy")
    title.click()
    assert experiments_in(page) == ["low", "<b>bold</b>", "high", "none"]
    title.click()
    assert experiments_in(page) == ["high", "<b>bold</b>", "low", "none"]
    page.fill("#words", "FIRST low")
    assert experiments_in(page) == ["low"]
    assert page.inner_text("#count") == "1 of 4 rows"


def test_each_row_with_a_score_is_a_point(page: Any) -> None:
    points = page.locator("#drawing circle")
    assert points.count() == 3
    assert page.inner_text("#drawn") == "3 of 4 rows have both numbers"
    across = [float(points.nth(number).get_attribute("cx")) for number in range(3)]
    up = [float(points.nth(number).get_attribute("cy")) for number in range(3)]
    assert across[0] == across[1] < across[2]  # the second run has more steps
    assert up[0] < up[2] < up[1]  # 75, 60 and 50
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW
