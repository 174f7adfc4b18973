"""The lineage page of a report."""

import re
from pathlib import Path

import pytest
from made_graphs import RESULT, SCORES, manifest, small_run, write

from t5repro.errors import LineageError
from t5repro.report.lineage_page import write_lineage_page


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
    assert len(links) == 9
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(re.findall(r'id="([^"]+)"', text))
    assert '<section id="r.evaluate_score.a"><h2>r/evaluate_score/a</h2>' in text
    assert "<p>Rule <code>evaluate_score</code></p>" in text
    first_bytes = page.read_bytes()
    write_lineage_page(page, "r", [Path(SCORES)], root=run)
    assert page.read_bytes() == first_bytes
    with pytest.raises(LineageError, match="no manifest"):
        write_lineage_page(page, "r", [Path("results/r/none.json")], root=run)
