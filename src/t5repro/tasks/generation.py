"""Tasks whose answer is free text: SQuAD, CNN/DailyMail and WMT (paper section 2.4).

To add a language pair, append a `translation` entry to `GENERATION` and the language's name to
`LANGUAGES`.
"""

import re
from functools import partial
from typing import Any

from t5repro.metrics.text import (
    ROUGE_KEYS,
    bleu,
    bleu_signature,
    rouge_bootstrap,
    rouge_mean,
    rouge_rows,
    rouge_signature,
    squad,
)
from t5repro.tasks.pairs import read_pairs
from t5repro.tasks.records import read_squad
from t5repro.tasks.tables import read_csv
from t5repro.tasks.task import (
    NO_TARGET,
    Baseline,
    Example,
    Metric,
    Row,
    Task,
    as_it_is,
    copy_after,
    is_blank,
    metric,
)

LANGUAGES = {"en": "English", "de": "German", "fr": "French", "ro": "Romanian"}

# What the released code's regular expression engine means by these classes: only ASCII letters,
# digits and _ are word characters, and whitespace does not include the vertical tab.
NOT_A_WORD_CHARACTER = re.compile(r"([^0-9A-Za-z_])")
WHITESPACE = re.compile(r"[\t\n\f\r ]+")


def pad_punctuation(text: str) -> str:
    """Put spaces around every character but ASCII letters, digits and ``_``; then join spaces.

    Letters with an accent are set apart, too, and a text that begins or ends with such a
    character begins or ends with a space.

    Source: released code, `preprocessors._pad_punctuation`.
    """
    return WHITESPACE.sub(" ", NOT_A_WORD_CHARACTER.sub(r" \1 ", text))


def format_squad(row: Row, *, padded: bool = True) -> tuple[Example]:
    """Write question and context; the target is the first gold answer.

    Args:
        row: one question.
        padded: put spaces around punctuation in all texts.

    Source: released code, `preprocessors.squad`; the paper's appendix D leaves the text alone.
    """
    pad = pad_punctuation if padded else str
    inputs = f"question: {pad(row['question'])} context: {pad(row['context'])}"
    if padded:
        inputs = WHITESPACE.sub(" ", inputs)
    if row["answers"] is None:
        return (Example(inputs, NO_TARGET, row["idx"], None),)
    answers = [pad(answer) for answer in row["answers"]]
    return (Example(inputs, answers[0], row["idx"], answers),)


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
    """Make the task of translating between two languages, given by their codes."""
    prefix = f"translate {LANGUAGES[source]} to {LANGUAGES[target]}: "
    return Task(
        name=name,
        read=read_pairs,
        to_examples=partial(format_translation, prefix=prefix),
        read_prediction=as_it_is,
        is_invalid=is_blank,
        metrics=(metric("bleu", bleu_of_one_reference),),
        baseline_of=Baseline("copy", partial(copy_after, marker=prefix)),
        train_rows=None,
        signature=bleu_signature,
    )


def bleu_of_one_reference(answers: list[Any], found: list[Any]) -> float:
    """Return BLEU with one reference per row."""
    return bleu([answers], found)


def rouge_scores(answers: list[Any], found: list[Any]) -> dict[str, float]:
    """Return each ROUGE as the mean over rows, and as the released code's bootstrap median."""
    rows = rouge_rows(answers, found)
    resampled = rouge_bootstrap(rows)
    return rouge_mean(rows) | {f"{key}_bootstrap": resampled[key] for key in ROUGE_KEYS}


ROUGE = Metric((*ROUGE_KEYS, *(f"{key}_bootstrap" for key in ROUGE_KEYS)), rouge_scores)

GENERATION = (
    Task(
        name="squad",
        read=read_squad,
        to_examples=format_squad,
        read_prediction=as_it_is,
        is_invalid=is_blank,
        metrics=(Metric(("em", "f1"), squad),),
        # Padding sets every colon apart, so this mark is in the inputs once.
        baseline_of=Baseline("copy", partial(copy_after, marker=" context: ")),
        train_rows=None,
    ),
    Task(
        name="cnn_dailymail",
        read=partial(read_csv, columns=("id", "article", "highlights")),
        to_examples=format_summary,
        read_prediction=as_it_is,
        is_invalid=is_blank,
        metrics=(ROUGE,),
        baseline_of=Baseline("copy", partial(copy_after, marker="summarize: ")),
        train_rows=None,
        signature=rouge_signature,
    ),
    translation("wmt_en_de", source="en", target="de"),
    translation("wmt_en_fr", source="en", target="fr"),
    translation("wmt_en_ro", source="en", target="ro"),
)
