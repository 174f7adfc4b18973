"""SQuAD 2.0 against the definition of its official evaluation, with hard rows."""

import numpy as np
import pytest
from random_texts import RANDOM_CASES
from squad_rows import HARD_ROWS, random_rows

from t5repro.metrics.question_answering import normalize_answer
from t5repro.metrics.squad_v2 import answer_scores, squad_v2


@pytest.mark.parametrize(("golds", "text", "em", "f1"), HARD_ROWS)
def test_a_hard_row_has_the_scores_of_the_official_script(golds, text, em, f1):
    assert answer_scores(golds, text) == pytest.approx((em, f1))


def best_by_trying(golds, predictions, place):
    """Try every number of rows that are answered, in the order of their odds."""
    order = np.argsort([row["null_odds"] for row in predictions], kind="stable")
    values = []
    for answered in range(len(order) + 1):
        points = 0.0
        for rank, row in enumerate(order):
            span = predictions[row]["span"] if rank < answered else ""
            if golds[row]:
                points += answer_scores(golds[row], span)[place] if rank < answered else 0
            else:  # here only an empty text is right, an article is not
                points += not span
        values.append(points)
    best = int(np.argmax(np.round(values, 9)))
    threshold = predictions[order[best - 1]]["null_odds"] if best else 0.0
    return 100 * values[best] / len(golds), threshold


@pytest.mark.parametrize("tie_odds", [False, True])
def test_the_best_threshold_is_the_best_of_all(tie_odds):
    for seed in range(RANDOM_CASES):
        golds, predictions = random_rows(seed, tie_odds=tie_odds)
        scores = squad_v2(golds, predictions)
        for place, name in enumerate(("em", "f1")):
            best = scores[f"best_{name}"], scores[f"best_{name}_threshold"]
            assert best == pytest.approx(best_by_trying(golds, predictions, place))


def test_rows_with_and_without_an_answer_make_up_all():
    for seed in range(RANDOM_CASES):
        golds, predictions = random_rows(seed, tie_odds=True)
        scores = squad_v2(golds, predictions)
        counts = {"has_answer_": sum(map(bool, golds)), "no_answer_": sum(not g for g in golds)}
        assert {prefix + "em" in scores for prefix, rows in counts.items() if not rows} <= {False}
        for name in ("em", "f1"):
            parts = sum(rows * scores.get(prefix + name, 0) for prefix, rows in counts.items())
            assert parts / len(golds) == pytest.approx(scores[name])


def test_without_odds_there_is_no_best_threshold():
    scores = squad_v2([["Ann"], []], [{"text": "Ann"}, {"text": "Ann"}])
    assert scores == {
        **dict.fromkeys(("em", "f1"), 50.0),
        **dict.fromkeys(("has_answer_em", "has_answer_f1"), 100.0),
        **dict.fromkeys(("no_answer_em", "no_answer_f1"), 0.0),
    }


def test_the_text_of_a_threshold_scores_what_the_metric_promises():
    for seed in range(RANDOM_CASES):
        golds, predictions = random_rows(seed, tie_odds=False)
        best = squad_v2(golds, predictions)
        if best["best_f1_threshold"] == 0.0:
            continue  # no row is answered
        limit = best["best_f1_threshold"]
        cut = [{"text": row["span"] if row["null_odds"] <= limit else ""} for row in predictions]
        texts = [row["span"] for row in predictions if row["span"]]
        if all(map(normalize_answer, [*texts, *(gold for row in golds for gold in row)])):
            assert squad_v2(golds, cut)["f1"] == pytest.approx(best["best_f1"])
