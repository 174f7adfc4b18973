"""Pages of prose, put together from the words and templates of one language."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import prose_de
import prose_en
import prose_fr
import prose_ro
from dice import Dice

PARAGRAPH_SENTENCES = (1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5)
SIDE_SHARE = 0.5  # of the templates of a page's second topic


@dataclass(frozen=True)
class Book:
    """What is needed to write in one language."""

    words: Mapping[str, Sequence[str]]
    general: tuple[str, ...]
    topics: dict[str, tuple[dict[str, tuple[str, ...]], tuple[str, ...]]]
    sentences: tuple[int, int]  # fewest and most on one page
    title: str


BOOKS = {
    "en": Book(prose_en.WORDS, prose_en.GENERAL, prose_en.TOPICS, (17, 46), "Notes from <town>"),
    "de": Book(prose_de.WORDS, prose_de.GENERAL, prose_de.TOPICS, (17, 40), "Neues aus <stadt>"),
    "fr": Book(prose_fr.WORDS, prose_fr.GENERAL, prose_fr.TOPICS, (17, 40), "Nouvelles de <ville>"),
    "ro": Book(prose_ro.WORDS, prose_ro.GENERAL, prose_ro.TOPICS, (17, 40), "Vești din <oras>"),
}


def page_sentences(book: Book, dice: Dice, count: int) -> list[str]:
    """Return sentences about two topics, mixed with some that fit any page."""
    (words, templates), (other_words, other) = (
        book.topics[name] for name in dice.sample(sorted(book.topics), 2)
    )
    side = dice.sample(other, int(len(other) * SIDE_SHARE))
    deck = [(template, words) for template in templates]
    deck += [(template, other_words) for template in side]
    general = dice.sample(book.general, max(4, count - len(deck)))
    deck += [(template, {}) for template in general]
    while len(deck) < count:
        deck += [(template, words) for template in templates]
    return [dice.fill(text, {**book.words, **own}) for text, own in dice.shuffled(deck)[:count]]


def paragraphs(sentences: list[str], dice: Dice) -> list[str]:
    """Join sentences to lines of one to five."""
    lines = []
    while sentences:
        size = dice.pick(PARAGRAPH_SENTENCES)
        lines.append(" ".join(sentences[:size]))
        sentences = sentences[size:]
    return lines


def page_paragraphs(language: str, dice: Dice) -> list[str]:
    """Return the lines of prose of one page."""
    book = BOOKS[language]
    return paragraphs(page_sentences(book, dice, dice.between(*book.sentences)), dice)


def page_title(language: str, dice: Dice) -> str:
    """Return a headline without an end mark."""
    book = BOOKS[language]
    return f"{dice.fill(book.title, book.words)} ({dice.pick(sorted(book.topics))})"
