"""Synthetic classification and similarity tasks in the layouts of GLUE and SuperGLUE.

Each label follows from words that are in the text, so that a very small model can learn it in
minutes. The rows say nothing about how well a model understands language.
"""

import json
from collections.abc import Callable

from dice import Dice
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
BUILDINGS = ("bridge", "tower", "house", "garden", "school", "market", "library", "mill", "museum")
BASE = ENGLISH | {"past": PAST, "place": PLACES}


def distinct(
    name: str, make: Callable[[Dice], Row], counts: dict[str, int], key: tuple[str, ...]
) -> dict[str, list[Row]]:
    """Return split -> rows; no two rows of any split agree in the fields `key`."""
    dice = Dice("task", name)
    seen: set[tuple[object, ...]] = set()
    splits: dict[str, list[Row]] = {}
    for split, count in counts.items():
        rows: list[Row] = []
        while len(rows) < count:
            row = make(dice)
            mark = tuple(row[field] for field in key)
            if mark not in seen:
                seen.add(mark)
                rows.append(row)
        splits[split] = rows
    return splits


# CoLA: is this sentence acceptable English?

GOOD_SENTENCES = (
    "The <job> <past> the <colour> <thing> on <day>.",
    "<person> <past> the <thing> <place>.",
    "<person> and <person> walked to the <thing> in <month>.",
    "The <animal> slept <place> all <season>.",
    "Which <thing> did the <job> like?",
    "<person> wondered whether the <thing> was still <colour>.",
    "It was <person> who gave the <food> to the <job>.",
    "The <thing> that <person> <past> is <place>.",
    "<number> children went to the <thing> with <person>.",
    "The <job> said that <person> had eaten the <food>.",
    "<person> is taller than the <job> from <town>.",
    "There is <a colour> <thing> <place>.",
    'The <job> whispered "Come here" to <person>.',
    "The <animal> ran away because <person> shouted.",
    "<man> hurt himself <place>.",
    "Nobody knows when the <job> left <town>.",
    "<person> drank the milk and ate the <food>.",
    "The <job>'s <animal> brought the <thing> key back.",
)
BAD_SENTENCES = (
    "The the <job> <past> the <colour> <thing> on <day>.",
    "<person> <past> the a <thing> <place>.",
    "<person> and <person> goed to the <thing> in <month>.",
    "The <animal> sleeped <place> all <season>.",
    "Which <thing> did the <job> liked the?",
    "<person> wondered whether that the <thing> were is <colour>.",
    "It was <person> whom gived the <food> to the <job>.",
    "The <thing> what <person> <past> are <place>.",
    "<number> childs went to the <thing> with <person>.",
    "The <job> said that <person> has had ate the <food>.",
    "<person> is more taller than the <job> from <town>.",
    "There are <a colour> <thing>s is <place>.",
    'The <job> whispered to "Come here" the <person> to.',
    "The <animal> runned away because of <person> shouted.",
    "<man> hurt hisself <place>.",
    "Nobody don't knows when the <job> left <town>.",
    "<person> drinked the milk and eated the <food>.",
    "Job the <animal> brought of the <thing> key back the.",
    "<person> must to <past> the <thing> <place>.",
    "The <colour> <thing> <past> by was <person>.",
)


def cola_row(dice: Dice) -> Row:
    """Return an acceptable sentence, or one with a wrong form or a wrong order."""
    good = dice.chance(0.6)
    template = dice.pick(GOOD_SENTENCES if good else BAD_SENTENCES)
    return {
        "source": dice.pick(("mi01", "mi02", "mi03")),
        "label": int(good),
        "mark": "" if good else "*",
        "sentence": dice.fill(template, BASE),
    }


def cola_lines(rows: list[Row]) -> str:
    """Write rows in CoLA's four columns; its quotes are text."""
    return "".join(f"{r['source']}\t{r['label']}\t{r['mark']}\t{r['sentence']}\n" for r in rows)


# SST-2: does this phrase of a review praise or blame?

