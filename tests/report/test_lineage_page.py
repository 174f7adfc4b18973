"""The lineage page of a report."""

import re
from pathlib import Path

import pytest
from made_graphs import RESULT, SCORES, manifest, small_run, write

from t5repro.errors import LineageError
from t5repro.report.lineage_page import write_compared_lineage, write_lineage_page


def test_the_page_has_the_jobs_behind_the_scores_and_links_to_their_records(tmp_path: Path) -> None:
    run = small_run(tmp_path / "checkout")
    write(run, f"{RESULT}/left/manifest.json", "{")
    manifest(run, f"{RESULT}/other/a/manifest.json", rule="other", inputs=["data/crawl/0.wet"])
    page = run / RESULT / "report/trace.html"
    manifests = write_lineage_page(page, "r", [Path(SCORES)], root=run)
    text = page.read_text(encoding="utf-8")
    assert len(manifests) == 9
    assert "r/other/a" not in text
    links = re.findall(r'href="([^#"]+)"', text)
    assert "../../../records/r/evaluate_score/a.json" in links
    assert "../../../data/crawl/0.wet" in links
    assert len(links) == 9 + 4  # a record of each job, and the raw files
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(re.findall(r'id="([^"]+)"', text))
    assert text.count('<section class="job"') == 9
    assert '<h3 id="title:r.evaluate_score.a">r/evaluate_score/a</h3>' in text
    first_bytes = page.read_bytes()
    write_lineage_page(page, "r", [Path(SCORES)], root=run)
    assert page.read_bytes() == first_bytes
    with pytest.raises(LineageError, match="no manifest"):
        write_lineage_page(page, "r", [Path("results/r/none.json")], root=run)


def test_the_page_of_a_report_links_back_to_it(tmp_path: Path) -> None:
    run = small_run(tmp_path / "checkout")
    page = run / RESULT / "report/trace.html"
    write_lineage_page(page, "r", [Path(SCORES)], root=run, links={"run report": "report.html"})
    assert page.read_text(encoding="utf-8").count('href="report.html"') == 1 + 9


def test_a_job_whose_input_nobody_wrote_is_altered(tmp_path: Path) -> None:
    run = small_run(tmp_path / "checkout")
    write(run, f"{RESULT}/c4_clean/a/0.parquet", "another text")
    corpus = f"{RESULT}/c4/a"
    inputs = [f"{RESULT}/c4_clean/a/{shard}.parquet" for shard in (0, 1)]
    output = f"{corpus}/en-train.parquet"
    manifest(run, f"{corpus}/manifest.json", rule="c4", inputs=inputs, outputs=[output])
    page = run / "trace.html"
    write_lineage_page(page, "r", [Path(SCORES)], root=run)
    states = re.findall(r'<a href="#stage:(\w+)" class="(\w+)"', page.read_text(encoding="utf-8"))
    assert dict(states)["c4"] == "altered"
    assert dict(states)["finetune"] == "exact"


def test_a_compared_page_has_the_stages_of_the_comparison_with_their_words(tmp_path: Path) -> None:
    run = small_run(tmp_path / "checkout")
    found = {
        f"{RESULT}/data": "exact",
        f"{RESULT}/c4_clean/a": "exact",
        f"{RESULT}/c4/a": "tolerance",
        f"{RESULT}/tasks/one": "altered",
        f"{RESULT}/tasks/two": "unknown",
    }
    page = run / "compared.html"
    write_compared_lineage(page, "r", found, root=run)
    text = page.read_text(encoding="utf-8")
    stages = dict(re.findall(r'<h2 id="title:(\w+)">\w+ <small class="\w+">([^<]+)<', text))
    assert stages == {
        "data": "exact",
        "c4_clean": "exact",
        "c4": "within tolerance",
        "tasks": "altered",  # the worst of its jobs
    }
    assert "not compared" in text
    assert "what the comparison found" in text
