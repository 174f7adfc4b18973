"""Synthetic tasks whose answer is text: SQuAD, CNN/DailyMail and translation.

Answers come from small closed sets of words, so that a very small model can learn them in minutes.
"""

import csv
import hashlib
import io
import json

from dice import Dice
from parallel import LANGUAGES, sentences
from words import COLOURS, DAYS, JOBS, NUMBERS, PEOPLE, TOWNS, YEARS

# SQuAD: find the answer in the passage

SQUAD_THINGS = (
    "boat",
    "bridge",
    "tower",
    "house",
    "mill",
    "wagon",
    "clock",
    "museum",
    "library",
    "school",
)
PARTS = ("windows", "doors", "wheels", "steps", "bells", "rooms")
OWNERS = ("the council", "a rich widow", "the railway", "a club of students", "the old abbey")
PASSAGES = (
    "The {thing} of {town} is {colour} and has {number} {part}. It was built in {year} by "
    "{person}, {job}. Today it belongs to {owner}.",
    "In {year}, {person}, {job}, built a {thing} with {number} {part} in {town}. It was painted "
    "{colour} and sold to {owner}.",
    "Visitors of {town} like the {colour} {thing}. {person}, {job}, built it in {year}, and its "
    "{number} {part} were a gift of {owner}.",
    "{person} was {job}. The {thing} in {town}, {colour} and with {number} {part}, is the work of "
    "{year}; {owner} paid for it.",
)
QUESTIONS = {
    "colour": ("What colour is the {thing}?", "Which colour does the {thing} have?"),
    "number": ("How many {part} does the {thing} have?", "How many {part} are there?"),
    "year": ("When was the {thing} built?", "In what year was the {thing} built?"),
    "person": ("Who built the {thing}?", "By whom was the {thing} built?"),
    "town": ("Where is the {thing}?", "In which town is the {thing}?"),
    "job": ("What was the job of {person}?", "What did {person} do for a living?"),
}


def _squad_fields(dice: Dice) -> dict[str, str]:
    job = dice.pick(JOBS)
    return {
        "thing": dice.pick(SQUAD_THINGS),
        "town": dice.pick(TOWNS),
        "colour": dice.pick(COLOURS),
        "number": dice.pick(NUMBERS),
        "part": dice.pick(PARTS),
        "year": dice.pick(YEARS),
        "person": dice.pick(PEOPLE),
        "owner": dice.pick(OWNERS),
        "job": f"an {job}" if job == "engineer" else f"a {job}",
    }


def _gold(kind: str, fields: dict[str, str], context: str, several: bool) -> list[dict]:
    """Return the answers of one question: one in training, three annotators' in validation."""
    plain = fields[kind]
    texts = [plain]
    if several:
        longer = {
            "number": f"{plain} {fields['part']}",
            "year": f"in {plain}",
            "job": plain.split()[-1],
            "person": f"{plain}, {fields['job']}",
        }.get(kind, plain)
        texts = [plain, plain, longer if longer in context else plain]
    return [{"answer_start": context.index(text), "text": text} for text in texts]


def _squad_split(dice: Dice, split: str, questions: int, seen: set[str]) -> str:
    articles: dict[str, list[dict]] = {}
    made = 0
    while made < questions:
        fields = _squad_fields(dice)
        context = dice.pick(PASSAGES).format(**fields)
        if context in seen:
            continue
        seen.add(context)
        asked = []
        for kind in dice.sample(list(QUESTIONS), min(4, questions - made)):
            made += 1
            asked.append(
                {
                    "id": hashlib.sha256(f"{split} {made}".encode()).hexdigest()[:24],
                    "question": dice.pick(QUESTIONS[kind]).format(**fields),
                    "answers": _gold(kind, fields, context, several=split == "dev"),
                }
            )
        articles.setdefault(fields["town"], []).append({"context": context, "qas": asked})
    data = [{"title": title, "paragraphs": articles[title]} for title in sorted(articles)]
    return json.dumps({"data": data, "version": "1.1"}, ensure_ascii=False)


def squad_files() -> dict[str, str]:
    """Return both files of SQuAD 1.1; no passage is in both."""
    dice, seen = Dice("task", "squad"), set[str]()
    return {
        "tasks/squad/train-v1.1.json": _squad_split(dice, "train", 800, seen),
        "tasks/squad/dev-v1.1.json": _squad_split(dice, "dev", 150, seen),
    }


# CNN/DailyMail: the gist of an article

