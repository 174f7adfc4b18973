"""Random texts for the tests of metrics and predictions."""

import collections
from collections.abc import Sequence
from random import Random

RANDOM_CASES = 200
WORDS = (
    *("the", "cat", "sat", "on", "a", "mat", ".", ",", "!", "3.5", "1,000", "Straße", "l'été"),
    *("«", "»", "(x)", "%", "€5", "don't", "word-", "—", "“q”", "dog", "in", "of", "ş", "An"),
    *("THE", "a.b", "$$$$"),
)


def random_text(generator: Random, max_words: int = 12) -> str:
    """Return a text of random words."""
    return " ".join(generator.choice(WORDS) for _ in range(generator.randint(0, max_words)))


def similar_text(generator: Random, text: str) -> str:
    """Return a text that shares many words with `text`, or none."""
    kind = generator.random()
    if kind < 0.15:
        return random_text(generator)
    if kind < 0.25:
        return ""
    return " ".join(word for word in text.split() if generator.random() > 0.2)


def ngrams(words: Sequence[str], order: int) -> collections.Counter[tuple[str, ...]]:
    """Return the counts of the n-grams of a text."""
    return collections.Counter(zip(*(words[i:] for i in range(order)), strict=False))
