"""Scores, invalid predictions and trivial answers of each kind of task."""

import math

import pytest

from t5repro.evaluate.score import score_baseline, score_rows
from t5repro.metrics.registry import score_names
from t5repro.task_table import BY_NAME
from t5repro.tasks.registry import TASKS, task_named


def scored(*pairs, **more):
    """Return rows of (answer, prediction)."""
    return [
        {"idx": i, "inputs": "in", "targets": "out", "answer": a, "prediction": p} | more
        for i, (a, p) in enumerate(pairs)
    ]


def answers(*values):
    return [{"answer": value} for value in values]


def baseline(task, rows, train_rows):
    return {"kind": task.baseline.kind, "metrics": score_baseline(task, rows, train_rows)}


def test_a_near_miss_is_wrong_and_not_repaired():
    task = task_named("glue_sst2")
    rows = scored((1, "positive"), (1, "Positive"), (1, " positive"), (1, "positive."), (0, ""))
    assert score_rows(task, rows) == {"accuracy": 20.0}
    assert task.invalid_count(rows) == 4


def test_unlabelled_rows_are_not_scored_but_their_invalid_predictions_are_counted():
    task = task_named("glue_rte")
    rows = scored((None, "entailment"), (0, "entailment"), (None, "perhaps"))
    assert score_rows(task, rows) == {"accuracy": 100.0}
    assert task.invalid_count(rows) == 1
    assert score_rows(task, rows[:1]) == {}
    assert baseline(task, rows[:1], []) == {"kind": "majority", "metrics": {}}


def test_mrpc_has_f1_and_accuracy_with_invalid_counted_as_wrong():
    rows = scored((1, "equivalent"), (1, "nonsense"), (0, "not_equivalent"), (0, "???"))
    scores = score_rows(task_named("glue_mrpc"), rows)
    assert scores == {"f1": 50.0, "accuracy": 50.0}


def test_cola_takes_an_invalid_prediction_as_a_third_class():
    rows = scored((1, "acceptable"), (0, "unacceptable"), (1, "x"), (0, "unacceptable"))
    scores = score_rows(task_named("glue_cola"), rows)
    # 3 of 4 right; labels (2, 2, 0), predictions (1, 2, 1): (3*4 - 6) / sqrt((16 - 6) (16 - 8)).
    assert scores == {"matthews_corrcoef": pytest.approx(100 * 6 / math.sqrt(10 * 8))}


def test_stsb_counts_what_is_no_number():
    task = task_named("glue_stsb")
    rows = scored((1.0, "1.0"), (2.0, "nan"), (3.0, "x"), (4.0, "9"))
    assert task.invalid_count(rows) == 2
    assert set(score_rows(task, rows)) == {"pearson_corrcoef", "spearman_corrcoef"}


def test_stsb_that_says_one_number_for_all_has_no_correlation():
    task = task_named("glue_stsb")
    rows = scored((1.0, "3.0"), (2.0, "3.0"), (4.0, "3.0"))
    zero = {"pearson_corrcoef": 0.0, "spearman_corrcoef": 0.0}
    assert score_rows(task, rows) == zero
    assert baseline(task, rows, answers(1.0, 4.0)) == {"kind": "majority", "metrics": zero}
    assert baseline(task, rows, [])["metrics"] == zero


def test_the_majority_is_that_of_the_training_rows():
    task = task_named("glue_sst2")
    rows = scored((0, ""), (0, ""), (0, ""), (1, ""))
    assert baseline(task, rows, answers(1, 1, 0)) == {
        "kind": "majority",
        "metrics": {"accuracy": 25.0},
    }


def test_of_two_equally_frequent_labels_the_first_is_the_majority():
    rows = scored((0, ""), (0, ""), (0, ""), (1, ""))
    trivial = baseline(task_named("glue_sst2"), rows, answers(1, 0, 1, 0, None, None, None))
    assert trivial["metrics"] == {"accuracy": 75.0}


def test_without_training_labels_the_majority_is_that_of_the_scored_rows():
    rows = scored((2, ""), (2, ""), (0, ""))
    trivial = baseline(task_named("glue_mnli_mismatched"), rows, [])
    assert trivial["metrics"]["accuracy"] == pytest.approx(200 / 3)


def test_wsc_trains_on_right_candidates_so_its_majority_is_that_of_the_scored_rows():
    rows = scored((0, ""), (0, ""), (1, ""))
    trivial = baseline(task_named("super_glue_wsc"), rows, answers(1, 1, 1))
    assert trivial["metrics"]["accuracy"] == pytest.approx(200 / 3)


def test_wsc_compares_the_rule_with_the_label():
    task = task_named("super_glue_wsc")
    rows = scored((1, "Bob"), (0, "Bob's hat"), (1, ""), (0, "the Bob"), targets="Bob")
    assert score_rows(task, rows) == {"accuracy": 50.0}
    assert task.invalid_count(rows) == 1