EVENTS = (
    (
        "Heavy floods reached {town} on {day} and closed {number} streets.",
        "Floods close {number} streets in {town} .",
        (
            "Water stood in many cellars.",
            "Boats brought people to dry ground.",
            "The rain is over now.",
        ),
    ),
    (
        "{person}, a {job} from {town}, won {number} thousand dollars on {day}.",
        "{job} {person} wins {number} thousand dollars .",
        (
            "The money comes from a lottery.",
            "Friends gave a party.",
            "Part of it goes to a school.",
        ),
    ),
    (
        "A {colour} {thing} was stolen in {town} on {day}, police said.",
        "Police in {town} look for {colour} {thing} .",
        (
            "There were no witnesses.",
            "A window had been broken.",
            "A reward is offered for news of it.",
        ),
    ),
    (
        "The mayor of {town} opened a new {thing} on {day} after {number} years of work.",
        "New {thing} opens in {town} .",
        (
            "A band played in the rain.",
            "The costs were higher than planned.",
            "Schools had the day off.",
        ),
    ),
    (
        "{number} players of the team of {town} fell ill on {day} after a dinner.",
        "{number} players of {town} fall ill .",
        (
            "Doctors blame the fish.",
            "The next match was put off.",
            "All of them are at home again.",
        ),
    ),
)
VOICES = (
    '"We have never seen anything like it," said {other}, a {job2}.',
    '{other}, who lives nearby, said: "It was a day that I will not forget."',
    'A {job2} told this paper, "It is, to be honest, a surprise."',
)
SECOND_GISTS = ("{other} had never seen anything like it .", "It happened on {day} .")


def _article(dice: Dice) -> tuple[str, str]:
    person, other = dice.sample(PEOPLE, 2)
    job, job2 = dice.sample([job for job in JOBS if job != "engineer"], 2)
    fields = {
        "person": person,
        "other": other,
        "job": job,
        "job2": job2,
        "town": dice.pick(TOWNS),
        "day": dice.pick(DAYS),
        "number": dice.pick(NUMBERS),
        "colour": dice.pick(COLOURS),
        "thing": dice.pick(("bicycle", "boat", "piano", "lamp", "wagon", "clock")),
    }
    lead, gist, around = dice.pick(EVENTS)
    voice = dice.below(len(VOICES))
    body = [lead, *dice.shuffled(around)[: dice.between(2, 3)]]
    body.insert(dice.between(1, len(body)), VOICES[voice])
    gists = [gist]
    if dice.chance(0.35):
        gists.append(SECOND_GISTS[0 if voice == 0 else 1])
    text = " ".join(_start_large(part.format(**fields)) for part in body)
    return text, "\n".join(_start_large(part.format(**fields)) for part in gists)


def _start_large(text: str) -> str:
    return text[0].upper() + text[1:]


def news_files() -> dict[str, str]:
    """Return both files of CNN/DailyMail, with quoted commas, quotes and line ends."""
    dice, seen = Dice("task", "news"), set[str]()
    files = {}
    for split, count in (("train", 500), ("validation", 80)):
        rows: list[tuple[str, str, str]] = []
        while len(rows) < count:
            article, highlights = _article(dice)
            if article not in seen:
                seen.add(article)
                name = hashlib.sha256(article.encode()).hexdigest()[:40]
                rows.append((name, article, highlights))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("id", "article", "highlights"))
        writer.writerows(rows)
        files[f"tasks/cnn_dailymail/{split}.csv"] = text.getvalue()
    return files


# WMT: translation


def translation_files() -> dict[str, str]:
    """Return the line-aligned files of the three pairs; each pair has its own sentences."""
    files = {}
    for target in LANGUAGES:
        dice, seen = Dice("task", "wmt", target), set[str]()
        for split, count in (("train", 1200), ("validation", 120)):
            pairs: list[tuple[str, str]] = []
            while len(pairs) < count:
                row = sentences(dice)
                if row["en"] not in seen:
                    seen.add(row["en"])
                    pairs.append((row["en"], row[target]))
            folder = f"tasks/wmt/en-{target}/{split}"
            files[f"{folder}.en"] = "".join(f"{source}\n" for source, _ in pairs)
            files[f"{folder}.{target}"] = "".join(f"{translated}\n" for _, translated in pairs)
    return files


def text_files() -> dict[str, str]:
    """Return path -> text of every file of these tasks."""
    return squad_files() | news_files() | translation_files()
