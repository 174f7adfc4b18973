"""Pronouns to resolve, all written one way: WSC, DPR and WNLI (paper section 2.4, appendix B).

The pronoun is marked with asterisks and the model writes whom it means::

    wsc: The fish ate the worm. *It* was tasty.   ->   The worm

WSC and WNLI ask of one candidate whether the pronoun means it; what the model writes is compared
with that candidate (`metrics.text.names_referent`) and the result with the label.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from t5repro.metrics.text import names_referent
from t5repro.tasks.glue import ACCURACY, MAJORITY, ROW_NUMBERS, is_no_label
from t5repro.tasks.lines import fault
from t5repro.tasks.pairs import read_pronoun_blocks
from t5repro.tasks.records import label_in, number_in, object_in, read_records, text_in
from t5repro.tasks.tables import Columns, parse_word, read_tsv
from t5repro.tasks.task import (
    Baseline,
    Example,
    Row,
    Scored,
    Task,
    as_it_is,
    is_blank,
    majority_of_scored,
)

PREFIX = "wsc: "
PRONOUNS = frozenset(("he", "she", "they", "it", "her", "his", "their", "them", "him"))
ARTICLES = ("a", "an", "the")
SENTENCE_MARKS = (".", ",", "?", "!")
LABEL_WORDS = {"0": 0, "1": 1}

# Spans of the release whose words are apart in their text; there is nothing to correct them to.
SPANS_APART = ("Kamenev and Zinoviev", "Kamenev, Zinoviev, and Stalin")

# Texts of the release whose span2_index is not where the pronoun stands as a word of its own:
# start of the text -> what stands there and how it reads with the pronoun blanked out.
MISPLACED_PRONOUNS = {
    "The boy continued to whip the pony , and eventually": ('for him,"', 'for X ,"'),
    "When they had eventually calmed down a bit , and had": ("to use it ,", "to use X ,"),
}


def names_it(text: str, row: Scored) -> int:
    """Return whether a prediction names the candidate of its row."""
    return names_referent(text, row["targets"])


# WSC


def wsc_rows(
    item: Mapping[str, Any], where: str, split: str, left_out: Counter[str]
) -> Iterator[Row]:
    """Yield the one row of a WSC object; only right candidates are trained on."""
    label = label_in(item, where, split, values=(False, True))
    if split == "train" and label == 0:
        left_out["wrong_candidate"] += 1
        return
    target = object_in(item, "target", where)
    text = text_in(item, "text", where)
    candidate = text_in(target, "span1_text", where)
    start = number_in(target, "span1_index", where)
    pronoun = text_in(target, "span2_text", where)
    yield {
        "inputs": PREFIX
        + _mark_pronoun(text, pronoun, number_in(target, "span2_index", where), where),
        "candidate": _as_in_text(candidate, text, start, where),
        "label": label,
        "idx": number_in(item, "idx", where),
    }


def _mark_pronoun(text: str, pronoun: str, index: int, where: str) -> str:
    """Return `text` with the word at `index` between asterisks.

    Source: released code, `preprocessors.wsc_simple`.
    """
    return _blank_out(text, pronoun, index, where).replace(" X ", f" *{pronoun}* ")


def _blank_out(text: str, pronoun: str, index: int, where: str) -> str:
    for start, (stands, reads) in MISPLACED_PRONOUNS.items():
        if text.startswith(start) and stands in text:
            return text.replace(stands, reads).rstrip(" ")
    words = text.split(" ")
    if not 0 < index < len(words) or words[index] != pronoun:
        found = words[index] if 0 <= index < len(words) else None
        raise fault(
            where,
            f"span2_index {index} is at",
            found,
            f"span2_text {pronoun!r} as a word of its own, not the first",
        )
    return " ".join([*words[:index], "X", *words[index + 1 :]]) + " " * (index == len(words) - 1)


def _as_in_text(span: str, text: str, index: int, where: str) -> str:
    """Return a candidate as its text writes it: case of the first letter, no final full stop.

    Source: TFDS, configuration ``wsc.fixed``, which the released tasks read.
    """
    if span in text or span in SPANS_APART:
        return span
    words = text.split()
    if not 0 <= index < len(words):
        raise fault(where, "span1_index is", index, f"the position of one of {len(words)} words")
    first = span[:1].lower() if words[index][0].islower() else span[:1].upper()
    fixed = (first + span[1:]).rstrip(".").replace("\n", " ")
    if not fixed or fixed not in text:
        raise fault(where, "span1_text is", span, "a phrase of the text")
    return fixed


def format_candidate(row: Row) -> tuple[Example]:
    """Write a marked text; the target is the candidate, right or wrong."""
    return (Example(row["inputs"], row["candidate"], row["idx"], row["label"]),)


# WNLI


class _Match(NamedTuple):
    score: int
    position: int
    candidate: str


def read_wnli(files: Sequence[Path], split: str, left_out: Counter[str]) -> Iterator[Row]:
    """Yield WNLI's rows as pronouns to resolve."""
    table = read_tsv(
        files,
        split,
        left_out,
        layouts=(Columns({"premise": "sentence1", "hypothesis": "sentence2"}, "label"),),
        parse_label=partial(parse_word, words=LABEL_WORDS),
        id_columns=ROW_NUMBERS,
    )
    for row in table:
        premise, candidate = resolve(row["premise"], row["hypothesis"], row["where"])
        yield {**row, "inputs": PREFIX + premise, "candidate": candidate}