def test_wnli_rows_without_a_candidate_are_never_right():
    task = task_named("glue_wnli")
    assert score_rows(task, scored((1, "the subway"), (1, ""), targets="")) == {"accuracy": 0.0}


def test_dpr_wants_the_candidate_letter_by_letter():
    task = task_named("dpr")
    rows = scored(("Tom", "Tom"), ("Tom", "tom"), ("the dog", ""))
    assert score_rows(task, rows)["accuracy"] == pytest.approx(100 / 3)
    assert task.invalid_count(rows) == 1
    trivial = baseline(task, rows, answers("Bo", "Tom", "Tom"))
    assert trivial["metrics"]["accuracy"] == pytest.approx(200 / 3)


def test_multirc_groups_by_question():
    task = task_named("super_glue_multirc")
    rows = scored(
        ({"label": 1, "group": 5}, "True"),
        ({"label": 0, "group": 5}, "True"),
        ({"label": 1, "group": 6}, "True"),
        ({"label": 0, "group": 6}, "maybe"),
        ({"label": 0, "group": 7}, "False"),
    )
    scores = score_rows(task, rows)
    assert scores["exact_match"] == pytest.approx(100 / 3)
    assert scores["f1"] == pytest.approx(100 * 2 * 2 / (2 * 2 + 2))
    assert task.invalid_count(rows) == 1
    train = answers({"label": 0, "group": 1}, {"label": 0, "group": 1}, {"label": 1, "group": 2})
    trivial = baseline(task, rows, train)
    assert trivial["metrics"] == {"f1": 0.0, "exact_match": pytest.approx(100 / 3)}


def test_record_counts_a_query_once():
    task = task_named("super_glue_record")
    one = {"answers": ["Ann", "Bo"], "group": [1, 2]}
    rows = scored((one, "Bo"), (one, "wrong"), ({"answers": ["Cy"], "group": [1, 3]}, "Cy Dee"))
    assert score_rows(task, rows) == {"em": 50.0, "f1": pytest.approx(100 * (1 + 2 / 3) / 2)}
    assert baseline(task, rows, [])["kind"] == "copy"


def test_squad_copies_the_context():
    task = task_named("squad")
    rows = scored(
        (["blue"], "Blue !"),
        inputs="question: What colour is context : red ? context: the sky is blue . ",
    )
    assert score_rows(task, rows) == {"em": 100.0, "f1": 100.0}
    copied = baseline(task, rows, [])
    assert copied == {"kind": "copy", "metrics": {"em": 0.0, "f1": pytest.approx(50.0)}}


def test_translation_copies_the_source_sentence():
    task = task_named("wmt_en_fr")
    inputs = "translate English to French: Paris is the capital of France ."
    rows = scored(("Paris is the capital of France .", ""), inputs=inputs)
    assert score_rows(task, rows) == {"bleu": 0.0}
    assert task.invalid_count(rows) == 1
    copied = baseline(task, rows, [])
    assert copied == {"kind": "copy", "metrics": {"bleu": pytest.approx(100.0)}}


def test_summaries_have_the_mean_and_the_bootstrap_of_each_rouge():
    task = task_named("cnn_dailymail")
    rows = scored(("a b c .", "a b x ."), ("d e", ""), inputs="summarize: a b c .")
    scores = score_rows(task, rows)
    assert set(scores) == set(score_names(task.metrics))
    assert len(scores) == 6
    assert scores["rouge1"] == pytest.approx(100 / 3)
    assert scores == score_rows(task, rows)
    assert baseline(task, rows, [])["metrics"]["rouge1"] == pytest.approx(50.0)


# No answer in SQuAD 2.0 and no entity are answers (`metrics/test_squad_v2.py`, `test_entities.py`).
WITH_ANSWERS = [task for task in TASKS.values() if task.name not in ("squad_2", "conll_2003")]


@pytest.mark.parametrize("task", WITH_ANSWERS, ids=lambda task: task.name)
def test_predictions_that_are_all_empty_give_a_score_for_every_metric(task):
    row = {
        "super_glue_multirc": {"label": 1, "group": 3},
        "super_glue_record": {"answers": ["Ann"], "group": [1, 2]},
        "glue_stsb": 2.0,
    }
    texts = task.name.startswith(("wmt", "cnn", "dpr")) or "squad" in task.metrics
    answer = row.get(task.name, "Ann" if texts else 1)
    rows = scored((answer, ""), (answer, ""))
    assert dict.fromkeys(score_names(task.metrics), 0.0) == score_rows(task, rows)
    assert task.invalid_count(rows) == 2
    assert set(baseline(task, rows, [])["metrics"]) == set(score_names(task.metrics))


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_the_scores_of_a_task_have_different_names(task):
    assert len(set(score_names(task.metrics))) == len(score_names(task.metrics))


def test_every_task_has_files_and_every_file_a_task():
    assert {task.name for task in TASKS.values()} == set(BY_NAME)
