"""Text metrics against their definitions, on random and on adversarial input."""

import collections
import math
import random
import re
import string

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st
from rouge_score import scoring
from rouge_score.rouge_scorer import RougeScorer

from t5repro.metrics import text as metrics

CASES = 1000
WORDS = (
    *("the", "cat", "sat", "on", "a", "mat", ".", ",", "!", "3.5", "1,000", "Straße", "l'été"),
    *("«", "»", "(x)", "%", "€5", "don't", "word-", "—", "“q”", "dog", "in", "of", "ş", "An"),
    *("THE", "a.b", "$$$$"),
)


def random_text(draw, most=12):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(0, most)))


def near(draw, text):
    """Return a text that shares much with `text`, or nothing."""
    kind = draw.random()
    if kind < 0.15:
        return random_text(draw)
    if kind < 0.25:
        return ""
    return " ".join(word for word in text.split() if draw.random() > 0.2)


# SQuAD: the evaluation of v1.1, written anew from its definition


def official_words(text):
    letters = [c for c in text.lower() if c not in set(string.punctuation)]
    words = "".join(letters)
    for article in ("a", "an", "the"):
        words = re.sub(rf"(?<!\w){article}(?!\w)", " ", words)
    return words.split()


def official_exact(gold, said):
    return float(official_words(gold) == official_words(said))


def official_f1(gold, said):
    gold, said = official_words(gold), official_words(said)
    left = list(gold)
    common = 0
    for word in said:
        if word in left:
            left.remove(word)
            common += 1
    if common == 0:
        return 0.0
    return 2 * common / (len(gold) + len(said))


def test_squad_equals_the_official_evaluation():
    for seed in range(CASES):
        draw = random.Random(seed)
        golds = [[random_text(draw, 5) for _ in range(draw.randint(1, 3))] for _ in range(4)]
        said = [near(draw, draw.choice(options)) for options in golds]
        pairs = list(zip(golds, said, strict=True))
        exact = sum(max(official_exact(g, p) for g in gs) for gs, p in pairs)
        overlap = sum(max(official_f1(g, p) for g in gs) for gs, p in pairs)
        found = metrics.squad(golds, said)
        assert found == pytest.approx({"em": 100 * exact / 4, "f1": 100 * overlap / 4})


def test_squad_of_the_released_tests():
    """Source: metrics_test.test_qa_big, test_qa_small, test_same_qa, test_different_qa."""
    golds = [["big moose", "hippo"], ["correct1"], ["correct2.1", "correct2.2"], ["a", "b"]]
    said = ["a big  Moose!", "wrong", "correct2.2", "c"]
    assert metrics.squad(golds, said) == {"em": 50.0, "f1": 50.0}
    small = metrics.squad([["abc abd", "$$$$"]], ["abd"])
    assert small == pytest.approx({"em": 0.0, "f1": 100 * 2 / 3})
    ref = "this is a string"
    assert metrics.squad([["", ref], [ref, ref]], [ref, ref]) == {"em": 100.0, "f1": 100.0}
    assert metrics.squad([[ref, ref], [ref, ref]], ["", ""]) == {"em": 0.0, "f1": 0.0}


def test_unicode_quotes_are_not_punctuation_and_articles_are_whole_words():
    assert metrics.normalize_answer("The “Anthem”, an  A-side!") == "“anthem” aside"
    assert metrics.normalize_answer("a.an.the") == "aanthe"


def test_empty_prediction_and_empty_gold_agree_exactly_but_share_no_word():
    assert metrics.squad([["the"]], [""]) == {"em": 100.0, "f1": 0.0}
    assert metrics.squad([], []) == {"em": 0.0, "f1": 0.0}


def test_record_scores_the_first_row_of_each_query():
    answers = [["Ann", "Bo"], ["Ann", "Bo"], ["Cy"]]
    groups = [(1, 2), (1, 2), (1, 3)]
    assert metrics.record(answers, ["Bo", "Dee", "Cy"], groups) == {"em": 100.0, "f1": 100.0}
    assert metrics.record(answers, ["Dee", "Bo", "Cy"], groups) == {"em": 50.0, "f1": 50.0}


