"""The documentation site: a menu of every page, links and images that exist, nothing loaded."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkout import ROOT
from site_pages import MERMAID, OUTSIDE, with_site_links

MKDOCS = ROOT / ".venv-docs/bin/mkdocs"
LOADS = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=\"?(?:https?:)?//[^>]*>")
IMAGE = re.compile(r"<img\b[^>]*?src=\"([^\"]+)\"")
PAGES = {
    "docs/exchange.md": "exchange.md",
    "docs/decisions/D-1.md": "decisions/D-1.md",
    "docs/images/a.png": "images/a.png",
    **OUTSIDE,
}


class Loader(yaml.SafeLoader):
    """YAML with the tags of MkDocs, whose values are ignored."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def entries(nav: Any) -> Iterator[str]:
    for entry in nav:
        if isinstance(entry, dict):
            for part in entry.values():
                yield from entries(part)
        else:
            yield entry


def test_the_menu_lists_every_page_once_and_the_register_every_decision() -> None:
    config = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)  # noqa: S506
    listed = list(entries(config["nav"]))
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    decisions = {page for page in pages if page.startswith("decisions/D-")}
    assert sorted(listed) == sorted((pages - decisions) | set(OUTSIDE.values()))
    register = (docs / "decisions/README.md").read_text(encoding="utf-8")
    assert {page for page in decisions if Path(page).name not in register} == set()


@pytest.mark.parametrize(
    ("source", "page", "text", "expected"),
    [
        ("README.md", "index.md", "[a](docs/exchange.md#serve)", "[a](exchange.md#serve)"),
        ("README.md", "index.md", "![a](docs/images/a.png)", "![a](images/a.png)"),
        ("README.md", "index.md", "![a](docs/images/b.png)", "![a](docs/images/b.png)"),
        ("docs/exchange.md", "exchange.md", "[a](../README.md)", "[a](index.md)"),
        ("docs/exchange.md", "exchange.md", "[a](../configs/demo.yaml) b", "a b"),
        ("docs/decisions/D-1.md", "decisions/D-1.md", "[a](../exchange.md)", "[a](../exchange.md)"),
        ("docs/decisions/D-1.md", "decisions/D-1.md", "[a](../../README.md)", "[a](../index.md)"),
        (
            "examples/mini/README.md",
            "mini_crawl.md",
            "[](../../docs/exchange.md)",
            "[](exchange.md)",
        ),
    ],
)
def test_a_link_of_the_checkout_becomes_one_of_the_site_or_its_text(
    source: str, page: str, text: str, expected: str
) -> None:
    assert with_site_links(text, source, page, PAGES) == expected


@pytest.mark.parametrize(
    "text", ["[a](https://host.example) [b](#c)", "```\n[a](docs/x.md)\n```\n", "`[a](y)`"]
)
def test_addresses_anchors_and_code_stay_as_they_are(text: str) -> None:
    assert with_site_links(text, "README.md", "index.md", PAGES) == text


def test_the_drawing_of_the_stages_has_the_boxes_and_arrows_of_the_graph() -> None:
    graph = MERMAID.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert graph is not None
    lines = graph[0].splitlines()[2:-1]
    chains = [re.split(r" (?:-->|-\.->) ", line.strip()) for line in lines]
    names = {re.sub(r"\[.*", "", node) for chain in chains for node in chain}
    labels = dict(re.findall(r"(\w+)\[([^\]]+)\]", graph[0]))
    boxes = {labels.get(name, name).replace("<br>", " ") for name in names}
    drawing = (ROOT / "docs/images/stages.svg").read_text(encoding="utf-8")
    drawn = re.findall(r"<rect.* rx=.*\n((?: *<text.*\n)+)", drawing)
    assert {" ".join(re.findall(r">(.+)<", lines)) for lines in drawn} == boxes
    assert drawing.count("marker-end") == sum(len(chain) - 1 for chain in chains)


@pytest.mark.slow
@pytest.mark.skipif(not MKDOCS.is_file(), reason="MkDocs is not installed: make docs")
def test_the_site_is_built_without_a_warning_has_its_images_and_loads_nothing(
    tmp_path: Path,
) -> None:
    built = subprocess.run(
        [MKDOCS, "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env={"NO_MKDOCS_2_WARNING": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 60
    start = IMAGE.findall((tmp_path / "site/index.html").read_text(encoding="utf-8"))
    assert start == ["images/report.png", "images/stages.svg"]
    for page in pages:
        html = page.read_text(encoding="utf-8")
        assert LOADS.search(html) is None, page
        assert "flowchart" not in html, page  # Mermaid's source
        for image in IMAGE.findall(html):
            assert image.startswith("data:") or (page.parent / image).is_file(), (page, image)
    assert (tmp_path / "site/search/search_index.json").stat().st_size > 100_000
    for sheet in (tmp_path / "site").rglob("*.css"):
        assert not re.search(r"url\(\"?https?:|@import", sheet.read_text(encoding="utf-8"))