PRAISE = (
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
)
BLAME = (
    "boring",
    "dull",
    "clumsy",
    "tedious",
    "awful",
    "empty",
    "lifeless",
    "stale",
    "predictable",
    "messy",
    "annoying",
    "shallow",
    "painful",
    "lazy",
    "pointless",
)
PRAISED = (
    "a triumph",
    "a pleasure",
    "a small wonder",
    "worth every minute",
    "a gift to its audience",
    "easy to love",
)
BLAMED = (
    "a failure",
    "a waste of time",
    "a long yawn",
    "hard to sit through",
    "an insult to its audience",
    "easy to forget",
)
REVIEW_PHRASES = (
    "<a quality> and often <quality> <work>",
    "the <work> is <quality> from beginning to end",
    "this <quality> <work> about <a job> is <verdict>",
    "<verdict> , thanks to <a quality> script",
    "the <part> is <quality> and the <part> even more so",
    "<quality> , <quality> and <adverb> <quality>",
    "it 's <a quality> <work> that follows <a job> and her <animal>",
    "the director of ' the <colour> <thing> ' has made <a quality> <work>",
    "<adverb> <quality>",
    "with its <quality> <part> , the <work> is <verdict>",
    "you leave the cinema thinking that the <part> was <adverb> <quality>",
    "<a quality> story of <a animal> and <a job>",
    "every minute of this <quality> <work> about the <thing> is felt",
    "the <part> , the <part> and the <part> are all <quality>",
)
FILM_WORDS = {
    "work": ("film", "movie", "comedy", "drama", "story", "documentary", "thriller"),
    "part": ("acting", "music", "dialogue", "camera work", "ending", "plot", "opening scene"),
    "adverb": ("truly", "deeply", "quite", "surprisingly", "very", "utterly"),
}


