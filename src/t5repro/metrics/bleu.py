"""BLEU of translations (paper section 2.4)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from t5repro.array_types import Int64

TOKENIZER, SMOOTHING = "intl", "exp"


def _scorer(*, sentences: bool = False) -> Any:
    from sacrebleu import BLEU

    # `force` only silences a warning about tokenized text; it does not change the score.
    return BLEU(tokenize=TOKENIZER, smooth_method=SMOOTHING, effective_order=sentences, force=True)


def bleu(answers: Sequence[str], predictions: Sequence[str]) -> float:
    """Return corpus BLEU with the tokenizer ``intl`` and exponential smoothing, in percent.

    sacrebleu 1.3, which the paper used, returns the same up to rounding, with one exception: if
    no word of any prediction is right, it smooths to a tiny number, and this function returns 0.0.

    Args:
        answers: one reference translation per row.
        predictions: one text per row.

    Source: released code, `metrics.bleu`.
    """
    if not predictions:
        return 0.0
    return float(_scorer().corpus_score(list(predictions), [list(answers)]).score)


def bleu_rows(answers: Sequence[str], predictions: Sequence[str]) -> Int64:
    """Return the sufficient statistics of BLEU; their sums over rows give the score.

    Args:
        answers: one reference translation per row.
        predictions: one text per row.

    Returns:
        int64 ``(rows, 10)``: words of the prediction and of the answer, then the right n-grams and
        all n-grams of the prediction, of 1 to 4 words each.
    """
    # sacrebleu warns of the score of a sentence without `effective_order`, which changes no count.
    scorer = _scorer(sentences=True)
    scores = (
        scorer.sentence_score(prediction, [answer])
        for answer, prediction in zip(answers, predictions, strict=True)
    )
    rows = [[score.sys_len, score.ref_len, *score.counts, *score.totals] for score in scores]
    return np.asarray(rows, np.int64).reshape(-1, 10)


def bleu_of_sums(sums: Int64) -> float:
    """Return the corpus BLEU of summed rows of `bleu_rows`, in percent."""
    from sacrebleu import BLEU

    predicted, expected, *counts = sums.tolist()
    score = BLEU.compute_bleu(
        correct=counts[:4],
        total=counts[4:],
        sys_len=predicted,
        ref_len=expected,
        smooth_method=SMOOTHING,
    )
    return float(score.score)


def bleu_signature() -> str:
    """Return sacrebleu's own description of the score, which `scores.json` records."""
    scorer = _scorer()
    # The signature contains the number of references, known only after a first score.
    scorer.corpus_score(["x"], [["x"]])
    return str(scorer.get_signature())
