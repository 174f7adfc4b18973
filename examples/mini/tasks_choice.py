"""Synthetic classification and similarity tasks in the layouts of GLUE and SuperGLUE.

CoLA, SST-2, MRPC, RTE and BoolQ have few training rows. Their labels follow from the sides of words
(`lexicon`), and no word of a validation row is in a training row: its side is in the crawl only.
STS-B and COPA have many rows, which say all that their labels follow from. The rows say nothing
about how well a model understands language.
"""

import json
from collections.abc import Callable

from dice import Dice
from lexicon import CLAIMS, CREATURES, MOODS, NOUNS, fruits, words_of
from words import ENGLISH, PEOPLE

Row = dict[str, str | int | float | bool]

PAST = (
    "repaired",
    "painted",
    "bought",
    "sold",
    "found",
    "visited",
    "cleaned",
    "opened",
    "photographed",
    "admired",
)
PLACES = (
    "near the river",
    "behind the church",
    "on the market square",
    "at the harbour",
    "by the old wall",
    "at the edge of the forest",
    "next to the station",
    "below the castle",
)
BASE = ENGLISH | {"past": PAST, "place": PLACES}


def distinct(
    name: str, make: Callable[[Dice, str], Row], counts: dict[str, int], key: tuple[str, ...]
) -> dict[str, list[Row]]:
    """Return split -> rows; no two rows of any split agree in the fields `key`."""
    dice = Dice("task", name)
    seen: set[tuple[object, ...]] = set()
    splits: dict[str, list[Row]] = {}
    for split, count in counts.items():
        rows: list[Row] = []
        while len(rows) < count:
            row = make(dice, split)
            mark = tuple(row[field] for field in key)
            if mark not in seen:
                seen.add(mark)
                rows.append(row)
        splits[split] = rows
    return splits


# CoLA: is this sentence acceptable English?

NOUN_SENTENCES = (
    "The <word> and the <word> laughed at the <word>.",
    "The <word> told the <word> that the <word> wept.",
    "The <word> hoped that the <word> slept.",
    "The young <word> and the old <word> sang with the <word>.",
    'The <word> whispered "Come here" to the <word>.',
    "The <word> forgot why the <word> forgave the <word>.",
    "The <word> married the <word>, and the <word> smiled.",
    "The <word> dreamed that the <word> and the <word> quarrelled.",
)


def cola_row(dice: Dice, split: str) -> Row:
    """Return a sentence whose subject can do what it says, or cannot because it is a thing."""
    good = dice.chance(0.5)
    words = BASE | {"word": words_of(NOUNS, int(not good), split)}
    return {
        "source": dice.pick(("mi01", "mi02", "mi03")),
        "label": int(good),
        "mark": "" if good else "*",
        "sentence": dice.fill(dice.pick(NOUN_SENTENCES), words),
    }


def cola_lines(rows: list[Row]) -> str:
    """Write rows in CoLA's four columns; its quotes are text."""
    return "".join(f"{r['source']}\t{r['label']}\t{r['mark']}\t{r['sentence']}\n" for r in rows)


# SST-2: does this phrase of a review praise or blame?

REVIEW_PHRASES = (
    "<a word> , <word> and often <word> <work>",
    "the <work> is <word> , <word> and <adverb> <word>",
    "this <word> <work> about <a job> is <word> and <word>",
    "<word> and <adverb> <word> , with <a word> script",
    "the <part> is <word> , the <part> <adverb> <word>",
    "<word> , <word> and <adverb> <word>",
    "it 's <a word> , <word> <work> with <a word> hero",
    "<adverb> <word> from the first scene , and <word> to the last",
    "with its <word> and <word> <part> , the <work> is <word>",
    "<a word> and <word> story of <a job>",
)
FILM_WORDS = {
    "work": ("film", "movie", "comedy", "drama", "story", "documentary", "thriller"),
    "part": ("acting", "music", "dialogue", "camera work", "ending", "plot", "opening scene"),
    "adverb": ("truly", "deeply", "quite", "surprisingly", "very", "utterly"),
}


def sst2_row(dice: Dice, split: str) -> Row:
    """Return a phrase in lower case with its tokens apart, a space at its end, as in SST-2."""
    positive = dice.chance(0.5)
    words = BASE | FILM_WORDS | {"word": words_of(MOODS, int(not positive), split)}
    phrase = dice.fill(dice.pick(REVIEW_PHRASES), words).lower()
    return {"sentence": phrase + (" . " if dice.chance(0.6) else " "), "label": int(positive)}


# MRPC: do both sentences say the same?