def test_record_equals_squad_over_first_rows():
    for seed in range(CASES):
        draw = random.Random(seed)
        rows = draw.randint(1, 10)
        groups = [(0, draw.randint(0, 4)) for _ in range(rows)]
        golds = {group: [random_text(draw, 3)] for group in groups}
        said = [near(draw, golds[group][0]) for group in groups]
        kept = [i for i in range(rows) if groups[i] not in groups[:i]]
        expected = metrics.squad([golds[groups[i]] for i in kept], [said[i] for i in kept])
        assert metrics.record([golds[g] for g in groups], said, groups) == expected


# The Winograd rule


@pytest.mark.parametrize(
    ("prediction", "referent", "expected"),
    [
        ("Tom", "Tom", 1),
        ("tom ", "Tom", 1),
        ("the bunny", "a bunny", 1),
        ("fuzzy bunny", "the bunny", 1),
        ("bunny", "The fuzzy bunny", 1),
        ("Bob", "Bob's hat", 0),
        ("Bob's hat", "Bob", 0),
        ("Bob's hat", "his Bob's hat", 1),
        ("Bob’s", "Bob", 0),
        ("fuzzy dog", "fuzzy bunny", 0),
        ("", "Tom", -1),
        ("   ", "Tom", -1),
        ("the", "the", -1),
        ("Tom", "", 0),
        ("Tom.", "Tom", 0),
    ],
)
def test_the_winograd_rule(prediction, referent, expected):
    assert metrics.names_referent(prediction, referent) == expected


@given(st.text(), st.text())
def test_the_winograd_rule_is_symmetric_where_both_say_something(one, other):
    there, back = metrics.names_referent(one, other), metrics.names_referent(other, one)
    assert there == back or -1 in (there, back)


# BLEU: Papineni's definition with sacrebleu's smoothing, written anew


def international_words(text):
    text = regex.sub(r"(\P{N})(\p{P})", r"\1 \2 ", text.rstrip())
    text = regex.sub(r"(\p{P})(\P{N})", r" \1 \2", text)
    return regex.sub(r"(\p{S})", r" \1 ", text).split()


def ngrams(words, order):
    return collections.Counter(zip(*(words[i:] for i in range(order)), strict=False))


def bleu_by_definition(streams, said):
    hits, totals = [0] * 4, [0] * 4
    length = reference_length = 0
    for row, text in enumerate(said):
        words = international_words(text)
        references = [international_words(stream[row]) for stream in streams]
        length += len(words)
        reference_length += min(
            (len(reference) for reference in references), key=lambda n: (abs(n - len(words)), n)
        )
        for order in range(1, 5):
            allowed = collections.Counter()
            for reference in references:
                allowed |= ngrams(reference, order)
            found = ngrams(words, order)
            hits[order - 1] += sum((found & allowed).values())
            totals[order - 1] += sum(found.values())
    if not any(hits) or not all(totals):
        return 0.0
    logs, smooth = 0.0, 1.0
    for hit, total in zip(hits, totals, strict=True):
        if hit:
            logs += math.log(100 * hit / total)
        else:
            smooth *= 2
            logs += math.log(100 / (smooth * total))
    penalty = math.exp(min(0.0, 1 - reference_length / length))
    return penalty * math.exp(logs / 4)


def test_bleu_equals_its_definition():
    above_zero = 0
    for seed in range(CASES):
        draw = random.Random(seed)
        references = [random_text(draw) for _ in range(draw.randint(1, 6))]
        said = [near(draw, reference) for reference in references]
        found = metrics.bleu([references], said)
        assert found == pytest.approx(bleu_by_definition([references], said), abs=1e-9)
        above_zero += found > 0
    assert above_zero > CASES / 2


def test_bleu_with_two_reference_streams_equals_its_definition():
    for seed in range(100):
        draw = random.Random(seed)
        first = [random_text(draw) for _ in range(3)]
        second = [near(draw, text) for text in first]
        said = [near(draw, text) for text in first]
        found = metrics.bleu([first, second], said)
        assert found == pytest.approx(bleu_by_definition([first, second], said), abs=1e-9)


