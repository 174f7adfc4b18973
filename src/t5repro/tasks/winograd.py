"""Pronoun resolution in one format: WSC, DPR and WNLI (paper section 2.4 and appendix B).

The pronoun is marked with asterisks and the model writes its referent::

    wsc: The fish ate the worm. *It* was tasty.   ->   The worm

WSC and WNLI ask whether the pronoun refers to a given candidate: the prediction is compared with
that candidate (`predictions.names_referent`), and the result with the label.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from t5repro.tasks.baselines import MAJORITY, MAJORITY_OF_SCORED
from t5repro.tasks.glue import ROW_NUMBERS, classification
from t5repro.tasks.lines import invalid_data
from t5repro.tasks.pairs import read_pronoun_blocks
from t5repro.tasks.predictions import is_blank, is_invalid_label, names_candidate, unchanged
from t5repro.tasks.records import label_in, number_in, object_in, read_records, text_in
from t5repro.tasks.tables import Columns, parse_label_word, read_tsv
from t5repro.tasks.task import Example, Row, Task

PREFIX = "wsc: "
PRONOUNS = frozenset(("he", "she", "they", "it", "her", "his", "their", "them", "him"))
ARTICLES = ("a", "an", "the")
SENTENCE_MARKS = (".", ",", "?", "!")
LABEL_WORDS = {"0": 0, "1": 1}

# Candidates of the release whose words are not adjacent in their text, so that no phrase of it can
# replace them.
NONADJACENT_SPANS = ("Kamenev and Zinoviev", "Kamenev, Zinoviev, and Stalin")

# Texts of the release whose span2_index does not point at the pronoun as a word of its own: start
# of the text -> the pronoun's passage, and that passage with X in place of the pronoun.
# Source: released code, `preprocessors.wsc_simple`.
MISPLACED_PRONOUNS = {
    "The boy continued to whip the pony , and eventually": ('for him,"', 'for X ,"'),
    "When they had eventually calmed down a bit , and had": ("to use it ,", "to use X ,"),
}


# WSC


def wsc_rows(
    record: Mapping[str, Any],
    location: str,
    split: str,
    excluded: Counter[str],
    *,
    wrong_candidates: bool = False,
) -> Iterator[Row]:
    """Yield the one row of a WSC object.

    Args:
        record: the object.
        location: its file and line.
        split: only the rows of ``test`` may lack a label.
        excluded: counts training rows with a wrong candidate.
        wrong_candidates: whether training rows may have a wrong candidate.
    """
    label = label_in(record, location, split, values=(False, True))
    # A wrong candidate says only which noun the pronoun does not refer to, so it gives no target.
    if split == "train" and label == 0 and not wrong_candidates:
        excluded["wrong_candidate"] += 1
        return
    target = object_in(record, "target", location)
    text = text_in(record, "text", location)
    candidate = text_in(target, "span1_text", location)
    first_word = number_in(target, "span1_index", location)
    pronoun = text_in(target, "span2_text", location)
    yield {
        "text": _mark_pronoun(text, pronoun, number_in(target, "span2_index", location), location),
        "candidate": _as_in_text(candidate, text, first_word, location),
        "label": label,
        "idx": number_in(record, "idx", location),
    }


def _mark_pronoun(text: str, pronoun: str, index: int, location: str) -> str:
    """Return `text` with the word at `index` between asterisks.

    Source: released code, `preprocessors.wsc_simple`.
    """
    # The released code replaces the pronoun by X first and then every X between spaces, so a
    # pronoun at the end of the text needs a space after it to be marked.
    return _blank_out(text, pronoun, index, location).replace(" X ", f" *{pronoun}* ")


def _blank_out(text: str, pronoun: str, index: int, location: str) -> str:
    """Return `text` with the word at `index` replaced by X."""
    for opening, (passage, blanked) in MISPLACED_PRONOUNS.items():
        if text.startswith(opening) and passage in text:
            return text.replace(passage, blanked).rstrip(" ")
    text_words = text.split(" ")
    if not 0 < index < len(text_words) or text_words[index] != pronoun:
        word = text_words[index] if 0 <= index < len(text_words) else None
        raise invalid_data(
            location,
            f"span2_index {index} is at",
            word,
            f"span2_text {pronoun!r} as a word of its own, not the first",
        )
    return " ".join([*text_words[:index], "X", *text_words[index + 1 :]]) + " " * (
        index == len(text_words) - 1
    )


def _as_in_text(span: str, text: str, index: int, location: str) -> str:
    """Return a candidate as its text spells it: case of the first letter, no final full stop.

    Source: TFDS, configuration ``wsc.fixed``, which the released tasks read.
    """
    if span in text or span in NONADJACENT_SPANS:
        return span
    text_words = text.split()
    if not 0 <= index < len(text_words):
        raise invalid_data(
            location, "span1_index is", index, f"the position of one of {len(text_words)} words"
        )
    first_letter = span[:1].lower() if text_words[index][0].islower() else span[:1].upper()
    phrase = (first_letter + span[1:]).rstrip(".").replace("\n", " ")
    if not phrase or phrase not in text:
        raise invalid_data(location, "span1_text is", span, "a phrase of the text")
    return phrase


def format_candidate(row: Row) -> tuple[Example]:
    """Write a marked text; the target is the candidate, correct or not."""
    return (Example(PREFIX + row["text"], row["candidate"], row["idx"], row["label"]),)


# WNLI


class _Match(NamedTuple):
    score: int
    position: int
    candidate: str


def read_wnli(files: Sequence[Path], split: str, excluded: Counter[str]) -> Iterator[Row]:
    """Yield WNLI's rows as pronouns to resolve."""
    table = read_tsv(
        files,
        split,
        excluded,
        layouts=(Columns({"premise": "sentence1", "hypothesis": "sentence2"}, "label"),),
        parse_label=partial(parse_label_word, labels=LABEL_WORDS),
        id_columns=ROW_NUMBERS,
    )
    for row in table:
        premise, candidate = resolve(row["premise"], row["hypothesis"], row["location"])
        yield {**row, "text": premise, "candidate": candidate}


