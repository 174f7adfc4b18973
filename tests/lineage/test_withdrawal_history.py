"""A withdrawal that git has and the lists have lost is found, until it is lifted with a reason."""

from pathlib import Path

import pytest
from clones import commit
from made_graphs import write
from made_records import git

from t5repro.config.withdrawn import FILES, PAGES, UNFINISHED, read_pages
from t5repro.errors import LineageError
from t5repro.lineage.findings import NOT_COMPARED
from t5repro.lineage.store import Revision
from t5repro.lineage.verify import verify_tree
from t5repro.lineage.verify_revision import verify_revision
from t5repro.lineage.withdrawal_history import lost_withdrawals, require_withdrawals

URL = "http://a.example/1"
WITHDRAWN = f"urls:\n  {URL}: ticket 1\ndomains: {{}}\n"
NOTHING = "urls: {}\ndomains: {}\n"


@pytest.fixture
def checkout(run: Path) -> Path:
    """A run with one withdrawn page, committed."""
    git(run, "init", "--quiet", "--initial-branch=main")
    write(run, PAGES.as_posix(), NOTHING)
    commit(run, "nothing withdrawn")
    write(run, PAGES.as_posix(), WITHDRAWN)
    commit(run, "withdraw a page")
    return run


def found(root: Path) -> list[str]:
    return [item.path for item in verify_tree(root).findings if "withdrawn/" in item.path]


def test_an_entry_that_is_listed_is_no_finding(checkout: Path) -> None:
    assert found(checkout) == []
    require_withdrawals(checkout)


def test_a_deleted_list_is_found_before_and_after_its_commit(checkout: Path) -> None:
    (checkout / PAGES).unlink()
    assert found(checkout) == [f"{PAGES}: {URL}"]
    commit(checkout, "merge gone wrong")
    assert found(checkout) == [f"{PAGES}: {URL}"]
    with pytest.raises(LineageError, match=rf"{PAGES} has lost {URL}: commit .* below lifted:"):
        require_withdrawals(checkout)


def test_a_revision_that_lost_an_entry_is_found_by_its_own_history(checkout: Path) -> None:
    write(checkout, "dvc.lock", "schema: '2.0'\nstages: {made: {cmd: make}}\n")
    (checkout / PAGES).unlink()
    commit(checkout, "merge gone wrong")
    write(checkout, PAGES.as_posix(), WITHDRAWN)
    commit(checkout, "the list is back")
    for revision, paths in {"HEAD~1": [f"{PAGES}: {URL}"], "HEAD": []}.items():
        name = git(checkout, "rev-parse", revision)
        findings = verify_revision(Revision(checkout, name)).findings
        assert [item.path for item in findings if "withdrawn/" in item.path] == paths


def test_a_lost_entry_of_a_project_below_the_repository_is_found(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    project = tmp_path / "project"
    write(project, "Snakefile", "")
    write(project, PAGES.as_posix(), WITHDRAWN)
    commit(tmp_path, "withdraw a page")
    (project / PAGES).unlink()
    assert list(lost_withdrawals(project)) == [(PAGES.as_posix(), URL)]


def test_a_merge_that_keeps_the_other_side_is_found(checkout: Path) -> None:
    git(checkout, "checkout", "-qb", "other", "HEAD~1")
    write(checkout, FILES.as_posix(), "files:\n  tasks/one.tsv: ticket 2\n")
    commit(checkout, "withdraw a file")
    git(checkout, "merge", "-q", "-s", "ours", "main", "-m", "merge")
    assert lost_withdrawals(checkout).keys() == {(PAGES.as_posix(), URL)}


def test_a_lifted_entry_is_no_finding_and_may_be_used(checkout: Path) -> None:
    write(checkout, PAGES.as_posix(), f"{NOTHING}lifted:\n  {URL}: the author agreed\n")
    assert found(checkout) == []
    assert not read_pages(checkout / PAGES).holds(URL)
    write(checkout, PAGES.as_posix(), f"{WITHDRAWN}lifted:\n  {URL}: the author agreed\n")
    assert read_pages(checkout / PAGES).holds(URL)


def test_a_list_that_cannot_be_read_and_a_stopped_withdrawal_are_findings(checkout: Path) -> None:
    write(checkout, PAGES.as_posix(), f"<<<<<<< HEAD\n{WITHDRAWN}")
    write(checkout, UNFINISHED.as_posix(), "{}")
    assert found(checkout) == [UNFINISHED.as_posix()]
    messages = [item.message for item in verify_tree(checkout).findings]
    assert any("keep the withdrawals of both sides" in message for message in messages)


def test_without_git_nothing_is_lost(run: Path) -> None:
    assert lost_withdrawals(run) == {}


def test_a_shallow_clone_says_which_withdrawals_it_cannot_compare_and_how_to_get_them(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / PAGES).unlink()
    commit(checkout, "merge gone wrong")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{checkout}", "clone")
    assert lost_withdrawals(clone) == {}
    (warning,) = [item for item in verify_tree(clone).warnings if item.kind == NOT_COMPARED]
    assert "withdrawals of commits that it lacks were not compared" in warning.message
    require_withdrawals(clone)
    assert "git fetch --unshallow" in capsys.readouterr().err
    git(clone, "fetch", "--quiet", "--unshallow")
    assert NOT_COMPARED not in {item.kind for item in verify_tree(clone).warnings}
    with pytest.raises(LineageError, match=f"has lost {URL}"):
        require_withdrawals(clone)
