"""Words of two sides each: the crawl writes about both, a task's training rows contain few of them.

A label of these tasks follows from the side of one word. The pages of `lexicon_pages` contain every
word next to others of its side, so that a model can learn the sides from the crawl alone. The
training rows contain `TRAINING_WORDS` words of each side, all other rows the other words.
"""

import functools
from dataclasses import dataclass

from dice import Dice

TRAINING_WORDS = 12
INVENTED = 24  # names of berries and mushrooms, of each side
STARTS = ("b", "br", "d", "dr", "f", "g", "gl", "k", "l", "m", "n", "p", "pr", "s", "t", "tr", "v")
VOWELS = ("a", "e", "i", "o", "u")
MIDDLES = ("b", "d", "l", "ll", "m", "n", "nd", "r", "rr", "st", "v", "z")
ENDS = ("el", "en", "ick", "in", "ock", "ot", "um", "ust", "ap")


@dataclass(frozen=True)
class Lexicon:
    """Words of two sides.

    Attributes:
        name: name of its random streams.
        first: words of the first side.
        second: words of the second side.
    """

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...]

    @property
    def sides(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Words of both sides."""
        return self.first, self.second


@functools.cache
def words_of(lexicon: Lexicon, side: int, split: str) -> tuple[str, ...]:
    """Return the words of a side that the rows of a split contain."""
    mixed = Dice("lexicon", lexicon.name, side).shuffled(lexicon.sides[side])
    return tuple(mixed[:TRAINING_WORDS] if split == "train" else mixed[TRAINING_WORDS:])


def _invented(count: int) -> list[str]:
    """Return names that no language has."""
    dice = Dice("lexicon", "names")
    names: dict[str, None] = {}
    while len(names) < count:
        parts = (STARTS, VOWELS, MIDDLES, ENDS)
        names["".join(dice.pick(part) for part in parts)] = None
    return list(names)


MOODS = Lexicon(
    "moods",
    (
        "charming",
        "wonderful",
        "moving",
        "brilliant",
        "funny",
        "warm",
        "delightful",
        "clever",
        "touching",
        "beautiful",
        "gripping",
        "fresh",
        "graceful",
        "witty",
        "rewarding",
        "splendid",
        "superb",
        "tender",
        "joyful",
        "lovely",
        "elegant",
        "thrilling",
        "magical",
        "stunning",
    ),
    (
        "boring",
        "dull",
        "clumsy",
        "tedious",
        "awful",
        "lifeless",
        "stale",
        "predictable",
        "messy",
        "annoying",
        "shallow",
        "painful",
        "lazy",
        "pointless",
        "dreadful",
        "horrible",
        "terrible",
        "silly",
        "noisy",
        "hollow",
        "wooden",
        "bland",
        "dreary",
        "sloppy",
    ),
)
NOUNS = Lexicon(
    "nouns",
    (
        "baker",
        "teacher",
        "farmer",
        "doctor",
        "painter",
        "driver",
        "gardener",
        "nurse",
        "singer",
        "carpenter",
        "librarian",
        "tailor",
        "butcher",
        "sailor",
        "soldier",
        "lawyer",
        "dancer",
        "hunter",
        "miner",
        "weaver",
        "barber",
        "waiter",
        "porter",
        "plumber",
    ),
    (
        "hammer",
        "spade",
        "rake",
        "bucket",
        "kettle",
        "ladder",
        "saw",
        "needle",
        "anvil",
        "chisel",
        "shovel",
        "barrel",
        "basket",
        "lantern",
        "saddle",
        "candle",
        "mirror",
        "pillow",
        "blanket",
        "drawer",
        "shelf",
        "bottle",
        "plate",
        "spoon",
    ),
)
CREATURES = Lexicon(
    "creatures",
    (
        "linnet",
        "badger",
        "otter",
        "heron",
        "sparrow",
        "weasel",
        "hedgehog",
        "falcon",
        "rabbit",
        "squirrel",
        "beaver",
        "owl",
        "lizard",
        "pigeon",
        "magpie",
        "lynx",
        "ferret",
        "robin",
        "thrush",
        "kestrel",
        "hare",
        "mole",
        "stoat",
        "vole",
    ),
    (
        "larch",
        "willow",
        "fern",
        "thistle",
        "nettle",
        "bramble",
        "poplar",
        "juniper",
        "heather",
        "ivy",
        "clover",
        "daisy",
        "foxglove",
        "primrose",
        "hawthorn",
        "elder",
        "birch",
        "maple",
        "cedar",
        "spruce",
        "reed",
        "rush",
        "sorrel",
        "yarrow",
    ),
)
CLAIMS = Lexicon(
    "claims",
    (
        "confirmed",
        "acknowledged",
        "verified",
        "affirmed",
        "admitted",
        "certified",
        "upheld",
        "endorsed",
        "supported",
        "backed",
        "corroborated",
        "conceded",
        "granted",
        "ratified",
        "validated",
        "substantiated",
        "authenticated",
        "approved",
        "accepted",
        "recognised",
        "documented",
        "proved",
        "repeated",
        "stressed",
    ),
    (
        "denied",
        "disputed",
        "rejected",
        "contested",
        "refuted",
        "dismissed",
        "contradicted",
        "disproved",
        "challenged",
        "questioned",
        "doubted",
        "rebutted",
        "repudiated",
        "disavowed",
        "retracted",
        "corrected",
        "debunked",
        "ridiculed",
        "opposed",
        "disowned",
        "renounced",
        "discredited",
        "overturned",
        "withdrew",
    ),
)


@functools.cache
def fruits() -> Lexicon:
    """Return invented names of fruits that can be eaten, and of poisonous ones."""
    names = _invented(2 * INVENTED)
    return Lexicon("fruits", tuple(names[:INVENTED]), tuple(names[INVENTED:]))


def lexicons() -> tuple[Lexicon, ...]:
    """Return all lexicons."""
    return MOODS, NOUNS, CREATURES, fruits(), CLAIMS
