"""The command that lists and finds runs."""

import csv
import io
import json
import re
import shlex
from pathlib import Path

import pytest
from checkout import ROOT
from made_runs import RAW, scores_of, write_run

from t5repro.cli.main import main

PAGE = (ROOT / "docs/audit_a_score.md").read_text(encoding="utf-8")
((COMMAND, PRINTED),) = re.findall(r"\$ t5repro (runs [^\n]*)\n(.*?)```", PAGE, re.DOTALL)
COMMITTED = int(PRINTED.split()[-2])  # rows: the last line is "2 of N rows"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout without results but with the committed studies; commands run in it."""
    (tmp_path / "studies").symlink_to(ROOT / "studies")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_of_the_page_print_what_it_shows(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(COMMAND)) == 0
    assert capsys.readouterr().out == PRINTED
    assert main(["runs"]) == 0
    assert f"{COMMITTED} of {COMMITTED} rows\n" in capsys.readouterr().out
    model = "results/desk_study/pretrain/baseline/weights.safetensors"
    assert main(["runs", "--model", model, "--csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["experiment"], row["flops"]) == ("baseline", "83432885452800")
    assert main(["runs", "--data", "glue/RTE/train.tsv", "--json", "state:eq:finished"]) == 0
    found = {row["run"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert found == {"desk_mixing", "desk_objectives", "desk_study", "systems"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["glue_rte.accuracy"], "is no term; write KEY:OP:VALUE"),
        (["pretrian.steps:gt:5"], "nearest: 'pretrain.steps'"),
        (["--sort", "flop"], "nearest: 'flops'"),
        (["flops:gt:many"], "flops is a number, and 'many' is none"),
        (["--model", "no/such.file"], "no manifest of a run names such a file"),
        (["--data", "unknown.example"], "results/ contains no manifest; run snakemake"),
    ],
)
def test_a_question_without_an_answer_is_refused(
    checkout: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("t5repro runs: ")
    assert message in error


def test_a_damaged_manifest_is_named_and_the_exit_code_says_so(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(checkout, "r", {"a": scores_of(50.0)})
    (checkout / "results/r/data/manifest.json").write_text("{")
    assert main(["runs", "run:eq:r"]) == 1
    printed = capsys.readouterr().out
    assert "not read: results: results/r/data/manifest.json: " in printed
    assert f"1 of {COMMITTED + 1} rows" in printed
    assert main(["runs", "run:eq:r", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["unread"][0].startswith("results: results/r/data/")


def test_every_manifest_may_be_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results/r/pretrain/a/manifest.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")
    monkeypatch.chdir(tmp_path)
    assert main(["runs", "glue_rte.accuracy:gt:50", "--sort", "flops:desc"]) == 1
    assert "0 of 0 rows\nnot read: " in capsys.readouterr().out


def test_a_page_is_written(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--html", "exports/runs.html"]) == 0
    page = (checkout / "exports/runs.html").read_text(encoding="utf-8")
    assert f"{COMMITTED} of {COMMITTED} rows" in page


def test_raw_data_is_found_by_content(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(checkout, "r", {"a": scores_of(50.0)})
    (checkout / RAW).parent.mkdir(parents=True)
    (checkout / RAW).write_text("raw")
    assert main(["runs", "--data", RAW, "--columns", "run,experiment"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["r", "a"]