def resolve(premise: str, hypothesis: str, where: str) -> tuple[str, str]:
    """Return a premise with its pronoun marked, and what the hypothesis puts in its place.

    The pronoun is the one whose neighbours, before and after, agree best with the hypothesis;
    the candidate is what the hypothesis has between them. It is empty where the hypothesis says
    it in other words (one row of the validation set; no prediction is right there).

    Args:
        premise: a text with a pronoun.
        hypothesis: a clause of it with the pronoun replaced.
        where: place of the row, for errors.

    Raises:
        TaskDataError: there is no pronoun, or the candidate's words are apart.

    Source: paper appendix B; released code, `preprocessors.wnli_simple`.
    """
    words, clause = _bare_words(premise), _bare_words(hypothesis)
    matches = [_match(words, clause, i) for i, word in enumerate(words) if word in PRONOUNS]
    if not matches:
        raise fault(where, "no pronoun in", premise, f"one of {sorted(PRONOUNS)}")
    best = max(matches, key=lambda match: match.score)
    return _highlight(premise, best.position), _restore(best.candidate, hypothesis, where)


def _bare_words(text: str) -> list[str]:
    """Return lower-case words without one final mark each."""
    words = text.strip().lower().split(" ")
    return [bare for word in words if (bare := _without_mark(word))]


def _without_mark(word: str) -> str:
    return word[:-1] if word.endswith(SENTENCE_MARKS) else word


def _match(words: list[str], clause: list[str], position: int) -> _Match:
    """Compare the neighbours of the pronoun at `position` with the clause."""
    before, after = words[:position], words[position + 1 :]
    backwards = _agreeing(before[::-1], clause[::-1])
    left = before[len(before) - backwards :]
    right = after[: _agreeing(after, clause)]
    score = len(left) + len(right)
    return _Match(score, position, _between(left, right, " ".join(clause)) if score else "")


def _agreeing(words: list[str], clause: list[str]) -> int:
    """Return how many of the first `words` are, in a row, part of the clause."""
    text = " ".join(clause)
    for count in range(len(words)):
        if " ".join(words[: count + 1]) not in text:
            return count
    return len(words)


def _between(left: list[str], right: list[str], clause: str) -> str:
    """Return what stands between `left` and `right` in the clause, or at one end of it."""
    before, after = [re.escape(word) for word in left], [re.escape(word) for word in right]
    for pattern in (
        " ".join([*before, "(.+)", *after]),
        " ".join(["^(.+)", *after]),
        " ".join([*before, "(.+)$"]),
    ):
        if found := re.search(pattern, clause):
            return found[1]
    return ""


def _restore(candidate: str, hypothesis: str, where: str) -> str:
    """Return a candidate as the hypothesis writes it, from its last article, not possessive."""
    words = candidate.split(" ")
    start = max((words.index(article) for article in ARTICLES if article in words), default=0)
    pattern = " ".join(re.escape(word) + r"[.,?!]?" for word in words[start:])
    found = re.search(pattern, hypothesis, re.IGNORECASE)
    if found is None:
        raise fault(where, f"no candidate {candidate!r} in", hypothesis, "words between one space")
    phrase = _without_mark(found[0])
    return phrase.removesuffix("'") if phrase.endswith("'") else phrase.removesuffix("'s")


def _highlight(premise: str, position: int) -> str:
    """Put asterisks around the word at `position` and set a final mark apart."""
    words = premise.split(" ")
    word = words[position]
    bare = _without_mark(word)
    words[position] = f"*{bare}*" if bare == word else f"*{bare}* {word[-1]}"
    return " ".join(words)


# DPR


def format_dpr(row: Row) -> tuple[Example]:
    """Mark the first occurrence of the pronoun; the target is the right candidate.

    Only a pronoun between a space and a space, full stop or comma is marked.

    Source: released code, `preprocessors.definite_pronoun_resolution_simple`.
    """
    pronoun = re.compile(rf" ({re.escape(row['pronoun'])})( |\.|,)")
    inputs = PREFIX + pronoun.sub(r" *\1*\2", row["sentence"], count=1)
    targets = row["candidates"][row["label"]]
    return (Example(inputs, targets, row["idx"], targets),)


WINOGRAD = (
    Task(
        name="glue_wnli",
        read=read_wnli,
        to_examples=format_candidate,
        read_prediction=names_it,
        is_invalid=is_no_label,
        metrics=(ACCURACY,),
        baseline_of=Baseline("majority", majority_of_scored),
        train_rows=0,
    ),
    Task(
        name="super_glue_wsc",
        read=partial(read_records, to_rows=wsc_rows),
        to_examples=format_candidate,
        read_prediction=names_it,
        is_invalid=is_no_label,
        metrics=(ACCURACY,),
        baseline_of=Baseline("majority", majority_of_scored),
        train_rows=259,
    ),
    Task(
        name="dpr",
        read=read_pronoun_blocks,
        to_examples=format_dpr,
        read_prediction=as_it_is,
        is_invalid=is_blank,
        metrics=(ACCURACY,),
        baseline_of=MAJORITY,
        train_rows=1_322,
    ),
)