def test_bleu_of_the_released_tests():
    """Source: metrics_test.test_same_bleu, test_different_bleu, test_multiple_references_bleu."""
    ref = "this is a string"
    assert metrics.bleu([[ref, ref]], [ref, ref]) == pytest.approx(100.0)
    assert metrics.bleu([[ref, ref]], ["", ""]) == 0.0
    assert metrics.bleu([["", ref], [ref, ""]], [ref, ref]) == pytest.approx(100.0)


def test_bleu_of_known_corpora():
    """Values of sacrebleu 1.3.1 with tokenize="intl", smooth_method="exp", smooth_value=0.0."""
    same = "Straße 3.5 « x » the cat sat , don't !"
    assert metrics.bleu([[same]], [same]) == pytest.approx(100.0)
    found = metrics.bleu([["the cat sat on the mat ."]], ["the cat sat on a mat ."])
    assert found == pytest.approx(48.892302243490086)
    short = metrics.bleu([["one two three four five six"]], ["one two three five"])
    assert short == pytest.approx(38.75385825373298)


def test_a_translation_without_a_right_word_scores_zero():
    assert metrics.bleu([["a b c d e"]], ["v w x y z"]) == 0.0
    assert metrics.bleu([[""]], ["v w x y z"]) == 0.0
    assert metrics.bleu([[]], []) == 0.0


def test_a_hundred_tokenized_lines_raise_no_warning(caplog):
    metrics.bleu([["a b c ."] * 200], ["a b c ."] * 200)
    assert not caplog.records


def test_the_signature_says_tokenizer_smoothing_and_version():
    assert re.fullmatch(
        r"nrefs:1\|case:mixed\|eff:no\|tok:intl\|smooth:exp\|version:2\.5\.\d+",
        metrics.bleu_signature(),
    )
    assert metrics.bleu_signature(2).startswith("nrefs:2|")


# ROUGE


def rouge_words(text):
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).split()


def overlap_f(target, said, order):
    one, other = ngrams(rouge_words(target), order), ngrams(rouge_words(said), order)
    common = sum((one & other).values())
    total = sum(one.values()) + sum(other.values())
    return 200 * common / total if common else 0.0


def test_rouge_n_equals_its_definition():
    for seed in range(CASES):
        draw = random.Random(seed)
        target = random_text(draw)
        said = near(draw, target)
        rows = metrics.rouge_rows([target], [said])
        assert rows["rouge1"][0] == pytest.approx(overlap_f(target, said, 1))
        assert rows["rouge2"][0] == pytest.approx(overlap_f(target, said, 2))


def test_rouge_lsum_takes_a_spaced_full_stop_as_the_end_of_a_line():
    scorer = RougeScorer(["rougeLsum"])
    for seed in range(CASES):
        draw = random.Random(seed)
        target, said = random_text(draw), random_text(draw)
        lines = [text.replace(" . ", " .\n") for text in (target, said)]
        expected = 100 * scorer.score(*lines)["rougeLsum"].fmeasure
        assert metrics.rouge_rows([target], [said])["rougeLsum"][0] == pytest.approx(expected)
    swapped = metrics.rouge_rows(["a b . c d ."], ["c d . a b ."])
    assert swapped["rougeLsum"][0] == pytest.approx(100.0)


def test_rouge_of_the_released_tests():
    """Source: metrics_test.test_same_rouge and test_different_rouge."""
    ref = "this is a string"
    same = metrics.rouge_mean(metrics.rouge_rows([ref, ref], [ref, ref]))
    assert same == {"rouge1": 100.0, "rouge2": 100.0, "rougeLsum": 100.0}
    other = metrics.rouge_mean(metrics.rouge_rows([ref, ref], ["", ""]))
    assert other == {"rouge1": 0.0, "rouge2": 0.0, "rougeLsum": 0.0}


def scored_rows(seed, count):
    draw = random.Random(seed)
    targets = [random_text(draw) for _ in range(count)]
    return metrics.rouge_rows(targets, [near(draw, target) for target in targets])


