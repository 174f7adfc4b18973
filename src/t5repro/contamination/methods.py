"""The methods: published rules for when an evaluated row is dirty, as values.

A method reads measures of a field and decides; the search knows none of them except by the length
of the n-grams it starts from. To add a method that reads an existing measure: a row of `METHODS`.
`docs/audit_a_score.md` has the departures from the
sources.
"""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["words", "ids"]
Measure = Literal["longest", "page_share", "share", "aligned_share", "covered_share"]
NGRAM_WORDS = 8  # of the shares that PaLM counts
FEWEST_WORDS = 4  # of a field that is compared as a whole
LLAMA_SEED = 10  # ids at the start of a run without a mismatch
LLAMA_MISMATCHES = 4


@dataclass(frozen=True)
class Method:
    """A rule for a field.

    Attributes:
        name: its name in settings and on pages.
        rule: the rule in words.
        source: where it was published.
        measure: the measure that it reads (`passages.FieldPassages`).
        dirty: from this value on a field is dirty: a number of words for ``longest``, else a share.
        unit: words, which no vocabulary changes, or ids of the experiment's vocabulary.
        seed: units of an n-gram that every passage begins from; fields with fewer are unchecked.
        clean: below this value a field is clean; what lies between is neither.
        percentile: whether `dirty` is the most words of an n-gram and `seed` the fewest: the fifth
            percentile of the lengths of a field in its task lies between them.
        whole: whether all words of a field with `FEWEST_WORDS` or more make it dirty.
    """

    name: str
    rule: str
    source: str
    measure: Measure
    dirty: float
    unit: Unit = "words"
    seed: int = NGRAM_WORDS
    clean: float | None = None
    percentile: bool = False
    whole: bool = False


METHODS = (
    Method(
        "longest",
        rule="a run of 8 words, or all words of a field of 4 or more, in one page",
        source="ConTAM (Singh et al. 2024): the longest match says more than the union",
        measure="longest",
        dirty=8,
        whole=True,
    ),
    Method(
        "gpt3",
        rule="an n-gram of words in any page; n is the fifth percentile of the lengths of the "
        "field in its task, from 8 to 13",
        source="Brown et al. 2020, appendix C",
        measure="longest",
        dirty=13,
        percentile=True,
    ),
    Method(
        "palm",
        rule="70 % of the 8-grams of words in one page",
        source="Chowdhery et al. 2022, section 8, within one page",
        measure="page_share",
        dirty=0.7,
    ),
    Method(
        "palm_any",
        rule="70 % of the 8-grams of words, each in any page",
        source="Chowdhery et al. 2022, section 8",
        measure="share",
        dirty=0.7,
    ),
    Method(
        "llama2",
        rule="80 % of the ids in runs of 11 or more, with at most 4 mismatches after the first 10 "
        "and none at the end; clean below 20 %",
        source="Touvron et al. 2023, appendix A.6",
        measure="covered_share",
        dirty=0.8,
        unit="ids",
        seed=LLAMA_SEED,
        clean=0.2,
    ),
    Method(
        "exact",
        rule="all words of a field of 4 or more, in sequence in one page",
        source="Dodge et al. 2021, section 4",
        measure="longest",
        dirty=float("inf"),
        whole=True,
    ),
    Method(
        "near",
        rule="80 % of the words of a field at their places in one page, from a run of 5 words on",
        source="substitutions only; no publication",
        measure="aligned_share",
        dirty=0.8,
        seed=5,
    ),
)
BY_NAME = {method.name: method for method in METHODS}
