"""Where the released code leans on TensorFlow's arithmetic and regular expressions, so do we."""

import random
import string

import pytest

from t5repro.tasks.generation import (
    ASCII_PUNCTUATION,
    NOT_A_WORD_CHARACTER,
    format_squad,
    pad_punctuation,
)
from t5repro.tasks.glue import format_similarity

pytestmark = pytest.mark.keras

LETTERS = string.printable + "éßțş“”—…\u00a0\u2003\u2028\u0301日😀\x85\x1c"


@pytest.mark.parametrize(
    ("released", "padded"),
    [(r"(\W)", NOT_A_WORD_CHARACTER), (r"([[:punct:]])", ASCII_PUNCTUATION)],
    ids=["2019", "2022"],
)
def test_punctuation_is_padded_as_tensorflow_does(released, padded):
    tf = pytest.importorskip("tensorflow")
    draw = random.Random(0)
    texts = ["".join(draw.choices(LETTERS, k=draw.randint(0, 40))) for _ in range(1000)]
    spaced = tf.strings.regex_replace(texts, released, r" \1 ")
    expected = tf.strings.regex_replace(spaced, r"\s+", " ")
    assert [pad_punctuation(text, padded).encode() for text in texts] == expected.numpy().tolist()
    joined = tf.strings.regex_replace(
        tf.strings.join(["question:", expected, "context:", expected[::-1]], separator=" "),
        r"\s+",
        " ",
    )
    rows = zip(texts, texts[::-1], strict=True)
    actual = [
        format_squad(
            {"question": q, "context": c, "answers": ["a"], "spans": (), "idx": 0}, padded=padded
        )[0].inputs.encode()
        for q, c in rows
    ]
    assert actual == joined.numpy().tolist()


def test_similarities_are_rounded_as_tensorflow_does():
    tf = pytest.importorskip("tensorflow")
    scores = [n / 1000 for n in range(5001)]
    labels = tf.constant(scores, tf.float32)
    expected = tf.as_string(tf.round(labels * 5) / 5, precision=1)
    rows = [{"sentence1": "a", "sentence2": "b", "label": score, "idx": 0} for score in scores]
    actual = [format_similarity(row)[0].targets.encode() for row in rows]
    assert actual == expected.numpy().tolist()
