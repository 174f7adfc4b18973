"""Metrics by name, and the rules whose code they are part of."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.config.sections.tasks import OwnMetric
from t5repro.errors import SettingsError
from t5repro.lineage.sources import PACKAGE, source_files
from t5repro.metrics.registry import (
    METRICS,
    compute_scores,
    metric_named,
    score_names,
    signature_of,
)
from t5repro.metrics.rouge import rouge_mean, rouge_rows
from t5repro.stages import BY_NAME
from t5repro.tasks.registry import TASKS

SCORERS = ("evaluate_score", "report")  # the report draws rows anew for its intervals


def metric_files(rule):
    return [name for name in source_files(BY_NAME[rule].module) if "/metrics/" in name]


@pytest.mark.parametrize("rule", [rule for rule in BY_NAME if rule not in SCORERS])
def test_an_edited_metric_reruns_no_rule_before_scoring(rule):
    assert metric_files(rule) == []


def test_an_edited_metric_or_task_reruns_scoring():
    folder = PACKAGE / "metrics"
    modules = {path.name for path in folder.glob("*.py")}
    assert {name.rpartition("/")[2] for name in metric_files("evaluate_score")} == modules
    assert "src/t5repro/tasks/glue.py" in source_files(BY_NAME["evaluate_score"].module)


def test_an_unknown_metric_is_refused_with_the_nearest_name():
    with pytest.raises(
        SettingsError, match=r"unknown metric 'accurracy'; nearest: 'accuracy'; met"
    ):
        metric_named("accurracy")
    with pytest.raises(SettingsError) as raised:
        metric_named("accurracy")
    assert str(raised.value).endswith(f"metrics are {sorted(METRICS)}")
    with pytest.raises(SettingsError, match="unknown metric '###'; metrics are "):
        compute_scores(("###",), [1], [1], classes=2)


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_every_metric_of_a_task_exists(task):
    assert set(task.metrics) <= set(METRICS)


def test_every_metric_that_a_run_file_may_name_exists():
    assert set(get_args(OwnMetric)) <= set(METRICS)


def test_a_metric_with_one_score_gives_it_its_name():
    assert score_names(("accuracy", "squad")) == ("accuracy", "em", "f1")
    assert compute_scores(("accuracy", "f1"), [1, 0], [1, 1], classes=2) == {
        "accuracy": 50.0,
        "f1": pytest.approx(200 / 3),
    }


def test_the_number_of_classes_decides_the_macro_f1():
    answers, predictions = [0, 1], [0, 1]
    assert compute_scores(("macro_f1",), answers, predictions, classes=2) == {"macro_f1": 100.0}
    # Of a task of a run file only the labels that occur count; of CB all three, as released.
    assert compute_scores(("macro_f1",), answers, predictions, classes=4) == {"macro_f1": 100.0}
    released = compute_scores(("mean_3class_f1",), answers, predictions, classes=3)
    assert released == {"mean_3class_f1": pytest.approx(200 / 3)}
    assert compute_scores(("mean_3class_f1",), answers, predictions, classes=3) == {
        "mean_3class_f1": pytest.approx(200 / 3)
    }


def test_without_rows_there_are_no_scores():
    assert compute_scores(tuple(METRICS), [], [], classes=2) == {}


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match="2 answers and 1 predictions; a metric needs one of each"):
        compute_scores(("accuracy",), [0, 1], [0], classes=2)


def test_signatures_say_how_text_was_scored():
    assert "tok:intl" in signature_of(("bleu",))
    assert "rouge_score" in signature_of(("rouge",))
    bleu_first = signature_of(("rouge", "bleu"))
    assert bleu_first == f"{signature_of(('bleu',))}; {signature_of(('rouge',))}"
    assert signature_of(("accuracy", "squad")) is None


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=4))
def test_any_text_gives_scores_from_0_to_100(pairs):
    answers, predictions = map(list, zip(*pairs, strict=True))
    scores = compute_scores(("accuracy", "squad", "bleu"), answers, predictions, classes=0)
    values = [*scores.values(), *rouge_mean(rouge_rows(answers, predictions)).values()]
    assert np.all(np.isfinite(values))
    assert all(0.0 <= value <= 100.0 + 1e-9 for value in values)
