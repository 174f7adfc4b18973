"""Benchmark averages against the paper's own numbers."""

import random
from statistics import fmean

import pytest

from t5repro.metrics.registry import score_names
from t5repro.tasks.averages import BENCHMARKS, benchmark_averages
from t5repro.tasks.registry import task_named

# Paper, table 16, first row; GLUE and SuperGLUE average of table 1.
BASELINE = {
    "glue_cola": {"matthews_corrcoef": 53.84},
    "glue_sst2": {"accuracy": 92.68},
    "glue_mrpc": {"f1": 92.07, "accuracy": 88.92},
    "glue_stsb": {"pearson_corrcoef": 88.02, "spearman_corrcoef": 87.94},
    "glue_qqp": {"f1": 88.67, "accuracy": 91.56},
    "glue_mnli_matched": {"accuracy": 84.24},
    "glue_mnli_mismatched": {"accuracy": 84.57},
    "glue_qnli": {"accuracy": 90.48},
    "glue_rte": {"accuracy": 76.28},
    "super_glue_boolq": {"accuracy": 76.62},
    "super_glue_cb": {"mean_3class_f1": 91.22, "accuracy": 91.96},
    "super_glue_copa": {"accuracy": 66.20},
    "super_glue_multirc": {"f1": 66.13, "exact_match": 25.78},
    "super_glue_record": {"f1": 69.05, "em": 68.16},
    "super_glue_rte": {"accuracy": 75.34},
    "super_glue_wic": {"accuracy": 68.04},
    "super_glue_wsc": {"accuracy": 78.56},
}


def test_the_papers_baseline_row_has_the_papers_averages():
    averages = benchmark_averages(BASELINE | {"glue_wnli": {"accuracy": 0.0}})
    assert {name: round(value, 2) for name, value in averages.items()} == {
        "glue": 83.28,
        "super_glue": 71.36,
    }


@pytest.mark.parametrize("missing", sorted(BASELINE))
def test_an_average_is_undefined_when_a_task_is_missing(missing):
    scores = {name: values for name, values in BASELINE.items() if name != missing}
    averages = benchmark_averages(scores)
    benchmark = "super_glue" if missing.startswith("super") else "glue"
    other_benchmark = "glue" if benchmark == "super_glue" else "super_glue"
    assert averages[benchmark] is None
    assert averages[other_benchmark] is not None


def test_an_average_is_undefined_when_one_column_is_missing():
    averages = benchmark_averages(BASELINE | {"glue_mrpc": {"f1": 92.07}})
    assert averages["glue"] is None
    assert benchmark_averages({}) == {"glue": None, "super_glue": None}


def test_every_column_is_a_score_of_its_task():
    for groups in BENCHMARKS.values():
        assert len(groups) == 8
        for group in groups:
            assert all(score in score_names(task_named(task).metrics) for task, score in group)


def test_averages_equal_their_definition_on_random_scores():
    """Mean inside a group, then over the groups; undefined if any column is missing."""
    for seed in range(1000):
        draw = random.Random(seed)
        scores: dict[str, dict[str, float]] = {}
        lost = set()
        for name, groups in BENCHMARKS.items():
            for group in groups:
                for task, metric in group:
                    if draw.random() < 0.01:
                        lost.add(name)
                    else:
                        scores.setdefault(task, {})[metric] = draw.uniform(-100, 100)
        averages = benchmark_averages(scores)
        for name, groups in BENCHMARKS.items():
            if name in lost:
                assert averages[name] is None
                continue
            means = [fmean(scores[task][metric] for task, metric in group) for group in groups]
            assert averages[name] == pytest.approx(fmean(means))
