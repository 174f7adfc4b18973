"""RACE, SWAG and the Story Cloze Test: one of several options is right.

None is a task of T5's paper. As text the options have letters, and the target is a letter (D-051);
a network of labels reads each option in a row of its own, after the text that it ends or answers.
"""

import string
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from t5repro.data.archives import tar_members
from t5repro.tasks.baselines import MAJORITY
from t5repro.tasks.lines import decode, invalid_data, open_task_file, refuse_repeated
from t5repro.tasks.predictions import is_invalid_label, label_index
from t5repro.tasks.records import object_of, text_in, text_lists_in, texts_in
from t5repro.tasks.tables import csv_rows
from t5repro.tasks.task import NO_TARGET, Example, Reader, Row, Task

LETTERS = tuple(string.ascii_uppercase)
BLANK = "_"  # the place of the option in a question of RACE
LEVELS = ("middle", "high")  # schools
RACE_OPTIONS = 4
RACE_FOLDERS = {"train": "train", "validation": "dev", "test": "test"}


def choice_example(
    row: Row,
    *,
    before: Mapping[str, str],
    segments: tuple[str, ...],
    options: Sequence[str],
    prefix: str,
    after: Mapping[str, str] | None = None,
) -> Example:
    """Return a row with options: as text, and apart for a network of labels.

    Before: ``{"label": 1}`` with the question "Where?" and the options "here" and "there"; after:
    ``"race question: Where? A: here B: there"`` and ``"B"``.

    Args:
        row: ``idx`` and ``label``, the index of the right option or None.
        before: name -> text, written before the options.
        segments: texts of a network of labels.
        options: what such a network reads after them, by index.
        prefix: first word of the inputs.
        after: name -> text, written after the options, and cut if the inputs are too long.
    """
    # There are more letters than options.
    named_options = dict(zip(LETTERS, row["options"], strict=False))
    texts = [f"{name}: {text}" for name, text in (*before.items(), *named_options.items())]
    texts += [f"{name}: {text}" for name, text in (after or {}).items()]
    inputs = " ".join([prefix, *texts])
    label = row["label"]
    targets = NO_TARGET if label is None else LETTERS[label]
    return Example(inputs, targets, row["idx"], label, segments, tuple(options))


def multiple_choice(
    name: str,
    *,
    read: Reader,
    to_examples: Callable[[Row], tuple[Example]],
    options: int,
    evaluation_only: bool = False,
) -> Task:
    """Return the task of writing the letter of the right one of so many options."""
    labels = LETTERS[:options]
    return Task(
        name=name,
        read=read,
        to_examples=to_examples,
        read_prediction=partial(label_index, labels=labels),
        is_invalid=is_invalid_label,
        metrics=("accuracy",),
        baseline=MAJORITY,
        labels=labels,
        evaluation_only=evaluation_only,
    )


# RACE


def read_race(
    files: Sequence[Path], split: str, excluded: Counter[str], *, levels: tuple[str, ...] = LEVELS
) -> Iterator[Row]:
    """Yield the questions of RACE's articles.

    Args:
        files: the archive of the download, of which a split reads its own folders
            ``RACE/<train, dev, test>/<middle, high>``, or single articles of it.
        split: name of the split.
        excluded: unused.
        levels: schools whose questions are read; an article names its own by its id.

    Raises:
        TaskDataError: an article is not as RACE's are, or one occurs twice.
        RawDataError: the archive is damaged.
    """
    locations: dict[Hashable, str] = {}
    for location, data in _articles(files, split):
        article = object_of(decode(data, location), location)
        name = text_in(article, "id", location)
        # The id and not the folder: single articles may lie anywhere.
        level = next((level for level in LEVELS if name.startswith(level)), None)
        if level is None:
            allowed = " or ".join(f"{level}<number>.txt" for level in LEVELS)
            raise invalid_data(location, "id is", name, allowed)
        if level in levels:
            refuse_repeated(name, location, locations)
            yield from _questions(article, name, location, split)


def _articles(files: Sequence[Path], split: str) -> Iterator[tuple[str, bytes]]:
    """Yield location and bytes of each article."""
    folders = tuple(f"RACE/{RACE_FOLDERS[split]}/{level}/" for level in LEVELS)
    for path in files:
        with open_task_file(path) as handle:
            # 27,933 small files: the archive is read as it was downloaded.
            if path.name.endswith(".tar.gz"):
                for name, data in tar_members(handle, str(path), folders):
                    yield f"{path} member {name}", data
            else:
                yield str(path), handle.read()