def resolve(premise: str, hypothesis: str, location: str) -> tuple[str, str]:
    """Return a premise with its pronoun marked, and the phrase that replaces it in the hypothesis.

    Of several pronouns, the one with the most neighbouring words in the hypothesis is chosen; the
    candidate is the text of the hypothesis between those neighbours. It is empty if the hypothesis
    paraphrases the premise (one row of the validation set; every prediction is wrong there).

    Args:
        premise: a text with a pronoun.
        hypothesis: a clause of it with the pronoun replaced.
        location: file and line of the row.

    Raises:
        TaskDataError: the premise has no pronoun, or the words of the candidate are not adjacent.

    Source: paper appendix B; released code, `preprocessors.wnli_simple`.
    """
    # Punctuation differs between premise and hypothesis, so neighbours are compared without it; the
    # returned texts are cut from the originals.
    premise_words, clause = _bare_words(premise), _bare_words(hypothesis)
    matches = [
        _match(premise_words, clause, position)
        for position, word in enumerate(premise_words)
        if word in PRONOUNS
    ]
    if not matches:
        raise invalid_data(location, "no pronoun in", premise, f"one of {sorted(PRONOUNS)}")
    best = max(matches, key=lambda match: match.score)
    return _highlight(premise, best.position), _restore(best.candidate, hypothesis, location)


def _bare_words(text: str) -> list[str]:
    """Return the lower-case words of a text without their final punctuation mark."""
    text_words = text.strip().lower().split(" ")
    return [bare for word in text_words if (bare := _without_mark(word))]


def _without_mark(word: str) -> str:
    return word[:-1] if word.endswith(SENTENCE_MARKS) else word


def _match(premise_words: list[str], clause: list[str], position: int) -> _Match:
    """Compare the neighbours of the pronoun at `position` with the clause."""
    previous_words, following_words = premise_words[:position], premise_words[position + 1 :]
    # The words before the pronoun are compared backwards: the nearest ones must agree.
    left_count = _common_prefix(previous_words[::-1], clause[::-1])
    left_neighbours = previous_words[len(previous_words) - left_count :]
    right_neighbours = following_words[: _common_prefix(following_words, clause)]
    score = len(left_neighbours) + len(right_neighbours)
    return _Match(
        score,
        position,
        _between(left_neighbours, right_neighbours, " ".join(clause)) if score else "",
    )