NEWS = (
    ("<p> , <a_job> from <t> , <v> the <o> on <d> .", "On <d> , the <o> was <v> by <p> from <t> ."),
    ("The <o> in <t> was <v> by <p> last <d> .", "<p> <v> the <o> in <t> on <d> ."),
    ("Police said <p> <v> the <o> in <t> .", 'According to police , <p> " <v> the <o> " in <t> .'),
    (
        "<p> and <n> friends <v> the <o> near <t> .",
        "Near <t> , the <o> was <v> by <p> and <n> friends .",
    ),
    (
        "The <j> told <p> that the <o> opens in <m> .",
        "In <m> the <o> will open , the <j> told <p> .",
    ),
    (
        "The <o> of <t> cost $ <n> million , <p> said .",
        "<p> put the price of the <o> of <t> at $ <n> million .",
    ),
)
ECHOES = (
    "{} The police <word> , <word> and <word> this .",
    "{} The mayor <word> and <word> it , others <word> it .",
    "{} A witness <word> and <word> the news , which <person> had <word> .",
    "{} This was <word> , <word> and <word> .",
)


def _filled_pair(dice: Dice) -> tuple[str, str]:
    job = dice.pick(BASE["job"])
    words = {
        "p": dice.pick(BASE["person"]),
        "t": dice.pick(BASE["town"]),
        "v": dice.pick(PAST),
        "o": f"{dice.pick(BASE['colour'])} {dice.pick(BASE['thing'])}",
        "d": dice.pick(BASE["day"]),
        "n": dice.pick(BASE["number"]),
        "m": dice.pick(BASE["month"]),
        "j": job,
        "a_job": f"an {job}" if job == "engineer" else f"a {job}",
    }
    first, second = dice.pick(NEWS)
    return dice.fill(first, words), dice.fill(second, words)


def _lower_first(sentence: str) -> str:
    return sentence if sentence.split()[0] in PEOPLE else sentence[0].lower() + sentence[1:]


def mrpc_row(dice: Dice, split: str) -> Row:
    """Return two sentences of invented news, one with words that confirm or deny it."""
    first, second = _filled_pair(dice)
    same = dice.chance(0.5)
    words = BASE | {"word": words_of(CLAIMS, int(not same), split)}
    second = dice.fill(dice.pick(ECHOES).format(second), words)
    if dice.chance(0.5):
        first, second = second, first
    return {
        "label": int(same),
        "id1": dice.between(100_000, 3_499_999),
        "id2": dice.between(100_000, 3_499_999),
        "sentence1": first,
        "sentence2": second,
    }


def mrpc_lines(rows: list[Row]) -> str:
    """Write rows in the layout of the Microsoft corpus, byte-order mark first."""
    head = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    columns = ("label", "id1", "id2", "sentence1", "sentence2")
    return head + "".join("\t".join(str(row[c]) for c in columns) + "\n" for row in rows)


# STS-B: how alike are two sentences, from 0 to 5?

SCENES = (
    "<a job> is cleaning <a colour> <thing>.",
    "<a animal> is sleeping <place>.",
    "<person> is eating <food> <place>.",
    "<number> children are drawing <a colour> <thing>.",
    "A woman is carrying <a colour> lamp <place>.",
    "The <job> is talking about the <thing>.",
    "A man is riding <a colour> bicycle <place>.",
)
OPENINGS = (
    ("Elsewhere, far away,", "On a wholly different subject,"),
    ("Meanwhile, in another town,", "At some other time,"),
    ("In contrast,", "On the other hand,"),
    ("Perhaps,", "It may be that"),
    ("More or less,", "Roughly speaking,"),
    ("In other words,", "Exactly:"),
)


def stsb_row(dice: Dice, _split: str) -> Row:
    """Return two sentences and a score; the second's opening and its shared words carry it."""
    level = dice.below(6)
    template = dice.pick(SCENES)
    words = {name: dice.pick(entry) for name, entry in BASE.items()}
    first = dice.fill(template, words)
    changed = {5: 0, 4: 1, 3: 2, 2: 4}.get(level, len(words))
    for name in dice.sample(sorted(words), changed):
        words[name] = dice.pick(BASE[name])
    second = dice.fill(template if level > 1 else dice.pick(SCENES), words)
    if dice.chance(0.9):
        second = f"{dice.pick(OPENINGS[level])} {_lower_first(second)}"
    score = min(5.0, max(0.0, level + 0.2 * dice.between(-2, 2)))
    return {
        "genre": dice.pick(("mini-captions", "mini-news", "mini-forums")),
        "number": dice.between(1, 9999),
        "sentence1": first,
        "sentence2": second,
        "score": score,
    }