def _questions(article: Mapping[str, Any], name: str, location: str, split: str) -> Iterator[Row]:
    # fairseq's script does so; a vocabulary of SentencePiece reads a line break as a space anyway.
    text = text_in(article, "article", location).replace("\n", " ")
    questions = texts_in(article, "questions", location)
    options = text_lists_in(article, "options", location)
    letters = None
    if "answers" in article or split != "test":
        letters = texts_in(article, "answers", location)
    # A missing list of answers must not shift the options of later questions.
    counts = {len(questions), len(options), len(questions if letters is None else letters)}
    if len(counts) > 1:
        raise invalid_data(
            location,
            "numbers of questions, options and answers are",
            sorted(counts),
            "as many of each",
        )
    for number, question in enumerate(questions):
        if len(options[number]) != RACE_OPTIONS:
            raise invalid_data(
                location, f"options of question {number} are", options[number], "four options"
            )
        if letters is not None and letters[number] not in LETTERS[:RACE_OPTIONS]:
            raise invalid_data(
                location, f"the answer to question {number} is", letters[number], "A, B, C or D"
            )
        yield {
            "article": text,
            "question": question,
            "options": tuple(options[number]),
            "label": None if letters is None else LETTERS.index(letters[number]),
            "idx": {"article": name, "question": number},
            "location": location,
        }


def format_race(row: Row) -> tuple[Example]:
    """Write question, options and article; the end of the article is cut if a row is too short.

    A network of labels reads the article, and the question with the option in its blank or after
    it.

    Source: ALBERT ``race_utils``, XLNet ``run_race``, fairseq ``preprocess_RACE``: all three join
    question and option so.
    """
    question = row["question"]
    options = [
        question.replace(BLANK, option) if BLANK in question else f"{question} {option}"
        for option in row["options"]
    ]
    return (
        choice_example(
            row,
            before={"question": question},
            after={"article": row["article"]},
            segments=(row["article"],),
            options=options,
            prefix="race",
        ),
    )


# SWAG and the Story Cloze Test


def read_endings(
    files: Sequence[Path],
    split: str,
    excluded: Counter[str],
    *,
    texts: tuple[str, ...],
    endings: tuple[str, ...],
    label: str,
    values: tuple[str, ...],
) -> Iterator[Row]:
    """Yield the rows of comma-separated files with beginnings and several endings.

    Args:
        files: read one after another.
        split: only the rows of ``test`` may lack the label.
        excluded: unused.
        texts: columns of the beginning.
        endings: columns of the endings.
        label: column of the label.
        values: value of the label for each ending.

    Raises:
        TaskDataError: a file has other columns, or a row another label.
    """
    columns = (*texts, *endings)
    # The test rows of SWAG are published without labels.
    required, optional = (columns, (label,)) if split == "test" else ((*columns, label), ())
    count = 0
    for path in files:
        for location, cells in csv_rows(path, required, optional=optional):
            answer = cells.get(label)
            if answer is not None and answer not in values:
                raise invalid_data(location, f"{label} is", answer, " or ".join(values))
            yield {
                "texts": tuple(cells[name] for name in texts),
                "options": tuple(cells[name] for name in endings),
                "label": None if answer is None else values.index(answer),
                "idx": count,
                "location": location,
            }
            count += 1


def format_swag(row: Row) -> tuple[Example]:
    """Write a sentence, the beginning of the next one, and its endings.

    Source: BERT, section 4.4: the sentence is the first segment, a continuation the second.
    """
    sentence, beginning = row["texts"]
    return (
        choice_example(
            row,
            before={"context": f"{sentence} {beginning}"},
            segments=(sentence,),
            options=[f"{beginning} {ending}" for ending in row["options"]],
            prefix="swag",
        ),
    )


def format_story(row: Row) -> tuple[Example]:
    """Write the four sentences of a story and its two endings.

    Source: Radford et al., 2018, ``datasets.rocstories``: the sentences are one text.
    """
    story = " ".join(row["texts"])
    return (
        choice_example(
            row,
            before={"story": story},
            segments=(story,),
            options=row["options"],
            prefix="story_cloze",
        ),
    )


def _race(name: str, *levels: str) -> Task:
    return multiple_choice(
        name,
        read=partial(read_race, levels=levels),
        to_examples=format_race,
        options=RACE_OPTIONS,
        evaluation_only=levels != LEVELS,
    )


MULTIPLE_CHOICE = (
    _race("race", *LEVELS),
    _race("race_middle", "middle"),
    _race("race_high", "high"),
    multiple_choice(
        "swag",
        read=partial(
            read_endings,
            texts=("sent1", "sent2"),
            endings=("ending0", "ending1", "ending2", "ending3"),
            label="label",
            values=("0", "1", "2", "3"),
        ),
        to_examples=format_swag,
        options=4,
    ),
    multiple_choice(
        "story_cloze",
        read=partial(
            read_endings,
            texts=("InputSentence1", "InputSentence2", "InputSentence3", "InputSentence4"),
            endings=("RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2"),
            label="AnswerRightEnding",
            values=("1", "2"),
        ),
        to_examples=format_story,
        options=2,
    ),
)