def _common_prefix(neighbours: list[str], clause: list[str]) -> int:
    """Return the length of the longest prefix of `neighbours` that the clause contains."""
    text = " ".join(clause)
    for count in range(len(neighbours)):
        # A substring test, as in the released code: "he" is found in "the", too.
        if " ".join(neighbours[: count + 1]) not in text:
            return count
    return len(neighbours)


def _between(left_words: list[str], right_words: list[str], clause: str) -> str:
    """Return the text between `left_words` and `right_words` in the clause, or at one end of it."""
    left_pattern, right_pattern = (
        [re.escape(word) for word in left_words],
        [re.escape(word) for word in right_words],
    )
    # Both neighbours; else the candidate is the start of the clause, else its end.
    for pattern in (
        " ".join([*left_pattern, "(.+)", *right_pattern]),
        " ".join(["^(.+)", *right_pattern]),
        " ".join([*left_pattern, "(.+)$"]),
    ):
        if match := re.search(pattern, clause):
            return match[1]
    return ""


def _restore(candidate: str, hypothesis: str, location: str) -> str:
    """Return a candidate as the hypothesis spells it, from its last article, not possessive."""
    candidate_words = candidate.split(" ")
    # A candidate cut between neighbours may begin with words of the clause, such as "because the
    # dog"; the noun phrase begins at an article.
    first_word = max(
        (candidate_words.index(article) for article in ARTICLES if article in candidate_words),
        default=0,
    )
    pattern = " ".join(re.escape(word) + r"[.,?!]?" for word in candidate_words[first_word:])
    match = re.search(pattern, hypothesis, re.IGNORECASE)
    if match is None:
        raise invalid_data(
            location, f"no candidate {candidate!r} in", hypothesis, "words separated by one space"
        )
    phrase = _without_mark(match[0])
    return phrase.removesuffix("'") if phrase.endswith("'") else phrase.removesuffix("'s")


def _highlight(premise: str, position: int) -> str:
    """Put asterisks around the word at `position`, and a space before its final mark."""
    premise_words = premise.split(" ")
    word = premise_words[position]
    bare = _without_mark(word)
    premise_words[position] = f"*{bare}*" if bare == word else f"*{bare}* {word[-1]}"
    return " ".join(premise_words)


# Labels

_READ_WNLI_PAIRS = partial(
    read_tsv,
    layouts=(Columns({"sentence1": "sentence1", "sentence2": "sentence2"}, "label"),),
    parse_label=partial(parse_label_word, labels=LABEL_WORDS),
    id_columns=ROW_NUMBERS,
)

# WNLI and WSC as classifications of two texts (`tasks.text.winograd`): WNLI with its files' fields,
# WSC with the marked text and the candidate.
AS_LABELS = {
    "glue_wnli": classification(
        "glue_wnli",
        read=_READ_WNLI_PAIRS,
        prefix="wnli",
        fields=("sentence1", "sentence2"),
        labels=("not_entailment", "entailment"),
        metrics=("accuracy",),
    ),
    "super_glue_wsc": classification(
        "super_glue_wsc",
        read=partial(read_records, to_rows=partial(wsc_rows, wrong_candidates=True)),
        prefix="wsc",
        fields=("text", "candidate"),
        labels=("False", "True"),
        metrics=("accuracy",),
    ),
}


# DPR


def format_dpr(row: Row) -> tuple[Example]:
    """Mark the first occurrence of the pronoun; the target is the correct candidate.

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
        read_prediction=names_candidate,
        is_invalid=is_invalid_label,
        metrics=("accuracy",),
        baseline=MAJORITY_OF_SCORED,
        evaluation_only=True,
    ),
    Task(
        name="super_glue_wsc",
        read=partial(read_records, to_rows=wsc_rows),
        to_examples=format_candidate,
        read_prediction=names_candidate,
        is_invalid=is_invalid_label,
        metrics=("accuracy",),
        baseline=MAJORITY_OF_SCORED,
    ),
    Task(
        name="dpr",
        read=read_pronoun_blocks,
        to_examples=format_dpr,
        read_prediction=unchanged,
        is_invalid=is_blank,
        metrics=("accuracy",),
        baseline=MAJORITY,
    ),
)
