"""The trigrams that StructBERT shuffles: their number, places and orders."""

from collections import Counter
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.objectives.masked_positions import RowTokens
from t5repro.objectives.masked_rows import Masking, mask_rows
from t5repro.objectives.row_draws import RowDraws

VOCAB = VocabSettings(vocab_size=900, extra_ids=100)
SPECIAL = VOCAB.total_ids  # any id of a special piece
KINDS = [(of, unit) for of in ("tokens", "trigrams") for unit in ("piece", "word")]


def settings_of(width: int, most: int, share: float = 0.05, **masked_lm: Any) -> PretrainSettings:
    return PretrainSettings(
        objective="masked_lm",
        inputs_length=width,
        targets_length=most,
        masked_lm={"shuffle_share": share, **masked_lm},
    )


def rows_of(count: int, width: int, *, seed: int = 0, full: bool = False) -> tuple[Any, RowTokens]:
    """Return ids and tokens of rows ``[CLS] A [SEP] B [SEP]``; no two ids of a row are equal."""
    random = np.random.default_rng(seed)
    lengths = np.full(count, width) if full else random.integers(8, width + 1, count)
    middle = random.integers(2, lengths - 3)
    position = np.arange(width)[np.newaxis]
    valid = position < lengths[:, np.newaxis]
    special = (position == 0) | (position == middle[:, np.newaxis])
    special |= position == lengths[:, np.newaxis] - 1
    starts = (random.random((count, width)) < 0.6) | special | np.roll(special, 1, axis=1)
    ids = np.where(special, SPECIAL, 3 + position) * valid
    tokens = RowTokens(
        lengths=lengths.astype(np.int32),
        maskable=valid & ~special,
        word_starts=starts,
        segments=np.cumsum(special, axis=1, dtype=np.int32),
        draws=RowDraws(seed, np.arange(count), np.zeros(count, np.int64)),
    )
    return ids.astype(np.int32), tokens


def masked(ids: Any, tokens: RowTokens, settings: PretrainSettings) -> Masking:
    return mask_rows(settings, ids, tokens, vocab=VOCAB)


def trigrams_of(masking: Masking, tokens: RowTokens, unit: str, row: int) -> list[list[list[int]]]:
    """Return the positions of the parts of each shuffled trigram of a row."""
    trigrams = []
    for start in np.flatnonzero(masking.shuffled.starts[row]):
        begins = [int(start)]
        position = int(start) + 1
        while len(begins) < 3:
            if unit == "piece" or tokens.word_starts[row, position]:
                begins.append(position)
            position += 1
        end = begins[2] + 1
        while unit == "word" and end < tokens.lengths[row] and not tokens.word_starts[row, end]:
            end += 1
        bounds = [*begins, end]
        trigrams.append([list(range(*pair)) for pair in pairwise(bounds)])
    return trigrams


@pytest.mark.parametrize(("of", "unit"), KINDS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), mask_unit=st.sampled_from(["piece", "word", "ngram", "span"]))
def test_each_trigram_has_its_pieces_in_one_of_six_orders(
    of: str, unit: str, seed: int, mask_unit: str
) -> None:
    """No place is masked, special or padding, no two trigrams meet, and all else is unmoved."""
    options = {"shuffle_of": of, "shuffle_unit": unit, "unit": mask_unit}
    ids, tokens = rows_of(12, 40, seed=seed)
    masking = masked(ids, tokens, settings_of(40, 20, 0.3 if seed % 2 else 0.1, **options))
    shuffled = masking.shuffled
    assert not (shuffled.places & (masking.mask | ~tokens.maskable)).any()
    changed = masking.rows.ids != ids
    assert not (changed & ~masking.mask & ~shuffled.places).any()
    for row in range(len(ids)):
        places: list[int] = []
        for parts in trigrams_of(masking, tokens, unit, row):
            whole = [position for part in parts for position in part]
            places += whole
            orders = [[p for part in order for p in part] for order in permutations(parts)]
            assert (masking.rows.ids[row, whole] - 3).tolist() in orders
            assert len(set(tokens.segments[row, whole])) == 1
        assert sorted(places) == np.flatnonzero(shuffled.places[row]).tolist()


def test_a_share_of_the_tokens_is_shuffled_in_whole_trigrams() -> None:
    ids, tokens = rows_of(3000, 128)
    masking = masked(ids, tokens, settings_of(128, 26))
    trigrams = np.round(0.05 * tokens.lengths / 3)
    # Short rows may have no three pieces left between the masked ones.
    assert (
        masking.shuffled.starts.sum(axis=1)[tokens.lengths > 40] == trigrams[tokens.lengths > 40]
    ).all()
    assert (masking.shuffled.places.sum(axis=1) == 3 * masking.shuffled.starts.sum(axis=1)).all()
    assert masking.shuffled.places.sum() / tokens.lengths.sum() == pytest.approx(0.05, rel=0.03)


