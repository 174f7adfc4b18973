"""Scoring, invalid predictions and baselines of each kind of task."""

import math

import pytest

from t5repro.config.task_layouts import TASK_FILES
from t5repro.tasks.registry import all_tasks, task_named


def scored(*pairs, **more):
    """Return rows of (answer, prediction)."""
    return [
        {"idx": i, "inputs": "in", "targets": "out", "answer": a, "prediction": p} | more
        for i, (a, p) in enumerate(pairs)
    ]


def answers(*values):
    return [{"answer": value} for value in values]


def test_a_near_miss_is_wrong_and_not_repaired():
    task = task_named("glue_sst2")
    rows = scored((1, "positive"), (1, "Positive"), (1, " positive"), (1, "positive."), (0, ""))
    assert task.score(rows) == {"accuracy": 20.0}
    assert task.invalid_count(rows) == 4


def test_unlabelled_rows_are_not_scored_but_their_invalid_predictions_are_counted():
    task = task_named("glue_rte")
    rows = scored((None, "entailment"), (0, "entailment"), (None, "perhaps"))
    assert task.score(rows) == {"accuracy": 100.0}
    assert task.invalid_count(rows) == 1
    assert task.score(rows[:1]) == {}
    assert task.baseline(rows[:1], []) == {"kind": "majority", "metrics": {}}


def test_mrpc_has_f1_and_accuracy_with_invalid_counted_as_wrong():
    rows = scored((1, "equivalent"), (1, "nonsense"), (0, "not_equivalent"), (0, "???"))
    scores = task_named("glue_mrpc").score(rows)
    assert scores == {"f1": 50.0, "accuracy": 50.0}


def test_cola_takes_an_invalid_prediction_as_a_third_class():
    rows = scored((1, "acceptable"), (0, "unacceptable"), (1, "x"), (0, "unacceptable"))
    scores = task_named("glue_cola").score(rows)
    # 3 of 4 right; labels (2, 2, 0), predictions (1, 2, 1): (3*4 - 6) / sqrt((16 - 6) (16 - 8)).
    assert scores == {"matthews_corrcoef": pytest.approx(100 * 6 / math.sqrt(10 * 8))}


@pytest.mark.parametrize(
    ("text", "value"),
    [("3.2", 3.2), (" 3.2 ", 3.2), ("7", 7.0), ("1e1", 10.0), ("-1.0", -1.0), ("", -1.0)]
    + [(text, -1.0) for text in ("3,2", "three", "nan", "inf", "-Infinity", "3.2 points")],
)
def test_a_similarity_is_any_finite_number_else_minus_one(text, value):
    assert task_named("glue_stsb").read_prediction(text, {}) == value


def test_stsb_counts_what_is_no_number():
    task = task_named("glue_stsb")
    rows = scored((1.0, "1.0"), (2.0, "nan"), (3.0, "x"), (4.0, "9"))
    assert task.invalid_count(rows) == 2
    assert set(task.score(rows)) == {"pearson_corrcoef", "spearman_corrcoef"}


def test_stsb_that_says_one_number_for_all_has_no_correlation():
    task = task_named("glue_stsb")
    rows = scored((1.0, "3.0"), (2.0, "3.0"), (4.0, "3.0"))
    zero = {"pearson_corrcoef": 0.0, "spearman_corrcoef": 0.0}
    assert task.score(rows) == zero
    assert task.baseline(rows, answers(1.0, 4.0)) == {"kind": "majority", "metrics": zero}
    assert task.baseline(rows, [])["metrics"] == zero


def test_the_majority_is_that_of_the_training_rows():
    task = task_named("glue_sst2")
    rows = scored((0, ""), (0, ""), (0, ""), (1, ""))
    assert task.baseline(rows, answers(1, 1, 0)) == {
        "kind": "majority",
        "metrics": {"accuracy": 25.0},
    }


def test_of_two_equally_frequent_labels_the_first_is_the_majority():
    rows = scored((0, ""), (0, ""), (0, ""), (1, ""))
    baseline = task_named("glue_sst2").baseline(rows, answers(1, 0, 1, 0, None, None, None))
    assert baseline["metrics"] == {"accuracy": 75.0}


def test_without_training_labels_the_majority_is_that_of_the_scored_rows():
    rows = scored((2, ""), (2, ""), (0, ""))
    baseline = task_named("glue_mnli_mismatched").baseline(rows, [])
    assert baseline["metrics"]["accuracy"] == pytest.approx(200 / 3)


def test_wsc_trains_on_right_candidates_so_its_majority_is_that_of_the_scored_rows():
    rows = scored((0, ""), (0, ""), (1, ""))
    baseline = task_named("super_glue_wsc").baseline(rows, answers(1, 1, 1))
    assert baseline["metrics"]["accuracy"] == pytest.approx(200 / 3)


def test_wsc_compares_the_rule_with_the_label():
    task = task_named("super_glue_wsc")
    rows = scored((1, "Bob"), (0, "Bob's hat"), (1, ""), (0, "the Bob"), targets="Bob")
    assert task.score(rows) == {"accuracy": 50.0}
    assert task.invalid_count(rows) == 1


