"""Tasks with free text as answer: SQuAD, CNN/DailyMail and WMT (paper section 2.4).

To add a language pair, append a `translation` entry to `GENERATION`, the language's name to
`LANGUAGES` and a row to `task_table`.
"""

import re
from collections.abc import Callable
from functools import partial
from re import Pattern

from t5repro.tasks.baselines import copy_baseline
from t5repro.tasks.pairs import read_pairs
from t5repro.tasks.predictions import is_blank, unchanged
from t5repro.tasks.records import read_squad
from t5repro.tasks.tables import read_csv
from t5repro.tasks.task import NO_TARGET, Example, Row, Task

LANGUAGES = {"en": "English", "de": "German", "fr": "French", "ro": "Romanian"}

# The classes \W and \s of the released code's regular expressions, which TensorFlow compiles with
# RE2: only ASCII letters, digits and _ are word characters, and whitespace excludes the vertical
# tab. Its [[:punct:]] is the punctuation of ASCII, `_` included.
NOT_A_WORD_CHARACTER = re.compile(r"([^0-9A-Za-z_])")
ASCII_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
WHITESPACE = re.compile(r"[\t\n\f\r ]+")


def pad_punctuation(text: str, padded: Pattern[str] = NOT_A_WORD_CHARACTER) -> str:
    """Put spaces around characters; then merge spaces.

    A text that begins or ends with a padded character begins or ends with a space.

    Args:
        text: any text.
        padded: the characters. By default all but ASCII letters, digits and ``_``, so letters with
            an accent are padded, too; `ASCII_PUNCTUATION` since commit 9896475 of 2022-04-05.

    Source: released code, `preprocessors._pad_punctuation`.
    """
    return WHITESPACE.sub(" ", padded.sub(r" \1 ", text))


def format_squad(
    row: Row, *, padded: Pattern[str] | None = NOT_A_WORD_CHARACTER, no_answer: str = ""
) -> tuple[Example]:
    """Write question and context; the target is the row's own, or its first gold answer.

    Args:
        row: one question.
        padded: characters with spaces around them in all texts; None for none.
        no_answer: target of a question without an answer.

    Source: released code, `preprocessors.squad`; the paper's appendix D does not pad.
    """
    pad = partial(pad_punctuation, padded=padded) if padded else str
    question, context = pad(row["question"]), pad(row["context"])
    inputs = f"question: {question} context: {context}"
    if padded:
        # A padded question may end with a space, before the one of the template.
        inputs = WHITESPACE.sub(" ", inputs)
    segments = (question.strip(), context)
    if row["answers"] is None:
        return (Example(inputs, NO_TARGET, row["idx"], None, segments),)
    answers = [pad(answer) for answer in row["answers"]]
    spans = tuple(padded_span(row["context"], context, span, pad) for span in row["spans"])
    # Of MRQA's sets the target is the answer as the text has it.
    target = pad(row["target"]) if "target" in row else answers[0] if answers else no_answer
    return (Example(inputs, target, row["idx"], answers, segments, spans=spans),)


def padded_span(
    text: str, padded: str, span: tuple[int, int], pad: Callable[[str], str]
) -> tuple[int, int]:
    """Return where a part of a text is after `pad_punctuation`, without the spaces at its ends.

    Args:
        text: before.
        padded: the text after it.
        span: first character of the part, and the one after its last.
        pad: the function.
    """
    first, stop = span
    padded_part = pad(text[first:stop]).strip()
    # The part begins where the padded text before it ends, or after one space.
    position = padded.index(padded_part, len(pad(text[:first])))
    return position, position + len(padded_part)


def format_summary(row: Row) -> tuple[Example]:
    """Write an article; the target is its highlights.

    Source: released code, `preprocessors.summarize`.
    """
    highlights = row["highlights"]
    return (Example(f"summarize: {row['article']}", highlights, row["idx"], highlights),)


def format_translation(row: Row, *, prefix: str) -> tuple[Example]:
    """Write the source sentence; the target is its translation.

    Source: released code, `preprocessors.translate`.
    """
    return (Example(f"{prefix}{row['source']}", row["target"], row["idx"], row["target"]),)


def translation(name: str, *, source: str, target: str) -> Task:
    """Return the task of translating between two languages, given by their codes."""
    prefix = f"translate {LANGUAGES[source]} to {LANGUAGES[target]}: "
    return Task(
        name=name,
        read=read_pairs,
        to_examples=partial(format_translation, prefix=prefix),
        read_prediction=unchanged,
        is_invalid=is_blank,
        metrics=("bleu",),
        baseline=copy_baseline(prefix),
    )


GENERATION = (
    Task(
        name="squad",
        read=read_squad,
        to_examples=format_squad,
        read_prediction=unchanged,
        is_invalid=is_blank,
        metrics=("squad",),
        # Padding separates every colon from its word, so that a padded question cannot contain
        # this marker.
        baseline=copy_baseline(" context: "),
    ),
    Task(
        name="cnn_dailymail",
        read=partial(read_csv, columns=("id", "article", "highlights")),
        to_examples=format_summary,
        read_prediction=unchanged,
        is_invalid=is_blank,
        metrics=("rouge",),
        baseline=copy_baseline("summarize: "),
    ),
    translation("wmt_en_de", source="en", target="de"),
    translation("wmt_en_fr", source="en", target="fr"),
    translation("wmt_en_ro", source="en", target="ro"),
)
