"""Random draws that are the same with every Python and on every machine.

Only `random.Random.random` is promised to keep its sequence from one Python to the next, so every
draw here is made from it. Each use has its own named stream: a draw added in one place changes
nothing elsewhere.
"""

import random
import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

SLOT = re.compile(r"<(an? )?([a-z_]+)>")
TRIES = 6  # to avoid the same word twice in one sentence
SOUNDED_AS_CONSONANT = ("uni", "use", "usu", "eu", "one", "once")
SOUNDED_AS_VOWEL = ("hour", "honest", "heir")


class Dice:
    """One stream of draws, named after its use.

    Attributes:
        seed: start of the names of all streams; another seed gives other files.
    """

    seed = "mini"

    def __init__(self, *name: str | int) -> None:
        self._random = random.Random("/".join([self.seed, *(str(part) for part in name)]))

    def below(self, limit: int) -> int:
        """Return a whole number from 0 to `limit` - 1."""
        return int(self._random.random() * limit)

    def between(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def chance(self, share: float) -> bool:
        """Say yes in this share of the draws."""
        return self._random.random() < share

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in another order."""
        mixed = list(items)
        for last in range(len(mixed) - 1, 0, -1):
            other = self.below(last + 1)
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Return `count` different items."""
        return self.shuffled(items)[:count]

    def fill(self, template: str, words: Mapping[str, str | Sequence[str]]) -> str:
        """Put words into the ``<slots>`` of a template; ``<a slot>`` adds the English article.

        A slot whose entry is one string is always that string; a list gives one of its items.
        """
        used: set[str] = set()

        def word(match: re.Match[str]) -> str:
            entry = words[match[2]]
            chosen = entry if isinstance(entry, str) else self.pick(entry)
            for _ in range(TRIES):
                if isinstance(entry, str) or chosen not in used:
                    break
                chosen = self.pick(entry)
            used.add(chosen)
            return with_article(chosen) if match[1] else chosen

        return capitalised(SLOT.sub(word, template))


def with_article(phrase: str) -> str:
    """Return the phrase after ``a`` or ``an``."""
    start = phrase.lower()
    vowel = start[0] in "aeiou" and not start.startswith(SOUNDED_AS_CONSONANT)
    return ("an " if vowel or start.startswith(SOUNDED_AS_VOWEL) else "a ") + phrase


def capitalised(sentence: str) -> str:
    """Return the sentence with its first letter large, also behind an opening quote."""
    for place, character in enumerate(sentence):
        if character.isalpha():
            return sentence[:place] + character.upper() + sentence[place + 1 :]
        if character.isdigit():
            return sentence
    return sentence
