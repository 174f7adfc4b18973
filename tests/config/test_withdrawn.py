"""Withdrawn sources are left out of runs."""

import sys
from hashlib import sha256
from pathlib import Path

import pytest
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st

from t5repro.config.hosts import address_form, in_domain
from t5repro.config.load import load_run_file, load_settings
from t5repro.config.task_files import raw_files, task_files
from t5repro.config.withdrawn import (
    UNFINISHED,
    WithdrawnFiles,
    WithdrawnPages,
    check_finished,
    read_files,
    read_pages,
)
from t5repro.config.withdrawn_files import without_withdrawn
from t5repro.errors import SettingsError

RTE = "tasks/glue/RTE/dev.tsv"


@pytest.fixture(autouse=True)
def _in_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(
    ("url", "inside"),
    [
        ("http://example.org/x", True),
        ("https://www.example.org:8080/?a=http://other.org", True),
        ("http://user@Example.ORG./", True),
        ("example.org/x", True),
        ("http://notexample.org/", False),
        ("http://example.org.evil.com/", False),
        ("http://other.org/example.org", False),
        ("http://[PORADNIK]/x", False),
        ("//example.org/x", True),
        ("http://example.org :80/x", True),
        ("http://www.example。org/x", True),
        ("http://example.org\\x", True),
        ("example.org/x?u=http://other.org/", True),
        ("http://other.org/x?u=http://example.org/", False),
    ],
)
def test_a_domain_holds_its_own_hosts_only(url: str, inside: bool) -> None:
    assert in_domain(url, "example.org") is inside


@pytest.mark.parametrize(
    ("url", "domain", "inside"),
    [
        ("http://www.bücher.example/x", "xn--bcher-kva.example", True),
        ("http://xn--bcher-kva.example/x", "Bücher.example", True),
        ("http://[2001:db8::1]:80/x", "[2001:db8::1]", True),
        ("http://[2001:db8::1]/x", "[2001:db8::2]", False),
        ("http://" + "a" * 70 + ".example/x", "example", True),
        ("http://a..example/x", "example", True),
        ("http:///x", "example", False),
    ],
)
def test_a_host_is_compared_as_servers_are_named(url: str, domain: str, inside: bool) -> None:
    assert in_domain(url, domain) is inside
    assert WithdrawnPages(domains={domain: "asked"}).holds(url) is inside


def test_the_committed_lists_can_be_read() -> None:
    assert read_files() is not None
    assert read_pages() is not None


def test_pages_are_withdrawn_by_url_and_by_domain() -> None:
    gone = WithdrawnPages(urls={"http://a.org/1": "asked"}, domains={"b.org": "asked"})
    assert gone
    assert gone.holds("http://a.org/1")
    assert not gone.holds("http://a.org/2")
    assert gone.holds("http://www.b.org/2")
    assert not WithdrawnPages()


def test_a_withdrawn_file_leaves_the_raw_files_and_its_task_the_mixture() -> None:
    settings = load_run_file(Path("configs/demo.yaml"))
    assert RTE in raw_files(settings)
    left = without_withdrawn(settings, WithdrawnFiles(files={RTE: "asked"}))
    assert raw_files(settings).keys() - raw_files(left).keys() == {RTE}
    assert set(settings.tasks.names) - set(left.tasks.names) == {"glue_rte"}
    assert task_files(left, "glue_sst2") == task_files(settings, "glue_sst2")


def test_a_withdrawn_shard_leaves_the_tasks_alone_and_nothing_withdrawn_changes_nothing() -> None:
    settings = load_run_file(Path("configs/demo.yaml"))
    shard = "crawl/MINI-2019-18-00003.warc.wet.gz"
    left = without_withdrawn(settings, WithdrawnFiles(files={shard: "asked"}))
    assert left.tasks == settings.tasks
    assert shard not in raw_files(left)
    assert without_withdrawn(settings, WithdrawnFiles()) is settings
    assert without_withdrawn(settings, WithdrawnFiles(files={"other": "x"})) is settings


def test_an_experiment_with_its_own_mixture_loses_the_task_too() -> None:
    values = load_run_file(Path("configs/demo.yaml")).model_dump(mode="json")
    values["experiments"] = [
        {"name": "only", "change": {"tasks.names": ["glue_rte", "glue_sst2"]}},
        {"name": "nested", "change": {"tasks": {"names": ["glue_rte", "glue_cola"]}}},
    ]
    left = without_withdrawn(load_settings(values), WithdrawnFiles(files={RTE: "asked"}))
    from t5repro.config.experiments import settings_of_experiment

    assert settings_of_experiment(left, "only").tasks.names == ["glue_sst2"]
    assert settings_of_experiment(left, "nested").tasks.names == ["glue_cola"]


