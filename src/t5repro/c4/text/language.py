"""Detect the language of a text with langdetect's algorithm, seeded (paper section 2.2).

langdetect samples n-grams at random. With seed 0, as in the released code, its result is a
function of the text alone. langdetect-rs computes the same probabilities bit for bit.
"""

from collections.abc import Sequence
from importlib.metadata import version
from typing import NamedTuple

import langdetect_rs

from t5repro.c4.reasons import NOT_WANTED, UNCERTAIN, UNDETECTED

SEED = 0


class Detected(NamedTuple):
    """The most probable language of a text; an empty name if the text has no letters."""

    language: str
    probability: float


def detect_languages(texts: Sequence[str]) -> list[Detected]:
    """Return the most probable language of each text, independently of the other texts.

    Source: released code, ``c4_utils.detect_english``, for any language.
    """
    langdetect_rs.DetectorFactory.seed = SEED
    results = langdetect_rs.detect_langs_batch(list(texts))
    return [Detected(best[0].lang, best[0].prob) if best else Detected("", 0.0) for best in results]


def language_reason(
    detected: Detected, *, languages: frozenset[str], min_probability: float
) -> str | None:
    """Return the reason to drop a page for its language; None if it is kept.

    Args:
        detected: language of the page.
        languages: languages of the corpus.
        min_probability: minimum probability, in 0 to 1.
    """
    if not detected.language:
        return UNDETECTED
    if detected.probability < min_probability:
        return UNCERTAIN
    return None if detected.language in languages else NOT_WANTED


def detector_version() -> str:
    """Return name and version of the detector, for the manifest."""
    return f"langdetect-rs {version('langdetect-rs')}, seed {SEED}"
