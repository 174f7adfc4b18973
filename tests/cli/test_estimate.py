"""The command that estimates a run before it runs."""

import json
import shlex
from pathlib import Path

import pytest
from checkout import ROOT
from studies import unpacked

from t5repro.cli.main import main

STUDY = "--configfile configs/base.yaml configs/paper_rows.yaml --machine v5e-8 --from-table "
PRICES = "v5e: {per_chip_hour: 2, currency: EUR, as_of: 2026-01-31, source: my contract}\n"


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def run(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["estimate", *shlex.split(words)])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_the_study_is_printed_and_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "prices.yaml").write_text(PRICES)
    words = f"--json {tmp_path}/e.json --prices {tmp_path}/prices.yaml --table 6 7 --budget 45000"
    code, text = run(STUDY + words, capsys)
    assert code == 0
    lines = text.splitlines()
    assert lines[0] == "run paper_rows on v5e, 8 chips"
    assert "hours     44,443 chip-hours, between 26,666 and 79,998" in lines
    assert any(
        line.startswith("shared    564 trainings if each experiment is run alone; 456")
        for line in lines
    )
    assert "assumed   sizes of 156 raw files that are not here" in lines
    money = "money     88,886 EUR, between 53,332 and 159,995; 2 EUR per chip-hour as of 2026-01-31"
    assert f"{money} (my contract)" in lines
    assert "rate_10, rate_25, rate_50, span_2, span_3, span_5, span_10" in text
    assert lines[-1] == "budget    45,000 chip-hours: enough"
    values = json.loads((tmp_path / "e.json").read_text())
    assert values["total"]["chip_hours"] == pytest.approx(44443, abs=1)
    assert len(values["nodes"]) == 1013
    total = sum(one["attributed"]["flops"] for one in values["experiments"])
    assert total == pytest.approx(values["total"]["flops"])


def test_files_without_a_second_seed_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = (ROOT / "studies/desk_study/scores.csv").read_text().splitlines()
    (tmp_path / "scores.csv").write_text("\n".join(rows[:2]) + "\n")
    code, text = run(f"--power {tmp_path}/scores.csv", capsys)
    assert code == 2
    assert "no experiment in these files has scores of two seeds" in text
    code, text = run(f"--power {tmp_path}/none.csv", capsys)
    assert code == 1
    assert "none.csv is missing" in text


def test_one_training_is_no_plural(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("A line of text.\n" * 9)
    (tmp_path / "run.yaml").write_text(
        f"run: {{name: one}}\ndata: {{folder: {tmp_path}}}\nuse: [machines/laptop]\n"
        "corpus: {files: [lines.txt], documents: line, language: en}\n"
    )
    code, text = run(f"--configfile {tmp_path}/run.yaml", capsys)
    assert code == 0
    assert "shared    1 training if each experiment is run alone; 1 here" in text.splitlines()
    assert "assumed" not in text


def test_a_budget_that_is_too_small_has_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(STUDY + "--budget 500", capsys)
    assert code == 3
    assert text.endswith("budget    500 chip-hours: 43,943 too few\n")


def test_a_finished_run_costs_nothing_and_no_money_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, text = run("--budget 0 --all", capsys)
    assert code == 0
    assert "hours     0.00 core-hours, between 0.00 and 0.00" in text
    assert "money" not in text
    assert text.count(" done ") >= 39


def test_a_long_list_of_nodes_is_cut_unless_all_are_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, text = run(STUDY, capsys)
    assert "973 further nodes; --all shows them" in text
    _, text = run(STUDY + "--all", capsys)
    assert "further nodes" not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--machine v7", "--machine 'v7' is unknown; name a kind and a number, such as v5e-8"),
        ("--budget -1", "--budget -1 must be 0 or a number of hours"),
        ("--budget nan", "--budget nan must be 0 or a number of hours"),
        ("--configfile missing.yaml", "missing.yaml"),
        ("--table 99", "--table 99: the paper's tables with scores are [1, 2"),
        ("--rates missing.json", "--rates missing.json cannot be read"),
        ("--prices missing.yaml", "--prices missing.yaml cannot be read"),
    ],
)
def test_wrong_words_are_refused(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = run(words, capsys)
    assert code == 2
    assert message in text


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        (PRICES.replace("v5e", "v5x"), "machine 'v5x' is unknown; kinds: v2"),
        (PRICES.replace("v5e", "v4"), "has no price of v5e; it has ['v4']; add one with"),
        (PRICES.replace(", source: my contract", ""), "source"),
        (PRICES.replace("2026-01-31", "lately"), "as_of"),
        (PRICES.replace(": 2,", ": -2,"), "per_chip_hour"),
    ],
)
def test_wrong_prices_are_refused(
    prices: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prices.yaml").write_text(prices)
    code, text = run(f"--machine v5e-8 --prices {tmp_path}/prices.yaml", capsys)
    assert code == 2
    assert message in text


def test_the_estimate_of_a_run_stands_next_to_its_cost(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "results/demo", "--configfile", "configs/demo.yaml"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["stage", "jobs", "seconds", "estimated"]
    rows = {line.split()[0]: line.split()[1:4] for line in lines}
    assert rows["data_fetch"][2] == "–"
    # Six starts of 5 s, and 400 steps of 7.9 GFLOP each at 92.5 GFLOP/s in three of them. Records
    # of the run itself tell nothing here.
    assert float(rows["pretrain"][2]) == pytest.approx(6 * 5 + 3 * 400 * 7.86e9 / 92.5e9, rel=0.01)
    estimated = [float(row[2]) for name, row in rows.items() if name not in ("data_fetch", "total")]
    assert float(rows["total"][2]) == pytest.approx(sum(estimated), abs=1)


def test_the_cost_of_a_run_is_not_compared_with_the_estimate_of_another(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["cost", "results/demo", "--configfile", "configs/base.yaml"]) == 2
    assert "--configfile has the run 'base' and results/demo is another" in capsys.readouterr().err


def test_stages_that_were_not_run_are_in_neither_sum(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the search of rates the trainings were run, and nothing after them."""
    monkeypatch.chdir(unpacked("desk_rates"))
    run_file = ROOT / "configs/desk_rates.yaml"
    assert main(["cost", "results/desk_rates", "--configfile", str(run_file)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    recorded, estimated = (
        {row[0]: float(row[column].replace(",", "")) for row in rows} for column in (2, 3)
    )
    assert set(recorded) == {
        "data", "corpus", "c4_dedup", "c4", "vocab_sample", "vocab", "tokens", "sentences",
        "pretrain", "tasks", "finetune", "total",
    }  # fmt: skip
    for seconds in (recorded, estimated):
        total = seconds.pop("total")
        assert sum(seconds.values()) == pytest.approx(total, abs=0.5)