def test_a_share_of_the_trigrams_between_masked_pieces_is_at_least_one() -> None:
    ids, tokens = rows_of(2000, 128, full=True)
    masking = masked(ids, tokens, settings_of(128, 26, shuffle_of="trigrams"))
    for row in range(200):
        is_free = tokens.maskable[row] & ~masking.mask[row]
        runs = "".join("x" if free else " " for free in is_free).split()
        tiles = sum(len(run) // 3 for run in runs)
        assert masking.shuffled.starts[row].sum() == max(1, round(0.05 * tiles))
    # As a run begins anew after each masked piece, fewer tokens than the share are shuffled.
    assert masking.shuffled.places.mean() < 0.04


@pytest.mark.parametrize("identity", [True, False])
def test_all_orders_of_a_trigram_are_equally_likely(identity: bool) -> None:
    """Over a hundred thousand trigrams, within four standard errors."""
    counts: Counter[tuple[int, ...]] = Counter()
    options = {"shuffle_identity": identity, "mask_share": 0, "random_share": 0}
    for seed in range(4):
        ids, tokens = rows_of(2500, 128, seed=seed, full=True)
        masking = masked(ids, tokens, settings_of(128, 64, 0.3, **options))
        row, start = np.nonzero(masking.shuffled.starts)
        offsets = masking.rows.ids[row[:, None], start[:, None] + np.arange(3)] - 3
        counts.update(map(tuple, (offsets - start[:, None]).tolist()))
    total = counts.total()
    assert total > 100_000
    orders = set(permutations(range(3))) - (set() if identity else {(0, 1, 2)})
    assert set(counts) == orders
    expected = 1 / len(orders)
    error = (expected * (1 - expected) / total) ** 0.5
    assert all(abs(count / total - expected) < 4 * error for count in counts.values())


def test_every_piece_is_shuffled_equally_often() -> None:
    """But for those next to the ends of a segment, which fewer trigrams contain."""
    ids, tokens = rows_of(20_000, 64, full=True)
    tokens = tokens._replace(
        segments=np.minimum(tokens.segments, 1), maskable=np.ones_like(tokens.maskable)
    )
    settings = settings_of(64, 30, 0.05, rows="doc_sentences", pair_task="none")
    share = masked(ids, tokens, settings).shuffled.places.mean(axis=0)[8:-8]
    assert share == pytest.approx(share.mean(), abs=5 * (0.05 / 20_000) ** 0.5)


def test_the_targets_at_shuffled_places_are_the_original_ids() -> None:
    ids, tokens = rows_of(400, 64)
    settings = settings_of(64, 20, 0.1)
    masking = masked(ids, tokens, settings)
    predicted = masking.mask | masking.shuffled.places
    for row, (positions, targets) in enumerate(
        zip(masking.rows.positions, masking.rows.targets, strict=True)
    ):
        filled = targets > 0
        assert positions[filled].tolist() == np.flatnonzero(predicted[row]).tolist()
        assert targets[filled].tolist() == ids[row, positions[filled]].tolist()
    assert (masking.rows.ids[masking.shuffled.places] != ids[masking.shuffled.places]).mean() > 0.5


def test_masks_are_those_without_shuffled_trigrams() -> None:
    ids, tokens = rows_of(300, 64)
    with_words, without = (masked(ids, tokens, settings_of(64, 20, share)) for share in (0.1, 0.0))
    assert without.shuffled is None
    assert (with_words.mask == without.mask).all()
    assert (with_words.rows.ids == without.rows.ids)[with_words.mask].all()


@pytest.mark.parametrize(("of", "unit"), KINDS)
def test_the_batch_of_a_row_does_not_change_its_trigrams(of: str, unit: str) -> None:
    ids, tokens = rows_of(40, 48)
    settings = settings_of(48, 20, 0.1, shuffle_of=of, shuffle_unit=unit)
    whole = masked(ids, tokens, settings).rows.ids
    draws = RowDraws(0, np.arange(15, 25), np.zeros(10, np.int64))
    part = RowTokens(*(values[15:25] for values in tokens[:-1]), draws=draws)
    assert (masked(ids[15:25], part, settings).rows.ids == whole[15:25]).all()


@pytest.mark.parametrize(("of", "unit"), KINDS)
def test_no_row_has_more_targets_than_their_length(of: str, unit: str) -> None:
    ids, tokens = rows_of(2000, 64, full=True)
    options = {"shuffle_of": of, "shuffle_unit": unit}
    settings = settings_of(
        64,
        10
        + PretrainSettings()
        .masked_lm.model_copy(update={"shuffle_share": 0.2, **options})
        .shuffled(64),
        0.2,
        **options,
    )
    masking = masked(ids, tokens, settings)
    assert (masking.rows.targets > 0).sum(axis=1).max() <= settings.targets_length
    assert masking.shuffled.places.any()
