"""The page of all runs: its size, its data, and what hostile names can do to it."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import scores_of, write_run

from t5repro.report.runs_page import json_in_page, runs_page
from t5repro.runs.row import Row
from t5repro.runs.search import search
from t5repro.runs.table import Query, make_table

SCRIPT = "</script><script>alert(1)</script>"
MAX_BYTES = 5_000_000


class Scripts(HTMLParser):
    """The elements of a page, and the contents of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.is_in_script = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.is_in_script = tag == "script"
        if self.is_in_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.is_in_script = False

    def handle_data(self, data: str) -> None:
        if self.is_in_script:
            self.scripts[-1] += data


def data_of(page: str) -> Any:
    return json.loads(Scripts(page).scripts[0])


def test_the_page_has_all_rows_and_headlines_and_names_what_was_not_read(tmp_path: Path) -> None:
    write_run(tmp_path, "r", {"a": scores_of(51.23456789), "b": None})
    (tmp_path / "results/r/data/manifest.json").write_text("{")
    page = runs_page(search(tmp_path, Query()))
    data = data_of(page)
    titles = [column["title"] for column in data["columns"]]
    first = dict(zip(titles, data["rows"][0], strict=True))
    assert (first["experiment"], first["glue_rte.accuracy"]) == ("a", 51.2346)
    assert data["rows"][1][titles.index("glue_rte.accuracy")] is None
    kinds = {column["title"]: column["kind"] for column in data["columns"]}
    assert (kinds["run"], kinds["flops"], kinds["seed"]) == ("text", "compute", "number")
    assert "1 not read" in page
    assert "results/r/data/manifest.json" in page


def test_only_the_script_of_the_page_may_run_and_nothing_is_loaded(tmp_path: Path) -> None:
    page = runs_page(search(write_run(tmp_path), Query()))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    code = Scripts(page).scripts[1]
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;" in policy
    assert policy.startswith("default-src &#39;none&#39;;")
    assert not {"link", "img", "iframe"} & set(Scripts(page).tags)
    assert "http" not in code.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("name", [SCRIPT, "<!--<script>", "]]><svg/onload=alert(1)>", "a'\"&b"])
def test_markup_in_a_name_is_text(tmp_path: Path, name: str) -> None:
    # A folder cannot have a slash in its name; a setting can.
    row = Row(
        {"run": name, "experiment": name, "state": "finished", f"score.{name}.x": 1.0, "flops": 5},
        job="r/evaluate_score/a",
        jobs=(),
        headlines=(f"score.{name}.x",),
        places=("results",),
    )
    page = runs_page(make_table([row], Query(), faults=[(name, name)]))
    harmless = runs_page(make_table([row.at("results")], Query(), faults=[("a", "b")]))
    assert Scripts(page).tags == Scripts(harmless).tags
    assert len(Scripts(page).scripts) == 2
    assert data_of(page)["rows"][0][0] == name


@given(st.text())
def test_no_text_ends_the_data_of_the_page(text: str) -> None:
    written = json_in_page([text])
    assert json.loads(written) == [text]
    assert not set("<>&'\u2028\u2029") & set(written)
    assert written.isascii()


def test_control_characters_and_marks_of_direction_are_replaced(tmp_path: Path) -> None:
    write_run(tmp_path, "r", {"a\x1b[2J\u202eb": scores_of(1.0)})
    (row,) = data_of(runs_page(search(tmp_path, Query())))["rows"]
    assert not {"\x1b", "\u202e"} & set(row[1])


def test_ten_thousand_rows_have_less_than_five_megabytes() -> None:
    tasks = [f"score.glue_task_{number}.accuracy" for number in range(10)]
    rows = [
        Row(
            {"run": f"a_long_name_of_a_run_{number // 6}", "experiment": "baseline_seed_1"}
            | {"seed": 1, "state": "finished", "flops": 10**21 + number, "tokens": 2**35}
            | {"parameters": 220_000_000}
            | dict.fromkeys(tasks, 50 + number / 7e4),
            job=f"run_{number}/evaluate_score/baseline_seed_1",
            jobs=(),
            headlines=tuple(tasks),
            places=("results",),
        )
        for number in range(10_000)
    ]
    page = runs_page(make_table(rows, Query()))
    assert len(data_of(page)["rows"]) == 10_000
    assert len(page.encode()) < MAX_BYTES
