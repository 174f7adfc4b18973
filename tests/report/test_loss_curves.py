"""Losses of several experiments: one chart a phase, each named in its key."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from t5repro.report.experiments import Group
from t5repro.report.loss_curves import DIFFERENT_KINDS, Curve, curve

GROUPS = [
    Group(name="random_spans", arms=("random_spans", "again"), seeds=(0, 1), style=0),
    Group(name="iid_spans", arms=("iid_spans",), seeds=(0,), style=1),
    Group(name="lm", arms=("lm",), seeds=(0,), style=2),
]
KINDS = ("replace_spans random_spans", "replace_spans iid", "lm iid")


@pytest.fixture
def histories(tmp_path: Path) -> dict[str, Path]:
    """Write four histories, the last of them longer."""
    found = {}
    for number, (name, steps) in enumerate(
        {"random_spans": 40, "again": 40, "iid_spans": 40, "lm": 60}.items()
    ):
        rows = [f"{step},{6 - step / 20 + number}" for step in range(20, steps + 1, 20)]
        found[name] = tmp_path / f"{name}.csv"
        found[name].write_text("\n".join(["step,loss", *rows]) + "\n", encoding="utf-8")
    return found


def drawn(histories: Mapping[str, Path], divisor: str = "target_tokens") -> Curve:
    return curve(
        "pretrain", "Pre-training", GROUPS, histories, divisors=(divisor,) * 3, kinds=KINDS
    )


def test_experiments_of_different_objectives_share_one_chart_with_a_key(
    histories: dict[str, Path],
) -> None:
    found = drawn(histories)
    assert str(found.chart).count("<polyline") == 4
    names = re.findall(r"</svg>([^<]+)</li>", str(found.key))
    assert names == ["random_spans, seeds 0, 1", "iid_spans", "lm"]
    styles = re.findall(r'<polyline class="line series-(\d)', str(found.chart))
    assert styles == ["0", "0", "1", "2"]
    assert found.note == DIFFERENT_KINDS


def test_losses_are_compared_after_the_same_number_of_steps(histories: dict[str, Path]) -> None:
    found = drawn(histories)
    assert found.common_step == "40"
    assert {row[0]: row[-1] for row in found.rows} == {
        "random_spans": "4.000",
        "again": "5.000",
        "iid_spans": "6.000",
        "lm": "7.000",
    }
    assert found.rows[-1][1:4] == ("60", "8.000", "6.000")


@pytest.mark.parametrize(
    ("divisor", "words"),
    [("padded_size", "sum / padded size"), ("target_tokens", "per target token")],
)
def test_the_axis_says_what_the_loss_is_divided_by(
    histories: dict[str, Path], divisor: str, words: str
) -> None:
    assert f"training loss ({words})" in str(drawn(histories, divisor).chart)


def test_one_objective_needs_no_warning(histories: dict[str, Path]) -> None:
    found = curve(
        "pretrain",
        "Pre-training",
        GROUPS[:1],
        histories,
        divisors=("padded_size",),
        kinds=KINDS[:1],
    )
    assert found.note == ""