def test_the_bootstrap_is_a_function_of_its_seed():
    rows = scored_rows(0, 40)
    assert metrics.rouge_bootstrap(rows) == metrics.rouge_bootstrap(rows)
    assert metrics.rouge_bootstrap(rows, seed=1) != metrics.rouge_bootstrap(rows, seed=2)


def test_the_bootstrap_equals_rouge_scores_own_given_the_same_draws(monkeypatch):
    rows = scored_rows(1, 30)
    for key, values in rows.items():
        draws = metrics.stream(3, "rouge", key)
        monkeypatch.setattr(
            scoring.np.random,
            "choice",
            lambda items, size, draws=draws: items[draws.integers(0, len(items), size)],
        )
        aggregator = scoring.BootstrapAggregator()
        for value in values:
            aggregator.add_scores({key: scoring.Score(value, value, value)})
        expected = aggregator.aggregate()[key].mid.fmeasure
        assert metrics.rouge_bootstrap(rows, seed=3)[key] == pytest.approx(expected)


def test_the_bootstrap_is_near_the_mean():
    rows = scored_rows(2, 200)
    mean, middle = metrics.rouge_mean(rows), metrics.rouge_bootstrap(rows)
    for key in metrics.ROUGE_KEYS:
        assert middle[key] == pytest.approx(mean[key], abs=1.0)
        assert middle[key] != mean[key]


def test_no_summaries_give_zero():
    rows = metrics.rouge_rows([], [])
    zero = dict.fromkeys(metrics.ROUGE_KEYS, 0.0)
    assert metrics.rouge_mean(rows) == zero
    assert metrics.rouge_bootstrap(rows) == zero


def test_the_rouge_signature_says_library_and_bootstrap():
    assert metrics.rouge_signature() == (
        "rouge_score:0.1.2|stemmer:no|keys:rouge1+rouge2+rougeLsum"
        "|value:mean|bootstrap:1000 samples, seed 0, median"
    )


@pytest.mark.parametrize(
    "metric",
    [
        metrics.squad,
        lambda answers, said: metrics.record(answers, said, [1, 2]),
        lambda answers, said: metrics.bleu([["x", "y"]], said),
        metrics.rouge_rows,
    ],
)
def test_lengths_that_differ_are_refused(metric):
    with pytest.raises(ValueError, match="2 answers or groups and 1 predictions"):
        metric([["x"], ["y"]], ["x"])


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=4))
def test_any_text_gives_scores_from_0_to_100(pairs):
    targets, said = map(list, zip(*pairs, strict=True))
    values = [
        metrics.bleu([targets], said),
        *metrics.squad([[target] for target in targets], said).values(),
        *metrics.rouge_mean(metrics.rouge_rows(targets, said)).values(),
    ]
    assert np.all(np.isfinite(values))
    assert all(0.0 <= value <= 100.0 + 1e-9 for value in values)


DETERMINERS = re.compile(
    r"a|an|few|her|his|each|every|many|much|my|our|some|that|the|their|these|this|those|which|"
    r"whose|your"
)


def bare(phrase):
    """Return a phrase in lower case without determiners; single spaces part its words."""
    words = phrase.lower().strip().split(" ")
    return " ".join(word for word in words if not DETERMINERS.fullmatch(word))


def test_the_winograd_rule_equals_its_definition():
    """Source: released code, `postprocessors.wsc_simple`, written anew from its description."""
    names = ("The", "cat", "Bob's", "hat", "a", "big", "dog", "her", "Ann", "’s", "")
    for seed in range(CASES):
        draw = random.Random(seed)
        said, wanted = (
            " ".join(draw.choice(names) for _ in range(draw.randint(0, 4))) for _ in range(2)
        )
        left, right = bare(said), bare(wanted)
        if not left:
            expected = -1
        elif ("'" in left) != ("'" in right):
            expected = 0
        else:
            one, other = set(left.split(" ")), set(right.split(" "))
            expected = int(one <= other or other <= one)
        assert metrics.names_referent(said, wanted) == expected, (said, wanted)
