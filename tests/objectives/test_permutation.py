"""Predicted positions and their order, beside loops over one row as XLNet's code has them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.objectives.permutation import block_order, predictions, selected_spans
from t5repro.objectives.row_draws import RowDraws

ROWS, LENGTH, TARGETS = 40, 64, 11
PIECES = 200  # ids from here on are special pieces


def settings_of(**change: Any) -> PretrainSettings:
    sizes = {"batch_size": ROWS, "inputs_length": LENGTH, "targets_length": TARGETS}
    return PretrainSettings(objective="permutation_lm", **{**sizes, **change})


def rows(seed: int, *, separators: tuple[int, ...] = (50, 62, 63)) -> dict[str, Any]:
    """Return random rows with separators, every second one backwards."""
    random = np.random.default_rng(seed)
    ids = random.integers(3, PIECES, (ROWS, LENGTH)).astype(np.int32)
    is_separator = np.zeros((ROWS, LENGTH), bool)
    is_separator[:, separators] = True
    ids[is_separator] = PIECES
    return {
        "ids": ids,
        "separators": is_separator,
        "backwards": np.arange(ROWS) % 2 == 1,
        "draws": RowDraws(seed, np.arange(ROWS), np.full(ROWS, seed)),
        "word_starts": random.random(PIECES) < 0.6,
    }


def looped_mask(starts, goal, sizes, places, filling, context):
    """Return the mask of one row: XLNet's ``_sample_mask`` with given draws."""
    length = len(starts)
    mask, count, cursor, turn = np.zeros(length, bool), 0, 0, 0
    while cursor < length and count < goal:
        size = min(sizes[turn], goal - count)
        room = size * context
        left = int(places[turn] * room)
        turn += 1
        begin = cursor + left
        while begin < length and not starts[begin]:
            begin += 1
        if begin >= length:
            break
        end, pieces = begin + 1, 1
        while end < length:
            if starts[begin]:  # the test of the released code, which counts pieces
                pieces += 1
                if pieces > size:
                    break
            end += 1
        if end >= length:
            break
        mask[begin:end] = True
        count += end - begin
        cursor = end + room - left
    for place in np.argsort(filling, kind="stable"):
        if count < goal and not mask[place]:
            mask[place] = True
            count += 1
    return mask


@pytest.mark.parametrize("seed", range(20))
def test_spans_are_those_of_a_loop_over_one_row(seed):
    random = np.random.default_rng(seed)
    length, goal, longest, context = random.integers((20, 3, 1, 2), (300, 20, 7, 9))
    starts = random.random((ROWS, length)) < random.random()
    uniform = random.random((2, ROWS, goal))
    filling = random.integers(0, 1 << 32, (ROWS, length), np.uint64)
    found = selected_spans(
        starts,
        int(goal),
        lengths=uniform[0],
        places=uniform[1],
        filling=filling,
        longest=int(longest),
        context=int(context),
    )
    shares = np.array([1 / n for n in range(1, longest + 1)])
    bounds = np.cumsum(shares / shares.sum())
    sizes = 1 + np.argmax(uniform[0][..., None] < np.maximum(bounds, bounds == bounds[-1]), axis=-1)
    for row in range(ROWS):
        expected = looped_mask(
            starts[row], goal, sizes[row], uniform[1][row], filling[row], context
        )
        assert np.array_equal(found[row], expected)
    assert (found.sum(axis=1) == goal).all()


