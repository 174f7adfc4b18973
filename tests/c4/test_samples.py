from hypothesis import given
from hypothesis import strategies as st

from t5repro.c4.samples import EXAMPLES, EXCERPT_CHARS, Samples


def rank(number):
    return (f"{number:032x}", "file", number)


def collect(numbers):
    samples = Samples()
    for number in numbers:
        samples.offer("reason", rank(number), f"http://{number}", f"text {number}")
    return samples


def test_the_three_smallest_ranks_are_kept_and_excerpts_are_short():
    samples = collect([5, 1, 4, 2, 3])
    assert samples.readable() == {
        "reason": [
            {"file": "file", "record": number, "url": f"http://{number}", "text": f"text {number}"}
            for number in (1, 2, 3)
        ]
    }
    assert samples.pages()["reason"][0] == {"file": "file", "record": 1, "url": "http://1"}
    samples.offer("long", rank(1), "http://x", "  many\n  words " * 200)
    text = samples.readable()["long"][0]["text"]
    assert len(text) == EXCERPT_CHARS
    assert text.startswith("many words many")


def test_an_offer_is_wanted_only_if_it_would_be_kept():
    samples = collect([1, 3, 5])
    assert samples.wants("reason", rank(4))
    assert not samples.wants("reason", rank(6))
    assert samples.wants("another", rank(6))


@given(st.lists(st.integers(0, 99), unique=True), st.integers(0, 50))
def test_parts_merge_to_the_sample_of_the_whole(numbers, cut):
    merged = collect(numbers[:cut])
    merged.merge(collect(numbers[cut:]).to_json())
    assert merged.readable() == collect(sorted(numbers)).readable()
    assert len(merged.readable().get("reason", ())) == min(EXAMPLES, len(numbers))
