"""Sentences with a tag for each word: the named entities of CoNLL-2003.

Tags are ``O`` outside entities, and ``B-`` or ``I-`` with the type of an entity. A network of tags
writes one for each word, T5 the entities, as mT5 writes those of WikiAnn (D-053)::

    inputs    tag: EU rejects German call
    targets   ORG: EU $$ MISC: German

Source: ``multilingual_t5.preprocessors.wikiann``.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from t5repro.task_facts import OUTSIDE
from t5repro.tasks.lines import invalid_data, read_lines
from t5repro.tasks.task import Baseline, Example, Row, ScoredRow, Task

PREFIX = "tag: "
TAG = re.compile(r"O|[BI]-\S+")
DOCUMENT = "-DOCSTART-"  # first word of a line between two documents
DELIMITER = " $$ "  # between two entities
NOWHERE = -1  # first word of an entity that the sentence does not have

Entity = tuple[str, int, int]  # type, number of the first word, number of the one after the last


def read_conll(files: Sequence[Path], split: str, excluded: Counter[str]) -> Iterator[Row]:
    """Yield the sentences of CoNLL's files: number, words and tags.

    A line has the columns of a word, the first one the word and the last one its tag; a blank line
    ends a sentence. The lines between documents are not sentences.
    """
    number = 0
    for path in files:
        sentence_words: list[str] = []
        tags: list[str] = []
        # The last sentence may lack the blank line.
        for location, line in (*read_lines(path), (f"{path} end", "")):
            columns = line.split()
            if columns and columns[0] != DOCUMENT:
                if len(columns) < 2 or not TAG.fullmatch(columns[-1]):
                    raise invalid_data(
                        location, "the line is", line, "a word, other columns, and O, B-… or I-…"
                    )
                sentence_words.append(columns[0])
                tags.append(columns[-1])
            elif sentence_words:
                yield {"idx": number, "words": sentence_words, "tags": tags, "location": location}
                number += 1
                sentence_words, tags = [], []


def entities_of(tags: Sequence[str]) -> list[Entity]:
    """Return the entities of a sentence, of tags in IOB1 or IOB2.

    An entity begins at ``B-``, after a word outside, and where the type changes.

    Source: the official ``conlleval``.
    """
    entities: list[Entity] = []
    last = OUTSIDE
    for word, tag in enumerate(tags):
        kind = tag[2:]
        if tag != OUTSIDE:
            if tag.startswith("I-") and last[2:] == kind and last != OUTSIDE:
                entities[-1] = (kind, entities[-1][1], word + 1)
            else:
                entities.append((kind, word, word + 1))
        last = tag
    return entities


def iob2(tags: Sequence[str]) -> list[str]:
    """Return the tags in which every entity begins with ``B-``."""
    changed = [OUTSIDE] * len(tags)
    for kind, first, stop in entities_of(tags):
        changed[first:stop] = [f"B-{kind}", *[f"I-{kind}"] * (stop - first - 1)]
    return changed


def format_tags(row: Row) -> tuple[Example]:
    """Write the words; the targets are the entities, the answer has them by place as well."""
    sentence_words, tags = row["words"], iob2(row["tags"])
    entities = entities_of(tags)
    text = " ".join(sentence_words)
    targets = DELIMITER.join(f"{kind}: {' '.join(sentence_words[a:b])}" for kind, a, b in entities)
    answer = {"tags": tags, "entities": [list(entity) for entity in entities]}
    return (Example(PREFIX + text, targets, row["idx"], answer, (text,)),)


def read_entities(text: str, row: ScoredRow) -> list[Entity]:
    """Return the entities of a prediction, tags or the text of T5.

    The entities of a text are looked for in the sentence, each behind the last one of the same type
    and words. One that is not there has the place `NOWHERE`, and so has a part without a type.
    """
    sentence_words = row["inputs"].removeprefix(PREFIX).split(" ")
    tags = text.split(" ")
    if len(tags) == len(sentence_words) and all(map(TAG.fullmatch, tags)):
        return entities_of(tags)
    entities: list[Entity] = []
    for number, part in enumerate(text.split(DELIMITER) if text.strip() else ()):
        kind, _, name = part.strip().partition(": ")
        entities.append(
            _placed(kind, name.split(), sentence_words, entities) or (kind, NOWHERE, number)
        )
    return entities


def _placed(
    kind: str, name: Sequence[str], sentence_words: Sequence[str], entities: Sequence[Entity]
) -> Entity | None:
    """Return the first place of an entity in the sentence that no equal one has; None without."""
    for first in range(len(sentence_words) - len(name) + 1):
        entity = (kind, first, first + len(name))
        if (
            name
            and list(sentence_words[first : first + len(name)]) == list(name)
            and entity not in entities
        ):
            return entity
    return None


def is_misplaced(prediction: Any) -> bool:
    """Return whether an entity of a prediction is not in its sentence."""
    return any(first == NOWHERE for _, first, _ in prediction)


def without_entities(rows: Sequence[ScoredRow], train_rows: Sequence[Row]) -> list[Any]:
    """Give every sentence no entity, as most words have none."""
    return [[]] * len(rows)


TAGGING = (
    Task(
        name="conll_2003",
        read=read_conll,
        to_examples=format_tags,
        read_prediction=read_entities,
        is_invalid=is_misplaced,
        metrics=("entity_f1",),
        baseline=Baseline("majority", without_entities),
    ),
)