def looped_order(is_functional, masked, permutation):
    """Return the two masks of a part of a row: XLNet's ``_local_perm`` with a given order."""
    length = len(masked)
    index = np.empty(length, int)
    for block in range(0, length, len(permutation)):
        for place, rank in enumerate(permutation):
            index[block + place] = block + rank
    non_masked = ~(masked | is_functional)
    rev_index = np.where(non_masked, -1, index)
    targets = masked & ~is_functional
    self_rev_index = np.where(targets, rev_index, rev_index + 1)
    blocked = (self_rev_index[:, None] <= rev_index[None, :]) & ~non_masked[None, :]
    return blocked, targets


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("blocks", [1, 4])
def test_an_order_hides_what_the_masks_of_the_released_code_hide(seed, blocks):
    random = np.random.default_rng(seed)
    masked, functional = random.random((2, ROWS, LENGTH)) < np.array([0.3, 0.05])[:, None, None]
    words = random.integers(0, 1 << 32, (ROWS, LENGTH), np.uint64)
    order = block_order(masked | functional, words, blocks=blocks)
    for row in range(ROWS):
        permutation = np.argsort(words[row, : LENGTH // blocks], kind="stable")
        blocked, targets = looped_order(functional[row], masked[row], permutation)
        # Contents see themselves: the code opens the diagonal for them.
        for_contents = blocked & ~np.eye(LENGTH, dtype=bool)
        assert np.array_equal(order[row][None] > order[row][:, None], for_contents)
        for_queries = order[row][None] >= order[row][:, None]
        assert np.array_equal(for_queries[targets], blocked[targets])


@given(seed=st.integers(0, 2**31), reuse_share=st.sampled_from([0.25, 0.5, 0.75]))
def test_what_tokens_see_follows_from_their_part_and_their_kind(seed, reuse_share):
    settings = settings_of(permutation_lm={"reuse_share": reuse_share})
    batch = rows(seed)
    found = predictions(settings, **batch)
    first = int(reuse_share * LENGTH)
    is_target = found.selected & ~batch["separators"]
    is_plain = ~(found.selected | batch["separators"])
    order = found.order
    sees = order[:, None, :] <= order[:, :, None]
    query_sees = order[:, None, :] < order[:, :, None]
    diagonal = np.arange(LENGTH)
    # (a) No target sees itself when it is predicted, and its content does.
    assert not query_sees[:, diagonal, diagonal].any()
    assert sees[:, diagonal, diagonal].all()
    # (b) A token that is neither selected nor a separator sees all such tokens and no others.
    part = diagonal >= first
    same_part = part[:, None] == part[None]
    inside = is_plain[:, :, None] & same_part
    assert (sees == is_plain[:, None, :])[inside].all()
    # (c) The first part sees nothing of the second one, which sees all of it.
    assert not sees[:, :first, first:].any()
    assert query_sees[:, first:, :first].all()
    # Separators see themselves and selected tokens before them in the order, and all plain ones.
    assert sees[:, 50][:, first:][is_plain[:, first:]].all()
    # Targets are the selected pieces; separators among the selected ones are none.
    assert (found.selected.sum(axis=1) == TARGETS).all()
    assert (found.selected[:, :first].sum(axis=1) == TARGETS - TARGETS // 2).all()
    counts = is_target.sum(axis=1)
    for row in range(ROWS):
        places = found.positions[row, : counts[row]]
        assert np.array_equal(places, np.flatnonzero(is_target[row]))
        assert np.array_equal(found.targets[row, : counts[row]], batch["ids"][row, places])
        assert not found.targets[row, counts[row] :].any()
        assert not found.positions[row, counts[row] :].any()


def test_a_row_depends_on_its_slot_and_step_only():
    batch = rows(3)
    whole = predictions(settings_of(), **batch)
    some = [7, 2]
    parts = {name: batch[name][some] for name in ("ids", "separators", "backwards")}
    draws = RowDraws(3, np.array(some), np.full(2, 3))
    few = predictions(settings_of(), **parts, draws=draws, word_starts=batch["word_starts"])
    for of_whole, of_few in zip(whole, few, strict=True):
        assert np.array_equal(of_whole[some], of_few)
    other = predictions(
        settings_of(), **{**batch, "draws": RowDraws(3, np.arange(ROWS), np.full(ROWS, 4))}
    )
    assert (other.order != whole.order).any(axis=1).all()


def test_reversed_text_is_selected_as_the_text_itself():
    """Draws in the order of the text, so a reversed row has the mirrored spans."""
    batch = rows(5, separators=())
    settings = settings_of(permutation_lm={"span_context": 2})
    half = LENGTH // 2
    mirrored = batch["ids"].copy()
    for part in (slice(0, half), slice(half, LENGTH)):
        mirrored[:, part] = batch["ids"][:, part][:, ::-1]
    everything = {**batch, "backwards": np.zeros(ROWS, bool)}
    forwards = predictions(settings, **everything)
    backwards = predictions(
        settings, **{**batch, "ids": mirrored, "backwards": np.ones(ROWS, bool)}
    )
    for part in (slice(0, half), slice(half, LENGTH)):
        assert np.array_equal(backwards.selected[:, part], forwards.selected[:, part][:, ::-1])


def test_lengths_of_spans_have_probabilities_in_proportion_to_their_inverse():
    """The numbers of the code: .438, .219, .146, .1095 and .0876; five pieces are 14 percent."""
    count, length, goal = 4000, 800, 43
    random = np.random.default_rng(0)
    lengths, places = random.random((2, count, goal))
    selected = selected_spans(
        np.ones((count, length), bool),
        goal,
        lengths=lengths,
        places=places,
        filling=np.zeros((count, length), np.uint64),
        longest=5,
        context=6,
    )
    # The first run of each row is one span: at least a piece of its context is behind it.
    begins = selected.argmax(axis=1)
    after = np.arange(length) >= begins[:, np.newaxis]
    sizes = (after & ~selected).argmax(axis=1) - begins
    assert np.bincount(sizes, minlength=6)[1:] / count == pytest.approx(
        [0.438, 0.219, 0.146, 0.1095, 0.0876], abs=0.024
    )
    for size in range(1, 6):
        of_size = begins[sizes == size]
        assert of_size.max() == 6 * size - 1
        assert of_size.min() == 0
