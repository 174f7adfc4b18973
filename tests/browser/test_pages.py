"""The pages of a report in a real browser: links, widths, dark mode, accessibility."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from t5repro.c4.wet.pages import read_pages
from t5repro.cli.main import main

from .conftest import NARROW, SCREENSHOTS, WIDE

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Of SVG's links, `href` is no text.
ADDRESS = "a => new URL(a.getAttribute('href'), location).href"
LINKS = f"[...document.querySelectorAll('a[href]')].map({ADDRESS})"
IDS = "[...document.querySelectorAll('[id]')].map(e => e.id)"


@pytest.fixture(scope="module")
def names(report: Path) -> list[str]:
    """Return the pages of the report."""
    pages = sorted(path.relative_to(report).as_posix() for path in report.rglob("*.html"))
    assert {"report.html", "trace.html", "corpus.html", "answers/glue_sst2.html"} <= set(pages)
    return pages


def screenshot(page: Any, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")


def test_every_link_and_anchor_resolves(
    open_page: Callable[..., Any], report: Path, names: list[str]
) -> None:
    pages = {name: open_page(name) for name in names}
    ids = {(report / name).as_uri(): set(page.evaluate(IDS)) for name, page in pages.items()}
    broken = []
    links = 0
    for name, page in pages.items():
        for link in set(page.evaluate(LINKS)):
            links += 1
            parts = urlsplit(link)
            address = link.partition("#")[0]
            is_file = parts.scheme == "file" and Path(unquote(parts.path)).is_file()
            if not is_file or (parts.fragment and unquote(parts.fragment) not in ids[address]):
                broken.append((name, link))
    assert links > 100
    assert broken == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(
    open_page: Callable[..., Any], names: list[str], scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    violations = []
    for name in names:
        page = open_page(name, scheme=scheme)
        # Everything that a reader can unfold is looked at as well.
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        found = axe.run(page).response["violations"]
        violations += [
            (name, rule["id"], rule["impact"], len(rule["nodes"]), rule["nodes"][0]["html"][:200])
            for rule in found
        ]
    assert violations == [], json.dumps(violations, indent=1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_no_page_scrolls_sideways(
    open_page: Callable[..., Any], names: list[str], width: int, scheme: str
) -> None:
    for name in names:
        page = open_page(name, width=width, scheme=scheme)
        screenshot(page, f"{name.replace('/', '_').removesuffix('.html')}_{width}_{scheme}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name


# Of each element that hides a part of its width: the layers of its background, and what holds them.
CUT = """[...document.querySelectorAll('*')].filter(e => e.scrollWidth > e.clientWidth
    && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX)).map(e => [
    getComputedStyle(e).backgroundImage, getComputedStyle(e).backgroundAttachment])"""


def test_a_table_that_is_cut_has_a_shadow_where_more_of_it_is_hidden(
    open_page: Callable[..., Any], names: list[str]
) -> None:
    for name in ("report.html", "trace.html"):
        cut = open_page(name, width=NARROW).evaluate(CUT)
        assert cut, name
        for image, attachment in cut:
            assert image.count("linear-gradient") == 4, name
            # The paper scrolls with the table and uncovers the shadow, which stays at the side.
            assert attachment == "local, local, scroll, scroll", name


def test_dark_mode_has_a_dark_background_and_light_text(
    open_page: Callable[..., Any], names: list[str]
) -> None:
    script = "(key => getComputedStyle(document.body)[key])"
    for name in names:
        page = open_page(name, scheme="dark")
        back, text = (page.evaluate(f"{script}('{key}')") for key in ("backgroundColor", "color"))
        assert back == "rgb(20, 23, 26)", name
        assert text == "rgb(231, 233, 234)", name


def test_a_reader_clicks_from_a_score_to_a_crawl_file_and_back(
    open_page: Callable[..., Any], report: Path
) -> None:
    page = open_page("report.html")
    page.locator("table.scores details.cell summary").first.click()
    page.locator("table.scores details.cell[open] a", has_text="lineage").first.click()
    assert page.url.endswith("trace.html#demo.evaluate_score.baseline")
    job = page.locator(":target")
    job.wait_for(state="visible")
    for stage, file in (
        ("evaluate_score", "evaluate_predict/baseline/glue_sst2.jsonl"),
        ("evaluate_predict", "finetune/baseline/weights.safetensors"),
        ("finetune", "pretrain/baseline/weights.safetensors"),
        ("pretrain", "tokens/baseline/train.ids"),
        ("tokens", "c4/baseline/en-train-00000-of-00001.parquet"),
        ("c4", "c4_clean/baseline/00000.parquet"),
        ("c4_clean", "data/crawl/MINI-2019-18-00000.warc.wet.gz"),
    ):
        section = page.locator("section.job:has(:target), section.job:target").first
        assert f".{stage}." in section.get_attribute("id")
        section.locator("a", has_text=file).first.click()
    row = page.locator("tr:target")
    assert row.inner_text().startswith("data/crawl/MINI-2019-18-00000.warc.wet.gz")
    wet = Path(unquote(urlsplit(row.locator("a").first.evaluate("a => a.href")).path))
    assert "WARC-Type: conversion" in gzip.decompress(wet.read_bytes()).decode(errors="replace")
    page.locator("section.job:has(:target) a", has_text="report").first.click()
    assert page.url == (report / "report.html").as_uri()


def test_a_reader_clicks_from_a_score_to_a_record_of_the_crawl_and_back(
    open_page: Callable[..., Any], report: Path
) -> None:
    page = open_page("report.html")
    page.locator("table.scores details.cell summary").first.click()
    page.locator("table.scores details.cell[open] a", has_text="lineage").first.click()
    page.locator("a", has_text="corpus and vocabulary").first.click()
    kept = page.locator("#kept .where", has_text="record ").first
    url, _, record = (part.strip() for part in kept.inner_text().split("\u00b7"))
    number, _, name = record.removeprefix("record ").partition(" of ")
    kept.locator("a").click()
    row = page.locator("tr:target")
    wet = Path(unquote(urlsplit(row.locator("a").first.evaluate("a => a.href")).path))
    assert wet.name == name
    (read,) = (item for item in read_pages(wet) if item.record == int(number))
    assert read.url == url
    page.go_back()
    page.locator("a", has_text="run report").first.click()
    assert page.url == (report / "report.html").as_uri()


def test_a_reader_clicks_from_a_row_in_the_corpus_to_the_file_of_its_page_and_back(
    open_page: Callable[..., Any], report: Path
) -> None:
    page = open_page("contamination.html")
    shard = page.locator(".examples a").first
    name = shard.inner_text()
    shard.click()
    row = page.locator("tr:target")
    assert row.inner_text().startswith(f"results/demo/c4/baseline/{name}")
    page.go_back()
    page.locator("a", has_text="run report").first.click()
    page.locator("a", has_text="page of these rows").click()
    assert page.url == (report / "contamination.html").as_uri()


def test_a_reader_goes_from_an_answer_to_its_page_its_steps_and_back(
    open_page: Callable[..., Any],
    report: Path,
    names: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    in_corpus = 'a[href*="contamination.html#"]'
    answers = [open_page(name) for name in names if name.startswith("answers/")]
    page = next(page for page in answers if page.locator(in_corpus).count())
    answer, address = page.locator(in_corpus).first, page.url
    row = answer.locator("xpath=..").locator("bdi").inner_text()
    answer.click()
    passage = page.locator("li:target")
    in_row = passage.locator("dd > bdi").first.inner_text().strip("\u2026 ")
    assert in_row in row
    url = passage.locator("small bdi").inner_text()
    shard = passage.locator("small a").inner_text()
    # In the terminal: the same page from the text of the passage, and the steps that read it.
    monkeypatch.chdir(report.parents[2])
    assert main(["trace", "--text", in_row]) == 0
    by_text = capsys.readouterr().out
    assert main(["trace", url, "--steps"]) == 0
    by_url = capsys.readouterr().out
    assert url in by_text
    # A training that did not come to the page has 0 steps in the one, and no line in the other.
    assert "demo/pretrain/baseline saw it in " in by_url
    for steps in re.findall(r"demo/pretrain/\S+ saw it in [1-9]\d* steps", by_url):
        assert steps in by_text
    assert f"{shard}, from record " in by_url
    # In the browser: the corpus file of the page.
    passage.locator("small a").click()
    assert page.locator("tr:target").inner_text().startswith(f"results/demo/c4/baseline/{shard}")
    page.go_back()
    page.go_back()
    assert page.url == address


def test_a_reader_clicks_from_an_answer_to_its_predictions(open_page: Callable[..., Any]) -> None:
    page = open_page("answers/glue_sst2.html")
    page.locator(".experiments a", has_text="lineage").first.click()
    row = page.locator("tr:target")
    assert row.inner_text().startswith("results/demo/evaluate_predict/baseline/glue_sst2.jsonl")


def test_a_reader_sees_the_corpus_before_and_after_corruption(
    open_page: Callable[..., Any], report: Path
) -> None:
    page = open_page("report.html")
    page.locator("a", has_text="corpus and vocabulary").click()
    assert page.url.endswith("corpus.html")
    first = page.locator("#objectives .examples > li").first
    inputs, targets = (first.locator("dl > div").nth(number) for number in (1, 2))
    sentinels = inputs.locator("mark", has_text="extra_id").all_inner_texts()
    assert sentinels == [f"<extra_id_{number}>" for number in range(len(sentinels))]
    assert targets.locator("mark", has_text="extra_id").all_inner_texts() == sentinels
    page.locator("#kept a", has_text="en-train").click()
    assert page.locator("tr:target").inner_text().startswith("results/demo/c4/baseline/en-train")
    page.go_back()
    page.locator("a", has_text="run report").click()
    assert page.url == (report / "report.html").as_uri()


def test_the_picture_zooms_and_leads_to_the_jobs(open_page: Callable[..., Any]) -> None:
    page = open_page("trace.html")
    widths = []
    for percent in (50, 100, 150, 200):
        page.locator(f"input.zoom-{percent}").check()
        widths.append(page.locator("svg.stages").bounding_box()["width"])
    assert [round(width / widths[1], 2) for width in widths] == [0.5, 1, 1.5, 2]
    page.locator("input.zoom-100").check()
    page.locator("svg.stages a", has_text="finetune").click()
    assert page.url.endswith("#stage:finetune")


def test_a_click_selects_the_whole_hash(open_page: Callable[..., Any]) -> None:
    page = open_page("trace.html")
    digest = page.locator(".hash").first
    assert digest.bounding_box()["width"] < 140
    digest.click()
    assert re.fullmatch("[0-9a-f]{64}", page.evaluate("getSelection().toString()"))


def shown(page: Any) -> Any:
    return page.locator(".examples > li:visible")


def test_a_reader_filters_the_answers_of_a_task(open_page: Callable[..., Any]) -> None:
    page = open_page("report.html")
    page.locator("table.scores th a", has_text="SST-2").click()
    assert page.url.endswith("answers/glue_sst2.html")
    total = shown(page).count()
    assert total == page.locator(".examples > li").count()
    counts = {}
    for outcome in ("wrong", "right"):
        page.locator("#outcome").select_option(outcome)
        page.locator("#experiment").select_option("1")
        counts[outcome] = shown(page).count()
        assert page.locator("#count").inner_text() == f"{counts[outcome]} of {total} rows"
    assert sum(counts.values()) == total
    page.locator("#outcome").select_option("all")
    text = page.locator(".examples > li > p bdi").nth(2).inner_text()
    page.locator("#words").fill(text.split(":", 1)[1].strip().upper())
    assert shown(page).count() >= 1
    assert text in shown(page).first.inner_text()
    page.locator("#words").fill("no row has these words")
    assert shown(page).count() == 0
    page.locator("a", has_text="run report").click()
    assert page.url.endswith("report.html")


def test_without_scripts_every_answer_is_shown(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((report / "answers/glue_sst2.html").as_uri())
    assert shown(page).count() > 0
    assert not page.locator("#filter").is_visible()
    context.close()