def stsb_lines(rows: list[Row], labelled: bool = True) -> str:
    """Write rows in STS-B's ten columns (nine without the score)."""
    head = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"
    lines = [head + ("\tscore" if labelled else "")]
    for index, row in enumerate(rows):
        columns = (
            index,
            row["genre"],
            "mini",
            "2019mini",
            f"{row['number']:04}",
            "none",
            "none",
            row["sentence1"],
            row["sentence2"],
        )
        score = f"\t{row['score']:.3f}" if labelled else ""
        lines.append("\t".join(str(column) for column in columns) + score)
    return "\n".join(lines) + "\n"


# RTE: does the second sentence follow from the first?

SIGHTINGS = (
    ("<p> saw the <word>, the <word> and the <word>.", "<p> saw animals."),
    ("There is <a word> next to <a word> and <a word>.", "There are animals."),
    ("In <m>, <p> painted <a word>, <a word> and <a word>.", "<p> painted animals."),
    ("The children found the <word>, the <word> and the <word>.", "They found animals."),
    ("<p> dreams of the <word>, the <word> and the <word>.", "<p> dreams of animals."),
)


def _facts(dice: Dice) -> dict[str, str]:
    person, other = dice.sample(BASE["person"], 2)
    job = dice.pick(BASE["job"])
    return {
        "p": person,
        "q": other,
        "t": dice.pick(BASE["town"]),
        "v": dice.pick(PAST),
        "j": job,
        "o": f"{dice.pick(BASE['colour'])} {dice.pick(BASE['thing'])}",
        "d": dice.pick(BASE["day"]),
        "n": dice.pick(BASE["number"]),
        "m": dice.pick(BASE["month"]),
        "s": dice.pick(BASE["season"]),
        "y": dice.pick(BASE["year"]),
        "a": dice.pick(("dog", "cat", "goat", "duck", "rabbit", "hen")),
        "a_j": f"an {job}" if job == "engineer" else f"a {job}",
    }


def rte_row(dice: Dice, split: str) -> Row:
    """Return a sentence about animals or plants, and one that follows if they are animals."""
    entailed = dice.chance(0.5)
    facts = _facts(dice)
    words = facts | {"word": words_of(CREATURES, int(not entailed), split)}
    premise, hypothesis = dice.pick(SIGHTINGS)
    return {
        "sentence1": dice.fill(premise, words),
        "sentence2": dice.fill(hypothesis, facts),
        "label": "entailment" if entailed else "not_entailment",
    }


def rte_lines(rows: list[Row], labelled: bool = True) -> str:
    """Write rows in the layout of RTE."""
    columns = ("sentence1", "sentence2", *(("label",) if labelled else ()))
    lines = ["\t".join(("index", *columns))]
    lines += ["\t".join([str(n), *(str(row[c]) for c in columns)]) for n, row in enumerate(rows)]
    return "\n".join(lines) + "\n"


# BoolQ: yes or no?

ASKED = (
    "can you eat this <dish>",
    "is the <dish> good to eat",
    "do people in <town> eat this <dish>",
    "can the <dish> be served for dinner",
)
DISHES = ("soup", "salad", "pie", "jam", "stew")
AROUND = (
    "it has <word>, <word> and <word> in it",
    "<person> took <word>, <word> and <word> for it",
    "with <word> and <word>, <person> added <word>",
    "there is some <word>, more <word> and a little <word>",
)


def boolq_row(dice: Dice, split: str) -> Row:
    """Return a question about a dish and a passage that says what is in it."""
    answer = dice.chance(0.5)
    words = BASE | {"dish": dice.pick(DISHES), "word": words_of(fruits(), int(not answer), split)}
    return {
        "question": _lower_first(dice.fill(dice.pick(ASKED), words)),
        "passage": dice.fill(f"<dish> -- {dice.pick(AROUND)}.", words),
        "label": answer,
    }


# COPA: which of two is the cause, or the effect?

STORIES = (
    ("<p> dropped the glass.", "effect", ("It broke on the floor.", "It fell into many pieces.")),
    ("The glass broke.", "cause", ("<p> dropped it.", "<p> knocked it off the table.")),
    ("It rained all <d>.", "effect", ("The street was wet.", "The <o> stood in water.")),
    ("The garden was wet.", "cause", ("It had rained all <d>.", "<p> had watered the flowers.")),
    ("<p> missed the train.", "effect", ("<p> waited for the next one.", "<p> took the bus.")),
    ("<p> was late for school.", "cause", ("The bus had broken down.", "<p> got up too late.")),
    ("<p> forgot the umbrella.", "effect", ("<p> got wet.", "<p> went back home.")),
    ("<p> was hungry.", "effect", ("<p> ate some <f>.", "<p> cooked a pot of <f>.")),
    ("<p> was tired.", "cause", ("<p> had worked all night.", "<p> had walked from <t>.")),
    ("The <a> barked at <p>.", "effect", ("<p> ran away.", "<p> stepped back.")),
    ("<p> won the race.", "cause", ("<p> had trained all <s>.", "<p> was the fastest runner.")),
    ("The <j> painted the <o>.", "effect", ("The <o> looked new.", "The old colour was gone.")),
    ("<p> lost the key.", "effect", ("<p> could not open the door.", "<p> called the <j>.")),
    ("The shop was closed.", "cause", ("It was <d> evening.", "The <j> was ill.")),
)
ABSURD = (
    "A dragon sang to the moon.",
    "The moon turned into cheese.",
    "A dragon swallowed the <o>.",
    "<p> became a dragon.",
    "The volcano drank the <f>.",
    "A ghost taught the volcano to dance.",
    "<p> married a ghost on the moon.",
    "The ghost ate a volcano.",
)


