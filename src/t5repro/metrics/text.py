"""Scores of tasks whose answer is text: SQuAD, ReCoRD, WSC, translation, summaries.

Every score is a percentage. No rows give 0.0. Texts are compared as the released code compares
them; `bleu_signature` and `rouge_signature` say by which library and options.
"""

import collections
import re
import string
from collections.abc import Hashable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from t5repro.metrics.classification import INVALID
from t5repro.randomness import stream

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)

ROUGE_KEYS = ("rouge1", "rouge2", "rougeLsum")
BOOTSTRAP_SAMPLES = 1000
BOOTSTRAP_SEED = 0

# Words that do not decide whom a noun phrase names.
DETERMINERS = frozenset(
    (
        *("a", "an", "few", "her", "his", "each", "every", "many", "much", "my", "our"),
        *("some", "that", "the", "their", "these", "this", "those", "which", "whose", "your"),
    )
)


# SQuAD and ReCoRD


def normalize_answer(text: str) -> str:
    """Return `text` without case, ASCII punctuation, articles and extra whitespace.

    Source: released code, `qa_utils.normalize_squad`; the SQuAD v1.1 evaluation agrees.
    """
    bare = text.lower().translate(PUNCTUATION)
    return " ".join(ARTICLES.sub(" ", bare).split())


def squad(answers: Sequence[Sequence[str]], predictions: Sequence[str]) -> dict[str, float]:
    """Return exact match and F1 over bags of words, each the best over a row's gold answers.

    Two texts without a common word have F1 0, also when both are empty after normalising
    (their exact match is then 100).

    Args:
        answers: gold answers of each row; at least one.
        predictions: one text per row.

    Source: released code, `metrics.squad`.
    """
    _check_rows(answers, predictions)
    exact = overlap = 0.0
    for golds, prediction in zip(answers, predictions, strict=True):
        said = normalize_answer(prediction)
        wanted = [normalize_answer(gold) for gold in golds]
        exact += max(said == gold for gold in wanted)
        overlap += max(_bag_f1(gold.split(), said.split()) for gold in wanted)
    rows = max(len(predictions), 1)
    return {"em": 100.0 * exact / rows, "f1": 100.0 * overlap / rows}


def _bag_f1(gold: list[str], said: list[str]) -> float:
    common = sum((collections.Counter(gold) & collections.Counter(said)).values())
    if not common:
        return 0.0
    precision, recall = common / len(said), common / len(gold)
    return 2 * precision * recall / (precision + recall)


def record(
    answers: Sequence[Sequence[str]], predictions: Sequence[str], groups: Sequence[Hashable]
) -> dict[str, float]:
    """Return SQuAD's scores over the first row of each group.

    ReCoRD has one row per gold answer, all with the same input; only one may count.

    Args:
        answers: all gold answers of the row's query.
        predictions: one text per row.
        groups: passage and query of each row.

    Source: released code, `metrics.deduplicate_metric` of `metrics.squad`.
    """
    _check_rows(answers, predictions)
    _check_rows(groups, predictions)
    first: dict[Hashable, int] = {}
    for row, group in enumerate(groups):
        first.setdefault(group, row)
    return squad(
        [answers[row] for row in first.values()], [predictions[row] for row in first.values()]
    )


# Winograd schemas


def names_referent(prediction: str, referent: str) -> int:
    """Return 1 if `prediction` names `referent`, 0 if it names another, `INVALID` if nothing.

    Case and determiners do not count. One of the two may say more than the other (``"fuzzy
    bunny"`` for ``"bunny"``), but not when only one has an apostrophe (``"Bob's hat"`` is not
    ``"Bob"``).

    Source: released code, `postprocessors.wsc_simple`.
    """
    said, wanted = _bare_phrase(prediction), _bare_phrase(referent)
    if not said:
        return INVALID
    if ("'" in said) != ("'" in wanted):
        return 0
    said_words, wanted_words = set(said.split(" ")), set(wanted.split(" "))
    return int(said_words <= wanted_words or wanted_words <= said_words)