def test_wnli_rows_without_a_candidate_are_never_right():
    task = task_named("glue_wnli")
    assert task.score(scored((1, "the subway"), (1, ""), targets="")) == {"accuracy": 0.0}


def test_dpr_wants_the_candidate_letter_by_letter():
    task = task_named("dpr")
    rows = scored(("Tom", "Tom"), ("Tom", "tom"), ("the dog", ""))
    assert task.score(rows)["accuracy"] == pytest.approx(100 / 3)
    assert task.invalid_count(rows) == 1
    majority = task.baseline(rows, answers("Bo", "Tom", "Tom"))
    assert majority["metrics"]["accuracy"] == pytest.approx(200 / 3)


def test_multirc_groups_by_question():
    task = task_named("super_glue_multirc")
    rows = scored(
        ({"label": 1, "group": 5}, "True"),
        ({"label": 0, "group": 5}, "True"),
        ({"label": 1, "group": 6}, "True"),
        ({"label": 0, "group": 6}, "maybe"),
        ({"label": 0, "group": 7}, "False"),
    )
    scores = task.score(rows)
    assert scores["exact_match"] == pytest.approx(100 / 3)
    assert scores["f1"] == pytest.approx(100 * 2 * 2 / (2 * 2 + 2))
    assert task.invalid_count(rows) == 1
    train = answers({"label": 0, "group": 1}, {"label": 0, "group": 1}, {"label": 1, "group": 2})
    baseline = task.baseline(rows, train)
    assert baseline["metrics"] == {"f1": 0.0, "exact_match": pytest.approx(100 / 3)}


def test_record_counts_a_query_once():
    task = task_named("super_glue_record")
    one = {"answers": ["Ann", "Bo"], "group": [1, 2]}
    rows = scored((one, "Bo"), (one, "wrong"), ({"answers": ["Cy"], "group": [1, 3]}, "Cy Dee"))
    assert task.score(rows) == {"em": 50.0, "f1": pytest.approx(100 * (1 + 2 / 3) / 2)}
    assert task.baseline(rows, [])["kind"] == "copy"


def test_squad_copies_the_context():
    task = task_named("squad")
    rows = scored(
        (["blue"], "Blue !"),
        inputs="question: What colour is context : red ? context: the sky is blue . ",
    )
    assert task.score(rows) == {"em": 100.0, "f1": 100.0}
    copied = task.baseline(rows, [])
    assert copied == {"kind": "copy", "metrics": {"em": 0.0, "f1": pytest.approx(50.0)}}


def test_translation_copies_the_source_sentence():
    task = task_named("wmt_en_fr")
    inputs = "translate English to French: Paris is the capital of France ."
    rows = scored(("Paris is the capital of France .", ""), inputs=inputs)
    assert task.score(rows) == {"bleu": 0.0}
    assert task.invalid_count(rows) == 1
    copied = task.baseline(rows, [])
    assert copied == {"kind": "copy", "metrics": {"bleu": pytest.approx(100.0)}}


def test_summaries_have_the_mean_and_the_bootstrap_of_each_rouge():
    task = task_named("cnn_dailymail")
    rows = scored(("a b c .", "a b x ."), ("d e", ""), inputs="summarize: a b c .")
    scores = task.score(rows)
    assert set(scores) == set(task.metric_names)
    assert len(scores) == 6
    assert scores["rouge1"] == pytest.approx(100 / 3)
    assert scores == task.score(rows)
    assert task.baseline(rows, [])["metrics"]["rouge1"] == pytest.approx(50.0)


@pytest.mark.parametrize("task", all_tasks(), ids=lambda task: task.name)
def test_predictions_that_are_all_empty_give_a_score_for_every_metric(task):
    row = {
        "super_glue_multirc": {"label": 1, "group": 3},
        "super_glue_record": {"answers": ["Ann"], "group": [1, 2]},
        "squad": ["Ann"],
        "glue_stsb": 2.0,
    }
    texts = task.name.startswith(("wmt", "cnn", "dpr"))
    answer = row.get(task.name, "Ann" if texts else 1)
    rows = scored((answer, ""), (answer, ""))
    assert dict.fromkeys(task.metric_names, 0.0) == task.score(rows)
    assert task.invalid_count(rows) == 2
    assert set(task.baseline(rows, [])["metrics"]) == set(task.metric_names)


@pytest.mark.parametrize("task", all_tasks(), ids=lambda task: task.name)
def test_scores_are_plain_numbers_that_json_can_hold(task):
    assert all(isinstance(name, str) for name in task.metric_names)
    assert len(set(task.metric_names)) == len(task.metric_names)


def test_files_are_those_of_the_original_download():
    assert task_named("glue_cola").files("validation") == ("glue/CoLA/dev.tsv",)
    assert task_named("wmt_en_de").files("train") == ("wmt/en-de/train.en", "wmt/en-de/train.de")
    assert task_named("glue_ax").files("train") == ()


def test_every_task_has_files_and_every_file_a_task():
    assert {task.name for task in all_tasks()} == set(TASK_FILES)


def test_signatures_say_how_text_was_scored():
    assert "tok:intl" in task_named("wmt_en_de").signature()
    assert "rouge_score" in task_named("cnn_dailymail").signature()
    assert task_named("glue_cola").signature is None
