"""A planted set: evaluated rows in a corpus, whole and changed, and what each method must find."""

import random
import re
import unicodedata
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SENTENCE = (
    "the harbour master counted eleven grey ships before breakfast and wrote their names "
    "in a small red book that nobody else was ever allowed to read"
)
HALF = " ".join(SENTENCE.split()[:12])
PARAPHRASE = (
    "ahead of his morning meal the port official tallied eleven vessels in a private notebook"
)
GERMAN = (
    "der Hafenmeister zählte vor dem Frühstück elf graue Schiffe und schrieb ihre Namen in ein "
    "kleines rotes Buch, das sonst niemand lesen durfte"
)
FRENCH = (
    "le capitaine du port compta onze navires gris avant le petit déjeuner et nota leurs noms "
    "dans un petit carnet rouge que personne d'autre ne pouvait lire"
)
ROMANIAN = (
    "căpitanul portului a numărat unsprezece nave cenușii înainte de micul dejun și le-a scris "
    "numele într-un carnet roșu pe care nimeni altcineva nu avea voie să-l citească"
)
SHORT = "four small red boats"
UNSEEN = "no page of this corpus was told about the seventh lighthouse or its quiet keeper"


def with_words(*places: int) -> str:
    """Return the sentence with other words at some places."""
    words = SENTENCE.split()
    for place in places:
        words[place] = "zebra"
    return " ".join(words)


CLAUSES = SENTENCE.partition(" and ")
PLANTED = {  # how a row stands in the corpus -> its text there
    "verbatim": SENTENCE,
    "other case and punctuation": SENTENCE.upper().replace(" ", ", ") + "!",
    "first half": HALF,
    "1 word replaced": with_words(12),
    "3 words replaced": with_words(6, 13, 20),
    "5 words replaced": with_words(3, 8, 13, 18, 23),
    "clauses swapped": f"{CLAUSES[2]} and {CLAUSES[0]}",
    "paraphrase": PARAPHRASE,
    "german": GERMAN,
    "french": FRENCH,
    "romanian": ROMANIAN,
}
# Each row of the set is the sentence under its own name, in words that no other row has.
NAMES = ["whole", "moved", "other", "split", "short", "unseen", *PLANTED]


def own(text: str, name: str) -> str:
    """Return a text in words of its own: each word with a suffix that only this row has."""
    suffix = "abcdefghijklmnopqrstuvwxyz"[NAMES.index(name)] * 2
    return re.sub(r"[^\W_]+", lambda match: match[0] + suffix, text)


def rows() -> list[dict[str, object]]:
    """Return the evaluated rows: one for each way, a split one, a short one and an unseen one."""
    texts = {name: own(SENTENCE, name) for name in PLANTED}
    texts |= {"split": own(SENTENCE, "split"), "unseen": own(UNSEEN, "unseen")}
    texts["short"] = own(SHORT, "short")
    return [
        {
            "idx": name,
            "inputs": f"rte sentence1: {text} sentence2: qx{number} zq{number}",
            "targets": "entailment",
            "answer": 0,
            "prediction": "entailment" if number % 2 else "not_entailment",
        }
        for number, (name, text) in enumerate(texts.items())
    ]


def pages() -> list[str]:
    """Return the pages of the corpus, among them two that share a split row."""
    filler = random.Random(0)
    words = [f"w{number}" for number in range(400)]
    texts = [f"{own(text, name)} ." for name, text in PLANTED.items()]
    first, second = own(HALF, "split"), own(SENTENCE.removeprefix(HALF), "split")
    texts += [own(SHORT, "short"), " ".join(first.split()[-7:]), " ".join(second.split()[:7])]
    # Passages at the start of a page, inside, and at the end.
    around = [" ".join(filler.choices(words, k=30)) for _ in range(2)]
    return [
        "\n".join([around[0]] * (number % 3 > 0) + [text] + [around[1]] * (number % 3 == 1))
        for number, text in enumerate(texts)
    ] + [" ".join(filler.choices(words, k=60)) for _ in range(20)]


def write_pages(folder: Path, texts: list[str], files: int = 3) -> list[Path]:
    """Write pages as files of a corpus."""
    paths = []
    for number in range(files):
        path = folder / f"en-train-{number:05d}-of-{files:05d}.parquet"
        part = texts[number::files]
        urls = [f"http://h.example/{number}/{row}" for row in range(len(part))]
        pq.write_table(pa.table({"url": urls, "text": part}), path)
        paths.append(path)
    return paths


# The independent search: over strings, without arrays, hashes or an index.


def plain(text: str) -> str:
    """Return a text as words with spaces around each, another way than the package's."""
    folded = unicodedata.normalize("NFKC", text).lower()
    letters = [character if character.isalnum() else " " for character in folded]
    return f" {' '.join(''.join(letters).split())} "


def brute_longest(text: str, pages_of_words: list[str]) -> int:
    """Return the words of the longest run that a page has."""
    words = plain(text).split()
    return max(
        (
            end - start
            for start in range(len(words))
            for end in range(start + 1, len(words) + 1)
            if any(f" {' '.join(words[start:end])} " in page for page in pages_of_words)
        ),
        default=0,
    )


def brute_share(text: str, pages_of_words: list[str], *, in_one_page: bool) -> float:
    """Return the share of the 8-grams of a text that a page has, or any page."""
    words = plain(text).split()
    grams = [" ".join(words[n : n + 8]) for n in range(len(words) - 7)]
    if not grams:
        return 0.0
    seen = [{n for n, gram in enumerate(grams) if f" {gram} " in page} for page in pages_of_words]
    best = max(map(len, seen)) if in_one_page else len(set().union(*seen))
    return best / len(grams)


def brute_aligned(text: str, pages_of_words: list[str]) -> float:
    """Return the share of words at their places, at any place where five are in sequence."""
    words = plain(text).split()
    best = 0
    for page in map(str.split, pages_of_words):
        for shift in range(-len(words) + 1, len(page)):
            same = [
                0 <= shift + n < len(page) and page[shift + n] == word
                for n, word in enumerate(words)
            ]
            if "11111" in "".join("01"[value] for value in same):
                best = max(best, sum(same))
    return best / len(words) if words else 0.0


def brute_covered(ids: list[int], documents: list[list[int]]) -> float:
    """Return the share of ids in runs of 11 with at most four mismatches after the first ten."""
    covered: set[int] = set()
    for document in documents:
        for start in range(len(ids)):
            for place in range(len(document)):
                mismatches = length = 0
                for step in range(min(len(ids) - start, len(document) - place)):
                    is_equal = ids[start + step] == document[place + step]
                    if not is_equal and step < 10:
                        break
                    mismatches += not is_equal
                    if mismatches > 4:
                        break
                    if is_equal:
                        length = step + 1
                if length > 10:
                    covered.update(range(start, start + length))
    return len(covered) / len(ids)
