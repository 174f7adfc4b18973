"""ROUGE of summaries (paper section 2.4)."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version

import numpy as np

from t5repro.array_types import Float64
from t5repro.randomness import stream

ROUGE_KEYS = ("rouge1", "rouge2", "rougeLsum")
BOOTSTRAP_KEYS = ("rouge1_bootstrap", "rouge2_bootstrap", "rougeLsum_bootstrap")
BOOTSTRAP_SAMPLES = 1000
BOOTSTRAP_SEED = 0

RowScores = Mapping[str, Float64]  # ROUGE key -> one percentage per row


def rouge(answers: Sequence[str], predictions: Sequence[str]) -> dict[str, float]:
    """Return each ROUGE as the mean over rows and as the median that the released code reports."""
    rows = rouge_rows(answers, predictions)
    medians = rouge_bootstrap(rows)
    bootstrap = {name: medians[key] for key, name in zip(ROUGE_KEYS, BOOTSTRAP_KEYS, strict=True)}
    return rouge_mean(rows) | bootstrap


def rouge_rows(answers: Sequence[str], predictions: Sequence[str]) -> dict[str, Float64]:
    """Return ROUGE-1, ROUGE-2 and summary-level ROUGE-L of each row, as F measures in percent.

    Source: released code, `metrics.rouge`: no stemmer, and `` . `` ends a line in both texts.
    """
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(ROUGE_KEYS))
    values = np.zeros((len(predictions), len(ROUGE_KEYS)))
    for row, (answer, prediction) in enumerate(zip(answers, predictions, strict=True)):
        scores = scorer.score(
            target=_one_sentence_per_line(answer), prediction=_one_sentence_per_line(prediction)
        )
        values[row] = [100.0 * scores[key].fmeasure for key in ROUGE_KEYS]
    return {key: values[:, column] for column, key in enumerate(ROUGE_KEYS)}


def mostly_unseen(text: str) -> bool:
    """Return whether ROUGE drops most letters of a text: rouge_score reads a to z and digits."""
    letters = [character for character in text.lower() if character.isalnum()]
    ascii_count = sum(character.isascii() for character in letters)
    return not ascii_count or 2 * ascii_count < len(letters)


def rouge_caution(answers: Sequence[str]) -> str:
    """Return what the signature says of references that ROUGE mostly does not see; else nothing."""
    unseen = sum(map(mostly_unseen, answers))
    return f"|references with letters other than a-z:{unseen} of {len(answers)}" if unseen else ""


def _one_sentence_per_line(text: str) -> str:
    # rougeLsum compares line by line. The highlights of CNN/DailyMail separate their sentences by
    # " . "; without line feeds a summary would count as one sentence.
    return text.replace(" . ", " .\n")


def rouge_mean(rows: RowScores) -> dict[str, float]:
    """Return the mean of each ROUGE over its rows."""
    return {key: float(np.mean(values)) if values.size else 0.0 for key, values in rows.items()}


def rouge_bootstrap(
    rows: RowScores, *, seed: int = BOOTSTRAP_SEED, samples: int = BOOTSTRAP_SAMPLES
) -> dict[str, float]:
    """Return the median over bootstrap samples of the mean of each ROUGE.

    The released code reports this median with unseeded draws, so that its scores differ from run
    to run; here they follow from `seed`.

    Args:
        rows: scores by row.
        seed: seed of the draws.
        samples: number of samples; each has the size of the data and is drawn with replacement.

    Source: `rouge_score.scoring.BootstrapAggregator`, its middle value.
    """
    medians: dict[str, float] = {}
    for key, values in rows.items():
        # Each score has a stream of its own, so that its median does not depend on the others.
        generator = stream(seed, "rouge", key)
        count = len(values)
        means = (
            [float(np.mean(values[generator.integers(0, count, count)])) for _ in range(samples)]
            if count
            else [0.0]
        )
        medians[key] = float(np.percentile(means, 50.0))
    return medians


def rouge_signature() -> str:
    """Return library, version and options of the ROUGE scores, which `scores.json` records."""
    return (
        f"rouge_score:{version('rouge_score')}|stemmer:no|keys:{'+'.join(ROUGE_KEYS)}"
        f"|value:mean|bootstrap:{BOOTSTRAP_SAMPLES} samples, seed {BOOTSTRAP_SEED}, median"
    )
