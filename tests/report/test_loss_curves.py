"""Losses of several experiments: one chart a phase, each named in its key."""

import re
from pathlib import Path

import pytest

from t5repro.errors import ArtifactError
from t5repro.report.experiments import Experiment
from t5repro.report.loss_curves import (
    DIFFERENT_OBJECTIVES,
    LossCurve,
    read_history,
    training_curve,
    validation_curve,
)

EXPERIMENTS = [
    Experiment(name="random_spans", arms=("random_spans", "again"), seeds=(0, 1), style=0),
    Experiment(name="iid_spans", arms=("iid_spans",), seeds=(0,), style=1),
    Experiment(name="lm", arms=("lm",), seeds=(0,), style=2),
]
OBJECTIVES = ("replace_spans random_spans", "replace_spans iid", "lm iid")


Histories = dict[str, dict[str, Path]]  # arm -> name of its line -> file


@pytest.fixture
def histories(tmp_path: Path) -> Histories:
    """Write four histories, the last of them longer."""
    answer = {}
    for number, (name, steps) in enumerate(
        {"random_spans": 40, "again": 40, "iid_spans": 40, "lm": 60}.items()
    ):
        rows = [f"{step},{6 - step / 20 + number}" for step in range(20, steps + 1, 20)]
        path = tmp_path / f"{name}.csv"
        answer[name] = {name: path}
        path.write_text("\n".join(["step,loss", *rows]) + "\n", encoding="utf-8")
    return answer


def draw(histories: Histories, divisor: str = "target_tokens") -> LossCurve:
    return training_curve(
        "pretrain",
        "Pre-training",
        EXPERIMENTS,
        histories,
        normalisers=(divisor,) * 3,
        objectives=OBJECTIVES,
    )


def test_experiments_that_share_the_trainings_of_their_seeds_are_one_entry_of_the_legend(
    histories: Histories,
) -> None:
    """As MT-DNN, whose pre-training is BERT's."""
    same = Experiment(name="other", arms=("other", "other_again"), seeds=(0, 1), style=3)
    alone = Experiment(name="alone", arms=("alone",), seeds=(0,), style=4)
    for arm, shared in (
        ("other", "random_spans"),
        ("other_again", "again"),
        ("alone", "iid_spans"),
    ):
        histories[arm] = {arm: next(iter(histories[shared].values()))}
    answer = training_curve(
        "pretrain",
        "Pre-training",
        [*EXPERIMENTS, same, alone],
        histories,
        normalisers=("target_tokens",) * 5,
        objectives=(*OBJECTIVES, OBJECTIVES[0], OBJECTIVES[1]),
    )
    names = re.findall(r"</svg>([^<]+)</li>", str(answer.legend))
    assert names == ["random_spans = other, seeds 0, 1", "iid_spans = alone", "lm"]


def test_experiments_of_different_objectives_share_one_chart_with_a_legend(
    histories: Histories,
) -> None:
    answer = draw(histories)
    assert str(answer.chart).count("<polyline") == 4
    names = re.findall(r"</svg>([^<]+)</li>", str(answer.legend))
    assert names == ["random_spans, seeds 0, 1", "iid_spans", "lm"]
    styles = re.findall(r'<polyline class="line series-(\d)', str(answer.chart))
    assert styles == ["0", "0", "1", "2"]
    assert answer.note == DIFFERENT_OBJECTIVES


def test_losses_are_compared_after_the_same_number_of_steps(histories: Histories) -> None:
    answer = draw(histories)
    assert answer.common_step == "40"
    assert {row.name: row.common for row in answer.rows} == {
        "random_spans": "4.000",
        "again": "5.000",
        "iid_spans": "6.000",
        "lm": "7.000",
    }
    row = answer.rows[-1]
    assert (row.steps, row.first, row.last) == ("60", "8.000", "6.000")


@pytest.mark.parametrize(
    ("divisor", "title"),
    [("padded_size", "sum / padded size"), ("target_tokens", "per target token")],
)
def test_the_axis_says_what_the_loss_is_divided_by(
    histories: Histories, divisor: str, title: str
) -> None:
    assert f"training loss ({title})" in str(draw(histories, divisor).chart)


def test_one_objective_needs_no_warning(histories: Histories) -> None:
    answer = training_curve(
        "pretrain",
        "Pre-training",
        EXPERIMENTS[:1],
        histories,
        normalisers=("padded_size",),
        objectives=OBJECTIVES[:1],
    )
    assert answer.note == ""


def test_a_broken_history_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_text("step,loss\n1,2.5\n2,\n", encoding="utf-8")
    with pytest.raises(ArtifactError, match=r"history\.csv line 3 is not a step and a loss"):
        read_history(path)


def test_a_history_without_a_loss_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_text("step,accuracy\n1,2.5\n", encoding="utf-8")
    with pytest.raises(ArtifactError, match="needs step and loss"):
        read_history(path)


def test_a_missing_history_names_the_cure(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"history\.csv is missing; run the stage that trains"):
        read_history(tmp_path / "history.csv")


def test_a_non_finite_loss_is_omitted(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_text("step,loss\n1,2.5\n2,nan\n3,1.5\n", encoding="utf-8")
    assert read_history(path) == [(1.0, 2.5), (3.0, 1.5)]


def test_losses_on_held_out_text_have_a_chart_with_their_perplexity(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_text(
        "step,loss,validation_loss\n10,5.5,\n20,5.0,4.5\n30,4.0,\n40,3.5,3.0\n", encoding="utf-8"
    )
    experiments = [Experiment(name="baseline", arms=("baseline",), seeds=(0,), style=0)]
    answer = validation_curve(
        experiments, {"baseline": {"baseline": path}}, objectives=OBJECTIVES[:1]
    )
    assert answer is not None
    (row,) = answer.rows
    assert (row.steps, row.first, row.last, row.lowest) == ("40", "4.500", "3.000", "3.000")
    assert answer.note.endswith("Perplexity at the last step: baseline 20.1.")
    assert "cross-entropy of a target token (nats)" in str(answer.chart)


def test_without_losses_on_held_out_text_there_is_no_chart(histories: Histories) -> None:
    assert validation_curve(EXPERIMENTS, histories, objectives=OBJECTIVES) is None