def _bare_phrase(text: str) -> str:
    words = text.strip().lower().split(" ")
    return " ".join(word for word in words if word not in DETERMINERS)


# Translation


def _bleu_scorer() -> Any:
    from sacrebleu import BLEU

    # `force` only silences a warning about tokenized text; it does not change the score.
    return BLEU(tokenize="intl", smooth_method="exp", effective_order=False, force=True)


def bleu(references: Sequence[Sequence[str]], predictions: Sequence[str]) -> float:
    """Return corpus BLEU with the tokenizer ``intl`` and exponential smoothing.

    sacrebleu 1.3, which the paper used, returns the same to rounding, but for a corpus in which
    no word of any prediction is right: there it smooths on to a tiny number and this is 0.0.

    Args:
        references: reference streams; each has one text per row.
        predictions: one text per row.

    Source: released code, `metrics.bleu`.
    """
    for texts in references:
        _check_rows(texts, predictions)
    if not predictions:
        return 0.0
    return float(
        _bleu_scorer().corpus_score(list(predictions), [list(s) for s in references]).score
    )


def bleu_signature(streams: int = 1) -> str:
    """Return sacrebleu's own description of the score, for the record."""
    scorer = _bleu_scorer()
    scorer.corpus_score(["x"], [["x"]] * streams)
    return str(scorer.get_signature())


# Summaries


def rouge_rows(
    answers: Sequence[str], predictions: Sequence[str]
) -> dict[str, npt.NDArray[np.float64]]:
    """Return ROUGE-1, ROUGE-2 and summary-level ROUGE-L of each row, as F measures in percent.

    Source: released code, `metrics.rouge`: no stemmer, and `` . `` ends a line in both texts.
    """
    _check_rows(answers, predictions)
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(ROUGE_KEYS))
    values = np.zeros((len(predictions), len(ROUGE_KEYS)))
    for row, (answer, prediction) in enumerate(zip(answers, predictions, strict=True)):
        scores = scorer.score(target=_one_line_each(answer), prediction=_one_line_each(prediction))
        values[row] = [100.0 * scores[key].fmeasure for key in ROUGE_KEYS]
    return {key: values[:, column] for column, key in enumerate(ROUGE_KEYS)}


def _one_line_each(text: str) -> str:
    return text.replace(" . ", " .\n")


def rouge_mean(rows: dict[str, npt.NDArray[np.float64]]) -> dict[str, float]:
    """Return the mean of each ROUGE over its rows."""
    return {key: float(np.mean(values)) if values.size else 0.0 for key, values in rows.items()}


def rouge_bootstrap(
    rows: dict[str, npt.NDArray[np.float64]],
    *,
    seed: int = BOOTSTRAP_SEED,
    samples: int = BOOTSTRAP_SAMPLES,
) -> dict[str, float]:
    """Return the median over bootstrap samples of the mean of each ROUGE.

    This is what the released code reports; there the draws differ from run to run, here they
    follow from `seed`.

    Args:
        rows: scores by row.
        seed: seed of the draws.
        samples: how often the rows are drawn, with replacement.

    Source: `rouge_score.scoring.BootstrapAggregator`, its middle value.
    """
    middle: dict[str, float] = {}
    for key, values in rows.items():
        draw = stream(seed, "rouge", key)
        count = len(values)
        means = (
            [float(np.mean(values[draw.integers(0, count, count)])) for _ in range(samples)]
            if count
            else [0.0]
        )
        middle[key] = float(np.percentile(means, 50.0))
    return middle


def rouge_signature() -> str:
    """Return what the ROUGE scores were computed with, for the record."""
    return (
        f"rouge_score:{version('rouge_score')}|stemmer:no|keys:{'+'.join(ROUGE_KEYS)}"
        f"|value:mean|bootstrap:{BOOTSTRAP_SAMPLES} samples, seed {BOOTSTRAP_SEED}, median"
    )


def _check_rows(answers: Sequence[Any], predictions: Sequence[Any]) -> None:
    if len(answers) != len(predictions):
        raise ValueError(
            f"{len(answers)} answers or groups and {len(predictions)} predictions; "
            "a metric needs one of each for every row"
        )