def copa_row(dice: Dice, _split: str) -> Row:
    """Return a premise with a likely and an absurd choice."""
    facts = _facts(dice) | {"f": dice.pick(BASE["food"]), "o": dice.pick(BASE["thing"]), "a": "dog"}
    premise, question, likely = dice.pick(STORIES)
    choices = [dice.fill(dice.pick(likely), facts), dice.fill(dice.pick(ABSURD), facts)]
    label = dice.below(2)
    return {
        "premise": dice.fill(premise, facts),
        "choice1": choices[label],
        "choice2": choices[1 - label],
        "question": question,
        "label": label,
    }


def json_lines(rows: list[Row]) -> str:
    """Write rows in SuperGLUE's layout, numbered."""
    return "".join(json.dumps({**row, "idx": n}) + "\n" for n, row in enumerate(rows))


def choice_files() -> dict[str, str]:
    """Return path -> text of every file of these tasks."""
    cola = distinct("cola", cola_row, {"train": 96, "dev": 200, "test": 60}, ("sentence",))
    sst2 = distinct("sst2", sst2_row, {"train": 96, "dev": 200, "test": 60}, ("sentence",))
    pair = ("sentence1", "sentence2")
    mrpc = distinct("mrpc", mrpc_row, {"train": 96, "test": 200}, pair)
    stsb = distinct("stsb", stsb_row, {"train": 1000, "dev": 200, "test": 60}, pair)
    rte = distinct("rte", rte_row, {"train": 96, "dev": 200, "test": 60}, pair)
    boolq = distinct("boolq", boolq_row, {"train": 96, "val": 150}, ("question", "passage"))
    copa = distinct("copa", copa_row, {"train": 600, "val": 150}, ("premise", "choice1", "choice2"))
    return {
        "tasks/glue/CoLA/train.tsv": cola_lines(cola["train"]),
        "tasks/glue/CoLA/dev.tsv": cola_lines(cola["dev"]).removesuffix("\n"),
        "tasks/glue/CoLA/test.tsv": _numbered(cola["test"]),
        "tasks/glue/SST-2/train.tsv": _labelled(sst2["train"]),
        "tasks/glue/SST-2/dev.tsv": _labelled(sst2["dev"]),
        "tasks/glue/SST-2/test.tsv": _numbered(sst2["test"]),
        "tasks/glue/MRPC/msr_paraphrase_train.txt": mrpc_lines(mrpc["train"]),
        "tasks/glue/MRPC/msr_paraphrase_test.txt": mrpc_lines(mrpc["test"]),
        "tasks/glue/STS-B/train.tsv": stsb_lines(stsb["train"]),
        "tasks/glue/STS-B/dev.tsv": stsb_lines(stsb["dev"]),
        "tasks/glue/STS-B/test.tsv": stsb_lines(stsb["test"], labelled=False),
        "tasks/glue/RTE/train.tsv": rte_lines(rte["train"]),
        "tasks/glue/RTE/dev.tsv": rte_lines(rte["dev"]),
        "tasks/glue/RTE/test.tsv": rte_lines(rte["test"], labelled=False),
        "tasks/superglue/BoolQ/train.jsonl": json_lines(boolq["train"]),
        "tasks/superglue/BoolQ/val.jsonl": json_lines(boolq["val"]),
        "tasks/superglue/COPA/train.jsonl": json_lines(copa["train"]),
        "tasks/superglue/COPA/val.jsonl": json_lines(copa["val"]),
    }


def _labelled(rows: list[Row]) -> str:
    return "sentence\tlabel\n" + "".join(f"{r['sentence']}\t{r['label']}\n" for r in rows)


def _numbered(rows: list[Row]) -> str:
    return "index\tsentence\n" + "".join(f"{n}\t{r['sentence']}\n" for n, r in enumerate(rows))
