import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from t5repro.objectives.corruption import (
    Corrupted,
    append_final_sentinel,
    drop_noise,
    flatten,
    noise_to_one_sentinel,
    noise_to_random_token_or_sentinel,
    permute_noise,
    sentinel_overflow,
    spans_to_unique_sentinels,
)
from t5repro.objectives.masks import first_positions
from t5repro.vocab.special_ids import FIRST_PIECE_ID

TOTAL_IDS = 1000
TEXT = "Thank you for inviting me to your party last week ."  # table 3 of the paper
SENTENCE = TEXT.split()
NOISE = {"for", "inviting", "last"}


def segments(masks: list[list[bool]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return tokens 10, 11, ..., the masks and which places are within a segment."""
    width = max(map(len, masks))
    tokens = np.zeros((len(masks), width), np.int32)
    mask = np.zeros((len(masks), width), bool)
    for number, row in enumerate(masks):
        tokens[number, : len(row)] = np.arange(10, 10 + len(row))
        mask[number, : len(row)] = row
    return tokens, mask, first_positions(np.array([len(row) for row in masks]), width)


def pair(masks: list[list[bool]], limit: int = 100) -> list[tuple[list[int], list[int]]]:
    """Return inputs and targets of each segment."""
    tokens, mask, valid = segments(masks)
    sides = []
    for replaced in (mask, ~mask):
        corrupted = spans_to_unique_sentinels(tokens, replaced, valid, total_ids=TOTAL_IDS)
        flat = flatten(corrupted, limits=np.full(len(masks), limit))
        ends = np.cumsum(flat.lengths)
        sides.append([part.tolist() for part in np.split(flat.ids, ends[:-1])])
    return list(zip(*sides, strict=True))


def twin(mask: list[bool]) -> list[int]:
    """Replace runs by sentinels, one token at a time."""
    made: list[int] = []
    sentinel = TOTAL_IDS
    before = False
    for token, replaced in enumerate(mask, start=10):
        if replaced and not before:
            sentinel -= 1
            made.append(sentinel)
        elif not replaced:
            made.append(token)
        before = replaced
    return [*made, 1]


def test_the_sentence_of_the_paper_gives_the_pair_of_the_paper():
    ((inputs, targets),) = pair([[word in NOISE for word in SENTENCE]])
    words = dict(enumerate(SENTENCE, start=10))
    words |= {999: "<X>", 998: "<Y>", 997: "<Z>", 1: "</s>"}
    assert " ".join(words[token] for token in inputs) == (
        "Thank you <X> me to your party <Y> week . </s>"
    )
    # The released code numbers the runs that the targets replace: the first words are one.
    assert " ".join(words[token] for token in targets) == ("<X> for inviting <Y> last <Z> </s>")


def test_targets_start_without_a_sentinel_when_the_first_token_is_noise():
    assert pair([[True, False, False, True]]) == [([999, 11, 12, 998, 1], [10, 999, 13, 1])]


@settings(max_examples=80)
@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=40), min_size=1, max_size=5))
def test_both_sides_are_those_of_the_twin(masks: list[list[bool]]):
    assert pair(masks) == [(twin(mask), twin([not noise for noise in mask])) for mask in masks]


@settings(max_examples=80)
@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_inputs_and_targets_together_restore_the_text(mask: list[bool]):
    mask = [False, *mask, True]  # as random spans begin and end
    ((inputs, targets),) = pair([mask])
    noise: dict[int, list[int]] = {}
    for token in targets[:-1]:
        if token > 500:
            noise[token] = current = []
        else:
            current.append(token)
    restored = [token for item in inputs[:-1] for token in (noise[item] if item > 500 else [item])]
    assert restored == list(range(10, 10 + len(mask)))


def test_long_segments_are_cut_before_eos():
    tokens, mask, valid = segments([[False] * 6, [False] * 3])
    corrupted = spans_to_unique_sentinels(tokens, mask, valid, total_ids=TOTAL_IDS)
    flat = flatten(corrupted, limits=np.array([4, 4]))
    assert flat.ids.tolist() == [10, 11, 12, 1, 10, 11, 12, 1]
    assert flat.lengths.tolist() == [4, 4]
    assert flat.cut.tolist() == [3, 0]


def test_runs_past_the_last_sentinel_are_counted_and_take_ids_of_pieces():
    tokens, mask, valid = segments([[True, False] * 4, [True, False]])
    assert sentinel_overflow(mask, valid, extra_ids=3).tolist() == [1, 0]
    ids = spans_to_unique_sentinels(tokens, mask, valid, total_ids=TOTAL_IDS).ids
    assert ids[0, ::2].tolist() == [999, 998, 997, 996]


def test_targets_that_need_one_sentinel_more_than_inputs_are_counted():
    tokens, mask, valid = segments([[False, True] * 3 + [False], [True, False] * 3, [False, True]])
    overflow = sentinel_overflow(mask, valid, extra_ids=3)
    assert overflow.tolist() == [1, 0, 0]
    targets = spans_to_unique_sentinels(tokens, ~mask, valid, total_ids=TOTAL_IDS).ids
    assert targets[0, ::2].tolist() == [999, 998, 997, 996]  # 996 is the id of a piece


def test_the_sentinel_that_ends_targets_is_counted():
    tokens, mask, valid = segments([[False, True] * 3, [True, False] * 3, [False, True]])
    overflow = sentinel_overflow(mask, valid, extra_ids=3, final_sentinel=True)
    assert overflow.tolist() == [1, 0, 0]
    targets = spans_to_unique_sentinels(tokens, ~mask, valid, total_ids=TOTAL_IDS)
    ended = append_final_sentinel(targets, mask, valid, total_ids=TOTAL_IDS)
    assert ended.ids[0, -1] == 996


def test_noise_behind_the_end_of_a_segment_is_none():
    tokens, _, valid = segments([[False] * 2, [False] * 4])
    everywhere = np.ones_like(valid)
    made = spans_to_unique_sentinels(tokens, everywhere, valid, total_ids=TOTAL_IDS)
    assert isinstance(made, Corrupted)
    assert made.keep.tolist() == [[True, False, False, False]] * 2


def test_the_final_sentinel_of_the_paper_closes_targets_that_end_in_noise():
    masks = [[False, True, True], [False, True, False], [True, False, True, True]]
    tokens, mask, valid = segments(masks)
    targets = spans_to_unique_sentinels(tokens, ~mask, valid, total_ids=TOTAL_IDS)
    closed = append_final_sentinel(targets, mask, valid, total_ids=TOTAL_IDS)
    flat = flatten(closed, limits=np.full(3, 9))
    assert [part.tolist() for part in np.split(flat.ids, np.cumsum(flat.lengths)[:-1])] == [
        [999, 11, 12, 998, 1],
        [999, 11, 998, 1],
        [10, 999, 12, 13, 998, 1],
    ]


def test_one_sentinel_stands_for_every_noise_token():
    tokens, mask, valid = segments([[True, True, False, True]])
    made = noise_to_one_sentinel(tokens, mask, valid, total_ids=TOTAL_IDS)
    assert made.ids.tolist() == [[999, 999, 12, 999]]
    assert made.keep.all()


def test_a_tenth_of_the_noise_tokens_is_random_and_the_rest_one_sentinel():
    tokens, mask, valid = segments([[True, True, False, True] * 2000] * 2)
    made = noise_to_random_token_or_sentinel(
        tokens, mask, valid, total_ids=TOTAL_IDS, seed=np.array([1, 2], np.int32)
    ).ids
    assert (made[:, 2::4] == tokens[:, 2::4]).all()
    replaced = made[mask]
    share = (replaced != TOTAL_IDS - 1).mean()
    assert abs(share - 0.1 * 996 / 997) < 4 * np.sqrt(0.09 / len(replaced))
    assert replaced.min() >= FIRST_PIECE_ID
    assert replaced.max() == TOTAL_IDS - 1


def test_dropped_tokens_leave_no_trace():
    tokens, mask, valid = segments([[True, False, False, True], [False, True]])
    for dropped, expected in ((mask, [11, 12, 1, 10, 1]), (~mask, [10, 13, 1, 11, 1])):
        flat = flatten(drop_noise(tokens, dropped, valid), limits=np.full(2, 9))
        assert flat.ids.tolist() == expected


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.booleans(), min_size=1, max_size=30), min_size=1, max_size=4),
    st.integers(0, 2**31 - 1),
)
def test_permuted_noise_stays_among_the_noise_of_its_segment(masks, seed):
    tokens, mask, valid = segments(masks)
    made = permute_noise(tokens, mask, valid, seed=np.array([seed, 0], np.int32)).ids
    before, noise = tokens, mask
    assert (made[~noise] == before[~noise]).all()
    for row in range(len(masks)):
        assert sorted(made[row][noise[row]]) == sorted(before[row][noise[row]])


def test_all_orders_of_three_tokens_are_equally_likely():
    tokens, mask, valid = segments([[True] * 3] * 6000)
    made = permute_noise(tokens, mask, valid, seed=np.array([3, 4], np.int32)).ids
    _, counts = np.unique(made, axis=0, return_counts=True)
    assert len(counts) == 6
    assert ((counts - 1000) ** 2 / 1000).sum() < 20.6  # 99.9 % of chi-square, 5 degrees of freedom
