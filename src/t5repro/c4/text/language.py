"""Name the language of a page with langdetect's algorithm, seeded (paper section 2.2).

langdetect draws n-grams at random; with the seed 0 that the released code sets, its answer is a
function of the text alone. langdetect-rs computes the same probabilities to the last bit.
"""

from collections.abc import Sequence
from importlib.metadata import version
from typing import NamedTuple

import langdetect_rs

SEED = 0

UNDETECTED = "language_undetected"
UNCERTAIN = "language_uncertain"
NOT_WANTED = "language_not_wanted"


class Detected(NamedTuple):
    """The most probable language of a text; an empty name if it has no letters to judge."""

    language: str
    probability: float


def detect_languages(texts: Sequence[str]) -> list[Detected]:
    """Return the most probable language of each text, independent of the others.

    Source: released code, ``c4_utils.detect_english``, for any language.
    """
    langdetect_rs.DetectorFactory.seed = SEED
    results = langdetect_rs.detect_langs_batch(list(texts))
    return [Detected(best[0].lang, best[0].prob) if best else Detected("", 0.0) for best in results]


def language_fault(
    detected: Detected, *, wanted: frozenset[str], min_probability: float
) -> str | None:
    """Return why a page of this language is dropped; None if it stays."""
    if not detected.language:
        return UNDETECTED
    if detected.probability < min_probability:
        return UNCERTAIN
    return None if detected.language in wanted else NOT_WANTED


def detector_version() -> str:
    """Return name and version of the detector, for the manifest."""
    return f"langdetect-rs {version('langdetect-rs')}, seed {SEED}"
