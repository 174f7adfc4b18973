"""Rows of SQuAD 2.0 for tests of its scores: hard ones and random ones."""

import random

from random_texts import random_text, similar_text

# Gold answers, text of the prediction, exact match and F1 as the official script has them.
HARD_ROWS = [
    ([], "", 1, 1),
    ([], "the", 1, 1),  # an article is no text
    ([], "the end", 0, 0),
    (["the end"], "", 0, 0),
    (["the"], "a", 1, 1),  # gold answers without words count as none
    (["the", "End."], "the", 0, 0),
    (["…"], "...", 0, 0),  # only ASCII punctuation is removed
    (["“Ann”", "Ann"], "ann", 1, 1),
    (["the old mill", "river"], "an OLD, mill by the river", 0, 2 * 0.5 / (0.5 + 1)),
    (["a.an"], "aan", 1, 1),
]


def random_rows(seed, *, tie_odds):
    """Return gold answers and predictions with odds; odds of few values are often equal."""
    generator = random.Random(seed)
    golds, predictions = [], []
    for _ in range(generator.randint(1, 9)):
        count = generator.choice([0, 0, 1, 3])
        golds.append([random_text(generator, 4) for _ in range(count)])
        source = generator.choice(golds[-1] or [random_text(generator, 4)])
        span = generator.choice(["", similar_text(generator, source), source])
        odds = generator.randint(-2, 2) if tie_odds else generator.uniform(-9, 9)
        text = span if odds <= 0 else ""
        predictions.append({"text": text, "span": span, "null_odds": float(odds)})
    return golds, predictions
