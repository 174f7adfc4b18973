"""Scores of SQuAD 2.0 beside those of transformers, which has the official script's functions."""

import random
from types import SimpleNamespace

import pytest
from squad_rows import HARD_ROWS, random_rows

from t5repro.metrics.squad_v2 import squad_v2

squad_evaluate = pytest.importorskip(
    "transformers.data.metrics.squad_metrics",
    reason="peers are not installed (make parity), or they are transformers 5, which dropped it",
).squad_evaluate

pytestmark = pytest.mark.parity
NAMES = {
    "em": "exact",
    "f1": "f1",
    **{
        f"{ours}_{name}": f"{theirs}_{key}"
        for ours, theirs in (("has_answer", "HasAns"), ("no_answer", "NoAns"))
        for name, key in (("em", "exact"), ("f1", "f1"))
    },
}
BEST = {
    "best_em": "best_exact",
    "best_f1": "best_f1",
    "best_em_threshold": "best_exact_thresh",
    "best_f1_threshold": "best_f1_thresh",
}


def theirs_of(golds, texts, odds=None):
    examples = [
        SimpleNamespace(qas_id=str(row), answers=[{"text": text} for text in answers])
        for row, answers in enumerate(golds)
    ]
    numbered = {str(row): value for row, value in enumerate(odds)} if odds else None
    texts = {str(row): text for row, text in enumerate(texts)}
    return squad_evaluate(examples, texts, no_answer_probs=numbered)


def compared(golds, predictions):
    ours = squad_v2(golds, predictions)
    plain = theirs_of(golds, [row["text"] for row in predictions])
    for name, key in NAMES.items():
        assert ours.get(name) == (pytest.approx(plain[key]) if key in plain else None), name
    spans = [row["span"] for row in predictions]
    best = theirs_of(golds, spans, [row["null_odds"] for row in predictions])
    for name, key in BEST.items():
        assert ours[name] == pytest.approx(best[key]), name


@pytest.mark.parametrize("tie_odds", [False, True])
def test_random_rows_have_the_scores_of_transformers(tie_odds):
    for seed in range(300):
        compared(*random_rows(seed, tie_odds=tie_odds))


def test_hard_rows_have_the_scores_of_transformers():
    generator = random.Random(1)
    for _ in range(50):
        rows = generator.sample(HARD_ROWS, k=6)
        odds = [float(generator.randint(-1, 1)) for _ in rows]
        predictions = [
            {"text": row[1], "span": row[1], "null_odds": value}
            for row, value in zip(rows, odds, strict=True)
        ]
        compared([row[0] for row in rows], predictions)