@pytest.mark.parametrize("text", ["files: [a]", "urls: {a: b}\nother: 1", "{"])
def test_a_list_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError, match="is not a list of withdrawn sources"):
        read_files(path)


def test_a_merge_that_kept_two_lists_is_refused_with_line_and_cure(tmp_path: Path) -> None:
    path = tmp_path / "pages.yaml"
    path.write_text("domains:\n  a.example: a\nurls: {}\ndomains: {}\nurls:\n  http://b/2: b\n")
    with pytest.raises(
        SettingsError,
        match=r"pages.yaml:4: 'domains' is set twice, first in line 1; keep one of them with the "
        "entries of both",
    ):
        read_pages(path)
    path.write_text("urls:\n  http://b/2: b\n  http://b/2: c\n")
    with pytest.raises(SettingsError, match=r"pages.yaml:3: 'http://b/2' is set twice"):
        read_pages(path)


def test_no_run_is_planned_on_what_a_stopped_withdrawal_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_finished()
    UNFINISHED.parent.mkdir()
    UNFINISHED.write_text("{}")
    with pytest.raises(SettingsError, match="was stopped before its end .* repeat it"):
        check_finished()


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/x/page?q=1",
        "HTTP://A.EXAMPLE:80/x/page?q=1#part",
        "http://a.example./x/./y/../page?q=1",
        "http://a.example/%78/p%61ge?q=%31",
        "//user@a.example:443/x/page?q=1",
    ],
)
def test_an_address_of_a_list_holds_every_spelling(url: str) -> None:
    form = address_form("http://a.example/x/page?q=1")
    assert address_form(url) == form == "a.example/x/page?q=1"
    assert WithdrawnPages(addresses={form: "asked"}).holds(url)
    assert not WithdrawnPages(urls={"http://a.example/x/page?q=1": "asked"}).holds(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://www.a.example/x/page?q=1",
        "http://a.example:8080/x/page?q=1",
        "http://a.example/x/page/?q=1",
        "http://a.example/X/page?q=1",
        "http://a.example/x%2Fpage?q=1",
        "row://a.example/x/page?q=1",
    ],
)
def test_another_address_is_not_held(url: str) -> None:
    assert not WithdrawnPages(addresses={"a.example/x/page?q=1": "asked"}).holds(url)


def test_forms_are_those_of_other_scripts_and_of_ipv6() -> None:
    assert address_form("http://bücher.example") == "xn--bcher-kva.example/"
    assert address_form("http://[::1]:80/a") == "[::1]/a"
    assert address_form("row://file.jsonl#3") == "row://file.jsonl#3"


def test_hosts_prefixes_and_hashes_hold_what_they_name() -> None:
    hashed = {
        sha256(name.encode()).hexdigest(): "asked" for name in ("h.example", "i.example/only")
    }
    pages = WithdrawnPages(
        hosts={"a.example": "asked"}, prefixes={"b.example/private": "asked"}, hashes=hashed
    )
    assert pages
    held = ["https://A.example/", "http://b.example/private-2", "http://www.h.example/x"]
    held.append("https://i.example/only#x")
    free = ["http://www.a.example/", "http://b.example/Private", "http://c.b.example/private"]
    free += ["http://i.example/other", "http://example/"]
    assert [url for url in held + free if pages.holds(url)] == held


@given(
    st.lists(st.sampled_from(["..", ".", "a", "b%41", "%2f", "c"]), max_size=5),
    st.sampled_from(["", "?x=%7e", "#f"]),
)
def test_a_form_is_its_own_form(parts: list[str], end: str) -> None:
    form = address_form(f"https://Ä.example:80/{'/'.join(parts)}{end}")
    assert address_form(form) == form
    assert form.startswith("xn--4ca.example/")


def test_two_thousand_domains_cost_a_url_a_few_look_ups() -> None:
    pages = WithdrawnPages(domains={f"d{number}.example": "asked" for number in range(2000)})
    assert pages.holds("http://www.d1999.example/x")
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        held = pages.holds("http://www.other.example/x")
    finally:
        sys.setprofile(None)
    assert not held
    assert calls < 60  # a walk over the domains has 2,000
