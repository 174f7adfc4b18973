"""BLEU of translations (paper section 2.4)."""

from collections.abc import Sequence
from typing import Any


def _scorer() -> Any:
    from sacrebleu import BLEU

    # `force` only silences a warning about tokenized text; it does not change the score.
    return BLEU(tokenize="intl", smooth_method="exp", effective_order=False, force=True)


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


def bleu_signature() -> str:
    """Return sacrebleu's own description of the score, which `scores.json` records."""
    scorer = _scorer()
    # The signature contains the number of references, known only after a first score.
    scorer.corpus_score(["x"], [["x"]])
    return str(scorer.get_signature())
