"""Raw files of tasks in the form of their publishers, with rows that a tiny network learns.

The answer follows from the word `green` or from a name, so a few steps suffice.
"""

import gzip
import io
import json
import random
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from t5repro.task_table import BY_NAME

OWN = "mine"
OPTIONS = {"race": 4, OWN: 3}
ROWS = {"train": 64, "dev": 16, "test": 8}
WORDS = ("mill", "river", "grain", "wheel", "hat")
COLOURS = ("red", "blue", "grey", "white", "black", "brown")
NAMES = {"Ada": "PER", "Bo": "PER", "Rome": "LOC", "Bonn": "LOC", "Acme": "ORG"}


def question(generator: random.Random, options: int) -> tuple[list[str], int]:
    """Return the options of a question and the index of the right one."""
    right = generator.randrange(options)
    colours = generator.sample(COLOURS, options)
    return [f"a {'green' if n == right else colours[n]} one" for n in range(options)], right


def write_race(folder: Path) -> list[Path]:
    """Write an archive in RACE's layout, half of its articles of each level."""
    generator, path = random.Random(0), folder / "race/RACE.tar.gz"
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w:gz") as archive:
        for split, count in ROWS.items():
            for number in range(count // 2):
                level = ("middle", "high")[number % 2]
                questions = [question(generator, OPTIONS["race"]) for _ in range(2)]
                article = {
                    "id": f"{level}{number}.txt",
                    "article": f"The {generator.choice(WORDS)} is here.",
                    "questions": ["Which one is it?", "It was _ ."],
                    "options": [options for options, _ in questions],
                    "answers": ["ABCD"[right] for _, right in questions],
                }
                data = json.dumps(article).encode()
                info = tarfile.TarInfo(f"RACE/{split}/{level}/{number}.txt")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return [path]


def write_own(folder: Path) -> list[Path]:
    """Write a file of rows with three options for each split."""
    generator, paths = random.Random(1), []
    (folder / OWN).mkdir(parents=True)
    for split, count in ROWS.items():
        rows = []
        for _ in range(count):
            options, right = question(generator, OPTIONS[OWN])
            row = {"text": f"the {generator.choice(WORDS)}", "label": right}
            rows.append(row | {f"o{n}": option for n, option in enumerate(options)})
        paths.append(folder / OWN / f"{split}.jsonl")
        paths[-1].write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return paths


def _pairs(generator: random.Random, labels: Sequence[str], count: int) -> Iterator[str]:
    """Yield pairs in SNLI's JSON lines; the annotators disagree on the first one."""
    colours = dict(zip(labels, ("green", "red", "blue"), strict=False))
    for number in range(count):
        word, label = generator.choice(WORDS), labels[number % len(labels)]
        premise, hypothesis = f"A {word} is there.", f"The {word} is {colours[label]}."
        gold = label if number else "-"
        record = {
            "annotator_labels": [label],
            "gold_label": gold,
            "pairID": f"{number}.jpg#1r1e",
            "sentence1": premise,
            "sentence1_binary_parse": f"( {premise} )",
            "sentence1_parse": f"(ROOT {premise})",
            "sentence2": hypothesis,
        }
        yield json.dumps(record)


def _questions(generator: random.Random, split: str, count: int) -> Iterator[str]:
    """Yield the lines of a file of MRQA: a header, then texts with one question each."""
    yield json.dumps({"header": {"dataset": "NewsQA", "split": split}})
    for number in range(count):
        colours = ["green", *generator.sample(COLOURS, 2)]
        generator.shuffle(colours)
        context = "[TLE] News [DOC] " + " ".join(
            f"The {generator.choice(WORDS)} is {colour} ." for colour in colours
        )
        start = context.index("green")
        yield json.dumps(
            {
                "id": "",
                "context": context,
                "context_tokens": [],
                "qas": [
                    {
                        "qid": f"{split}{number}",
                        "question": "Which colour has grass?",
                        "question_tokens": [],
                        "answers": ["green"],
                        # Ends count in.
                        "detected_answers": [
                            {"text": "green", "char_spans": [[start, start + 4]], "token_spans": []}
                        ],
                    }
                ],
            }
        )


def _sentences(generator: random.Random, count: int) -> Iterator[str]:
    """Yield the lines of a file of CoNLL-2003: tags in IOB1, sentences of two documents."""
    for number in range(count):
        if number % (count // 2) == 0:
            yield "-DOCSTART- -X- O O"
            yield ""
        words = [generator.choice((*WORDS, *NAMES)) for _ in range(4)]
        for word, before in zip(words, ("", *words), strict=False):
            kind = NAMES.get(word, "")
            begins_anew = kind and NAMES.get(before) == kind
            tag = f"{'B' if begins_anew else 'I'}-{kind}" if kind else "O"
            yield f"{word} NN I-NP {tag}"
        yield ""


def _write_lines(folder: Path, task: str, lines_of: Callable[[str, int], Iterator[str]]) -> Any:
    """Write the files of a task as its row of the table names them, compressed if they are."""
    paths = []
    for (_, files), (part, count) in zip(BY_NAME[task].files.items(), ROWS.items(), strict=False):
        (name,) = files
        paths.append(folder / name)
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        data = "".join(f"{line}\n" for line in lines_of(part, count)).encode()
        paths[-1].write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return paths


def write_raw_files(folder: Path, task: str) -> list[Path]:
    """Write the raw files of a task below `tasks.folder`; return them."""
    generator = random.Random(2)
    if task == "race":
        return write_race(folder)
    if task == OWN:
        return write_own(folder)
    if task == "newsqa":
        return _write_lines(folder, task, lambda part, n: _questions(generator, part, n))
    if task == "conll_2003":
        return _write_lines(folder, task, lambda _, n: _sentences(generator, n))
    labels = ("entailment", "neutral", "contradiction")[: 2 if task == "scitail" else 3]
    return _write_lines(folder, task, lambda _, n: _pairs(generator, labels, n))
