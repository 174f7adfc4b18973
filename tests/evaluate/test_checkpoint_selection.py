"""The best kept checkpoint of each group of tasks."""

from hypothesis import given
from hypothesis import strategies as st

from t5repro.evaluate.checkpoint_selection import best_checkpoints, groups_of

MRPC = {
    2: {"glue_mrpc": {"f1": 80.0, "accuracy": 60.0}},
    4: {"glue_mrpc": {"f1": 78.0, "accuracy": 64.0}},
    6: {"glue_mrpc": {"f1": 81.0, "accuracy": 61.0}},
}


def test_all_scores_of_a_group_are_those_of_the_step_with_its_highest_mean():
    best = best_checkpoints(MRPC)["glue_mrpc"]
    assert best["means"] == {"2": 70.0, "4": 71.0, "6": 71.0}
    assert best["step"] == 4  # the first of the equal ones, though 6 has the best F1
    assert best["metrics"] == {"glue_mrpc": {"f1": 78.0, "accuracy": 64.0}}


def test_both_parts_of_mnli_are_one_group_and_other_tasks_are_groups_of_their_own():
    metrics = {
        "glue_mnli_matched": {"accuracy": 1.0},
        "glue_mnli_mismatched": {"accuracy": 2.0},
        "squad": {"em": 1.0, "f1": 2.0},
        "cnn_dailymail": {"rouge1": 1.0, "rouge2": 2.0, "rouge2_bootstrap": 9.0},
        "glue_wnli": {"accuracy": 3.0},
        "glue_ax": {},
    }
    assert {name: len(columns) for name, columns in groups_of(metrics).items()} == {
        "glue_mnli_matched+glue_mnli_mismatched": 2,
        "squad": 2,
        "cnn_dailymail": 2,
        "glue_wnli": 1,
    }


def test_an_undefined_step_is_selected_only_if_all_are():
    steps = {1: {"a": {"x": None}}, 2: {"a": {"x": -50.0}}, 3: {"a": {"x": float("nan")}}}
    assert best_checkpoints(steps)["a"]["step"] == 2
    undefined = {step: {"a": {"x": None}} for step in (5, 9)}
    assert best_checkpoints(undefined)["a"]["step"] == 5


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20))
def test_the_selected_mean_is_the_highest_and_no_earlier_one_is_as_high(values):
    best = best_checkpoints({n: {"a": {"x": value}} for n, value in enumerate(values)})["a"]
    assert values[best["step"]] == max(values)
    assert best["step"] == values.index(max(values))
