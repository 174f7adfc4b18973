"""A lineage graph as an SVG drawing and as an HTML page."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from made_graphs import SCORES, manifest, small_run, write

from t5repro.lineage.graph import Graph, load_graph
from t5repro.lineage.store import Folder
from t5repro.lineage.trace import Trace, trace
from t5repro.report.render_lineage import to_html, to_svg


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a small run."""
    return small_run(tmp_path / "checkout")


def traced(checkout: Path, name: str) -> tuple[Trace, Graph]:
    graph = load_graph(Folder(checkout))
    return trace(graph, Folder(checkout), name), graph


def test_the_drawing_is_xml_with_a_box_for_each_job(checkout: Path) -> None:
    answer, graph = traced(checkout, SCORES)
    root = ET.fromstring(to_svg(answer, graph))  # noqa: S314 our own drawing
    space = "{http://www.w3.org/2000/svg}"
    boxes = [item.text for group in root.iter(f"{space}g") for item in group.iter(f"{space}text")]
    assert {"4 raw files", "c4", "finetune", "evaluate_predict", "evaluate_score"} <= set(boxes)
    assert boxes.count("c4_clean") == 2
    assert len(list(root.iter(f"{space}path"))) == 15
    assert to_svg(answer, graph) == to_svg(*traced(checkout, SCORES))


def test_every_link_of_the_page_has_a_target_and_nothing_is_fetched(checkout: Path) -> None:
    write(checkout, "data/crawl/<b>.wet", "x")
    page = to_html(load_graph(Folder(checkout)), "Lineage <of> r", start="r/evaluate_score/a")
    anchors = set(re.findall(r'id="([^"]+)"', page))
    links = re.findall(r'href="#([^"]+)"', page)
    assert len([name for name in anchors if re.fullmatch(r"r\.[\w.]+", name)]) == 9  # jobs
    assert len([name for name in anchors if name.startswith("file:")]) == 22  # with manifests
    assert {name for name in links if name.startswith("stage:")} == {
        f"stage:{rule}"
        for rule in (
            "data",
            "c4_clean",
            "c4",
            "tasks",
            "finetune",
            "evaluate_predict",
            "evaluate_score",
        )
    }
    assert len(links) > 20
    assert set(links) <= anchors
    assert "Lineage &lt;of&gt; r" in page
    assert "<script" not in page
    assert "http:" not in page


def test_what_jobs_share_is_said_once_and_nothing_is_left_out(checkout: Path) -> None:
    for shard, seed in ((0, 1), (1, 2)):
        manifest(
            checkout,
            f"results/r/c4_clean/a/{shard}.manifest.json",
            rule="c4_clean",
            inputs=[f"data/crawl/{shard}.wet"],
            outputs=[f"results/r/c4_clean/a/{shard}.parquet"],
            settings={"c4": {"languages": ["en", "de"]}, "seed": seed},
        )
    graph = load_graph(Folder(checkout))
    page = to_html(graph, "Lineage of r")
    stage = page[page.index('id="stage:c4_clean"') : page.index('id="stage:data"')]
    shared, *jobs = stage.split('<section class="job"')
    assert "1 setting of all 2 jobs" in shared
    assert stage.count("c4.languages") == shared.count("c4.languages") == 1
    assert "seed" not in shared
    seeds = [re.findall(r"<code>seed</code></th><td[^>]*>(\d)<", job) for job in jobs]
    assert seeds == [["1"], ["2"]]  # in the order of the run
    assert "1 setting of its own" in jobs[0]
    for output in (file for job in graph.jobs.values() for file in job.outputs):
        row = page[page.index(f'<tr id="file:{output.path.replace("/", ".")}"') :]
        assert f">{output.sha256}<" in row[: row.index("</tr>")]
        assert page.count(output.sha256) == 1  # its readers link to the row
    for job in graph.jobs.values():
        section = page[page.index(f'<section class="job" id="{job.name.replace("/", ".")}"') :]
        for file in job.inputs:
            link = f'<a href="#file:{file.path.replace("/", ".")}">{file.path}</a>'
            assert link in section[: section.index("</section>")]


def test_an_input_that_no_job_wrote_has_its_hash_and_size(checkout: Path) -> None:
    before = load_graph(Folder(checkout)).jobs["r/c4/a"].inputs[0]
    write(checkout, before.path, "another text")
    manifest(
        checkout,
        "results/r/c4/a/manifest.json",
        rule="c4",
        inputs=[before.path],
        outputs=["results/r/c4/a/en-train.parquet"],
    )
    graph = load_graph(Folder(checkout))
    (altered,) = graph.jobs["r/c4/a"].inputs
    page = to_html(graph, "Lineage of r")
    shown = f'<li>{altered.path} <code class="hash">{altered.sha256}</code> 12 bytes</li>'
    assert shown in page
