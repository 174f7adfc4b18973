"""Attacks on a reader's browser: markup in whatever the two pages show."""

import base64
import hashlib
import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_graphs import RESULT, SCORES, small_run
from whole_records import MACHINE, whole_record

from t5repro.errors import ArtifactError
from t5repro.lineage.graph import Artifact, Graph, Job, load_graph, parse_manifest
from t5repro.lineage.record import record_of
from t5repro.lineage.store import Folder
from t5repro.lineage.trace import trace
from t5repro.report.charts import Series, legend, line_chart
from t5repro.report.content_security import content_security_policy
from t5repro.report.ordering import ColumnOrdering, Pair, TableOrdering
from t5repro.report.page import report_page
from t5repro.report.published_table import PublishedTable, TableCell, TableRow
from t5repro.report.render_lineage import to_html, to_svg
from t5repro.report.scaling import Scaling, TaskGain

SCRIPT = "<script>alert(1)</script>"
ATTACKS = (
    SCRIPT,
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></style><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "--><base href=//evil.example>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "]]><iframe srcdoc=x>",
    "&lt;script&gt;",
    "</details></section><form action=//evil.example>",
)
FORBIDDEN = {"script", "img", "iframe", "object", "embed", "link", "base", "form"}


class Elements(HTMLParser):
    """All elements of a page, as a browser's parser finds them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def check_harmless(page: str) -> Elements:
    """Check that a page has no element or attribute that runs or loads anything."""
    found = Elements(page)
    assert not FORBIDDEN & set(found.tags)
    inputs = [value for tag, name, value in found.attributes if (tag, name) == ("input", "type")]
    assert inputs in ([], ["radio"] * 4)  # the zoom of the lineage page
    for tag, name, value in found.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in {"src", "srcdoc", "srcset", "action", "formaction", "ping"}, (tag, name)
        if name in {"href", "xlink:href"}:
            assert re.match(r"#|(\.\./)*[\w./%-]+$", value), value
        assert (tag, name, value.lower()) != ("meta", "http-equiv", "refresh")
    return found


def policy_of(page: str) -> dict[str, list[str]]:
    """Return the directives of a page's Content-Security-Policy."""
    elements = Elements(page)
    (policy,) = (
        value
        for (_, name, value), (_, before, kind) in zip(
            elements.attributes[1:], elements.attributes, strict=False
        )
        if (name, before, kind) == ("content", "http-equiv", "Content-Security-Policy")
    )
    return {words[0]: words[1:] for words in map(str.split, policy.split(";"))}


def style_hash(page: str) -> str:
    (style,) = re.findall(r"<style>(.*?)</style>", page, flags=re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory.mktemp("html") / "checkout")


def lineage_page(graph: Graph) -> str:
    return to_html(graph, "Lineage", root="../../..", links={"run report": "report.html"})


def test_the_lineage_page_allows_its_own_style_and_nothing_else(checkout: Path) -> None:
    page = lineage_page(load_graph(Folder(checkout)))
    policy = policy_of(page)
    assert policy["default-src"] == ["'none'"]
    assert policy["style-src"] == [style_hash(page)]
    assert policy["base-uri"] == policy["form-action"] == ["'none'"]
    check_harmless(page)


def test_the_report_allows_its_own_style_and_nothing_else() -> None:
    style = "p{color:red}"
    policy = content_security_policy(style, style_attributes=True)
    assert policy.startswith("default-src 'none';")
    assert f"style-src-elem {style_hash(f'<style>{style}</style>')};" in policy
    assert "script" not in policy


@pytest.mark.parametrize("attack", ATTACKS)
def test_markup_in_a_hash_is_not_a_manifest(checkout: Path, attack: str) -> None:
    path = f"{RESULT}/c4/a/manifest.json"
    values = json.loads((checkout / path).read_bytes())
    values["outputs"][0]["sha256"] = attack
    with pytest.raises(ArtifactError, match="is not a SHA-256"):
        parse_manifest(path, json.dumps(values).encode(), {})


@pytest.mark.parametrize(
    "change",
    [
        {"rule": ["x"]},
        {"settings": "x"},
        {"counters": [1]},
        {"inputs": [{"path": 5, "sha256": "a" * 64, "bytes": 1}]},
        {"inputs": [{"path": "x", "sha256": "a" * 64, "bytes": "<b>"}]},
        {"inputs": [{"path": "x", "sha256": None, "bytes": 1}]},
        {"inputs": ["x"]},
        {"inputs": 5},
    ],
)
def test_a_manifest_of_other_types_is_named_as_damaged(
    checkout: Path, change: dict[str, Any]
) -> None:
    path = f"{RESULT}/c4/a/manifest.json"
    values = json.loads((checkout / path).read_bytes()) | change
    with pytest.raises(ArtifactError, match="is not a manifest"):
        parse_manifest(path, json.dumps(values).encode(), {})