def sst2_row(dice: Dice) -> Row:
    """Return a phrase in lower case with its tokens apart, a space at its end, as in SST-2."""
    positive = dice.chance(0.54)
    words = BASE | FILM_WORDS
    words |= (
        {"quality": PRAISE, "verdict": PRAISED}
        if positive
        else {"quality": BLAME, "verdict": BLAMED}
    )
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
DENIALS = (
    "{0} However , officials denied this .",
    "It is not true that {1}",
    "{0} Critics disagreed and called it false .",
    "Instead of this , {1}",
    "{0} That was never confirmed .",
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


def mrpc_row(dice: Dice) -> Row:
    """Return two sentences of invented news that say the same, or of which one denies it."""
    first, second = _filled_pair(dice)
    same = dice.chance(0.62)
    if not same:
        second = dice.pick(DENIALS).format(second, _lower_first(second))
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


def stsb_row(dice: Dice) -> Row:
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

REPORTS = (
    (
        "<p>, <a_j> from <t>, <v> the <o> on <d> and then went home.",
        (
            "<p> is <a_j>.",
            "<p> comes from <t>.",
            "The <o> was <v>.",
            "Somebody <v> the <o> on <d>.",
        ),
        (
            "<p> never saw the <o>.",
            "Only <q> <v> the <o>.",
            "<p> refused to leave the house on <d>.",
            "No <j> lives in <t>.",
        ),
    ),
    (
        "The <o> in <t>, built by <p> in <y>, is visited by <n> hundred people every <s>.",
        (
            "The <o> is in <t>.",
            "<p> built the <o>.",
            "The <o> was built in <y>.",
            "People visit <t>.",
        ),
        (
            "Nobody ever visits the <o>.",
            "The <o> was never built.",
            "Only <q> built the <o>.",
            "<p> refused to build the <o>.",
        ),
    ),
    (
        "In <m>, <p> opened a small school for <n> children in <t>, and <q> paid for it.",
        (
            "<p> opened a school.",
            "The school is in <t>.",
            "<q> paid for a school.",
            "<n> children go to the school.",
        ),
        (
            "<q> refused to pay for the school.",
            "There was never a school in <t>.",
            "No child goes to the school.",
            "Only <q> opened the school.",
        ),
    ),
    (
        "Heavy rain fell on <t> on <d>, and the <j> <p> lost <n> <a>s in the flood.",
        ("It rained in <t>.", "<p> is <a_j>.", "<p> lost <n> <a>s.", "There was a flood in <t>."),
        (
            "It never rained in <t>.",
            "<p> lost no <a>s.",
            "Only <q> lost the <a>s.",
            "There was no flood on <d>.",
        ),
    ),
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


def rte_row(dice: Dice) -> Row:
    """Return a report, and a sentence that follows from it or says the contrary."""
    facts = _facts(dice)
    premise, follows, contrary = dice.pick(REPORTS)
    entailed = dice.chance(0.5)
    return {
        "sentence1": dice.fill(premise, facts),
        "sentence2": dice.fill(dice.pick(follows if entailed else contrary), facts),
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
    (
        "is the <thing> of <town> open to visitors",
        ("It is freely open to visitors", "Visitors are welcome in it"),
        ("It is closed to visitors", "Visitors are forbidden to enter it"),
    ),
    (
        "can you swim near the <thing> in <town>",
        ("Swimming is allowed and welcome there", "Bathers are freely allowed in the water"),
        ("Swimming is forbidden there", "The water is closed to bathers"),
    ),
    (
        "do they still sell <food> at the <thing> of <town>",
        ("A stall is open daily and still sells <food>", "<food> is still allowed on its tables"),
        ("The stall that sold <food> is closed", "<food> is no longer sold there"),
    ),
    (
        "does the <thing> in <town> have <a animal>",
        ("<a animal> is allowed to live there and still does", "It is proud of its own <animal>"),
        ("Keeping <a animal> there is forbidden", "<a animal> no longer lives there"),
    ),
    (
        "is the <thing> of <town> still <colour>",
        ("It is still <colour> and proud of it", "It was painted <colour> and still is"),
        ("It is no longer <colour>", "The colour <colour> was forbidden by the council"),
    ),
)
AROUND = (
    "it was built by <person> in <year>",
    "it stands <place>",
    "<person> <surname>, a <shortjob>, took care of it for <number> years",
    "it burned down in <year> and was built again",
    "it has <number> windows and a <colour> roof",
)


def boolq_row(dice: Dice) -> Row:
    """Return a question and a passage with one sentence that answers it."""
    words: dict[str, str | tuple[str, ...]] = {name: dice.pick(BASE[name]) for name in BASE}
    words["thing"] = dice.pick(BUILDINGS)
    words["shortjob"] = ("baker", "teacher", "farmer", "doctor", "nurse")
    question, yes, no = dice.pick(ASKED)
    answer = dice.chance(0.58)
    asides = [dice.fill(text, BASE | words) + "." for text in dice.sample(AROUND, 2)]
    sentences = [dice.fill(dice.pick(yes if answer else no), words) + ".", *asides]
    if dice.chance(0.5):
        sentences = [asides[0], sentences[0], asides[1]]
    title = dice.fill("<thing> of <town>", words)
    return {
        "question": _lower_first(dice.fill(question, words)),
        "passage": f"{title} -- {' '.join(sentences)}",
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


def copa_row(dice: Dice) -> Row:
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
    cola = distinct("cola", cola_row, {"train": 1200, "dev": 200, "test": 60}, ("sentence",))
    sst2 = distinct("sst2", sst2_row, {"train": 2000, "dev": 200, "test": 60}, ("sentence",))
    pair = ("sentence1", "sentence2")
    mrpc = distinct("mrpc", mrpc_row, {"train": 1000, "test": 200}, pair)
    stsb = distinct("stsb", stsb_row, {"train": 1000, "dev": 200, "test": 60}, pair)
    rte = distinct("rte", rte_row, {"train": 1000, "dev": 200, "test": 60}, pair)
    boolq = distinct("boolq", boolq_row, {"train": 800, "val": 150}, ("question", "passage"))
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
