"""Detect the language of a text with langdetect's algorithm, seeded (paper section 2.2).

langdetect samples n-grams at random. With seed 0, as in the released code, its result depends on
the text only. langdetect-rs computes the same probabilities bit for bit, some hundred times as
fast. It has had one release; where it is not installed, langdetect itself answers.
"""

from collections.abc import Sequence
from importlib.metadata import version
from typing import NamedTuple

from t5repro.c4.reasons import NOT_WANTED, UNCERTAIN, UNDETECTED

try:
    import langdetect_rs
except ImportError:
    langdetect_rs = None

SEED = 0


class Detected(NamedTuple):
    """The most probable language of a text; an empty name if the text has no letters."""

    language: str
    probability: float


def detect_languages(texts: Sequence[str]) -> list[Detected]:
    """Return the most probable language of each text, independently of the other texts.

    Source: released code, ``c4_utils.detect_english``, for any language.
    """
    if langdetect_rs is None:
        return _detect_slowly(texts)
    langdetect_rs.DetectorFactory.seed = SEED
    results = langdetect_rs.detect_langs_batch(list(texts))
    return [Detected(best[0].lang, best[0].prob) if best else Detected("", 0.0) for best in results]


def _detect_slowly(texts: Sequence[str]) -> list[Detected]:
    import langdetect  # here: a tenth of a second, for nothing where langdetect-rs is

    langdetect.DetectorFactory.seed = SEED
    results = []
    for text in texts:
        try:
            best = langdetect.detect_langs(text)[0]
            results.append(Detected(best.lang, best.prob))
        except langdetect.LangDetectException:  # no letters
            results.append(Detected("", 0.0))
    return results


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
    name = "langdetect" if langdetect_rs is None else "langdetect-rs"
    return f"{name} {version(name)}, seed {SEED}"