def job_of(text: str) -> Job:
    """Return a job that has a text wherever a page shows one."""
    raw = Artifact(f"data/{text}", text, 1)
    machine = {**MACHINE, "system": text, "processor": text}
    facts = {"code": {text: text}, "commit": text, "machine": machine}
    return Job(
        name=f"r/{text}",
        rule=text,
        manifest=f"results/{text}/manifest.json",
        settings={text: {text: [text]}},
        inputs=(raw,),
        outputs=(Artifact(f"results/{text}", text, 2), Artifact(f"results/{text}/m", text, 3)),
        counters={text: text},
        record=record_of(whole_record("r/a", {**facts, "at": text}, {"at": text}), "r/a"),
    )


@pytest.mark.parametrize("attack", ATTACKS)
def test_markup_anywhere_in_a_job_is_only_text_of_the_lineage_page(attack: str) -> None:
    found = check_harmless(lineage_page(Graph([job_of(attack)])))
    assert attack in "".join(found.texts)


@cache
def tags_of_a_harmless_page() -> list[str]:
    return Elements(lineage_page(Graph([job_of("x")]))).tags


@settings(max_examples=60)
@given(st.text(alphabet=st.sampled_from("<>\"'&/=;#ab:\\ \t\n"), min_size=1, max_size=30))
def test_no_text_adds_an_element_to_the_lineage_page(text: str) -> None:
    page = lineage_page(Graph([job_of(text)]))
    assert check_harmless(page).tags == tags_of_a_harmless_page()


@pytest.mark.parametrize("attack", ATTACKS)
def test_markup_in_a_path_is_only_text_of_the_drawing(tmp_path: Path, attack: str) -> None:
    root = small_run(tmp_path / "checkout")
    graph = load_graph(Folder(root))
    answer = trace(graph, Folder(root), SCORES)
    hostile = type(answer)(**{**vars(answer), "part": attack})
    svg = to_svg(hostile, graph)
    assert "<script" not in svg
    assert "<img" not in svg
    check_harmless(svg)


def ordering_of(text: str) -> TableOrdering:
    """Return the order of a table that has a text wherever a page shows one."""
    pair = Pair(text, text, ours=text, error=text, paper=text, counts=True, verdict=text)
    column = ColumnOrdering(text, text, 3, text, text, text, text, (pair,))
    return TableOrdering(6, text, 3, text, (column,), text)


def table_of(text: str) -> PublishedTable:
    """Return a published table that has a text wherever a page shows one."""
    cell = TableCell(text, exact=text, sd=text, difference=text, reason=text)
    row = TableRow(text, text, is_experiment=True, style=0, seeds=text, cells=(cell,))
    printed = TableRow(text, text, is_experiment=False, style=0, seeds="", cells=(cell,))
    return PublishedTable(
        anchor="paper-1",
        label=text,
        title=text,
        split=text,
        is_transposed=False,
        columns=((text, text),),
        deviations=(text,),
        our_deviations=(),
        repetitions=0,
        rows=(printed, row),
        notes=(text,),
        remarks=(text,),
    )


def scaling_of(text: str) -> Scaling:
    """A series of experiments with a text in every place."""
    texts = (text, text, text)
    lines = [Series(text, ((1.0, 1.0), (2.0, 2.0)), 0)]
    chart = line_chart(
        "scaling-1-task", lines, title=text, description=text, x_label=text, y_label=text
    )
    gain = TaskGain(
        title=text, metric=text, scores=texts, worth_from=text, chart=chart, legend=legend(lines)
    )
    return Scaling(
        experiments=texts,
        operations=texts,
        losses=texts,
        chart=None,
        legend=None,
        law=text,
        gains=(gain,),
    )


@pytest.mark.parametrize("attack", ATTACKS)
def test_markup_in_any_text_of_the_report_is_only_text(attack: str) -> None:
    empty: dict[str, Any] = {
        "experiments": (),
        "tallies": (),
        "groups": (),
        "checkpoint_tables": (),
        "settings": (),
        "differing": (),
        "choices": (),
        "curves": (),
        "held_out": (),
        "phases": (),
        "corpora": (),
    }
    texts = [
        "run",
        "split",
        "limit",
        "paper_model",
        "our_model",
        "departures",
        "paper_source",
        "csv_name",
    ]
    view = {
        **empty,
        **dict.fromkeys(texts, attack),
        "orderings": [ordering_of(attack)],
        "paper_tables": [table_of(attack)],
        "system_tables": [table_of(attack)],
        "scalings": [scaling_of(attack)],
        "introduction": attack,
        "has_seeds": False,
        "has_intervals": True,
        "answers": {attack: "answers/x.html"},
        "effect": None,
        "difference_title": attack,
        "has_paper_columns": False,
        "columns": 5,
        "titles_below_zero": [attack],
        "reasons": [attack],
        "raw": [{"origin": attack, "licence": attack, "files": {attack: attack}}],
        "sources": [
            {
                "experiment": attack,
                "content": attack,
                "href": "#x",
                "path": attack,
                "digest": attack,
            }
        ],
        "lineage_name": "trace.html",
        "corpus_page": "corpus.html",
    }
    page = report_page(view)
    check_harmless(page)
    policy = policy_of(page)
    assert policy["style-src-elem"] == [style_hash(page)]
    assert policy["default-src"] == ["'none'"]
    assert "script-src" not in policy
