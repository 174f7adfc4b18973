"""The borders of masked spans, against a loop over each row."""

import numpy as np

from t5repro.objectives.boundaries import LONGEST, NO_TARGET, boundaries


def by_loop(mask: np.ndarray, is_text: np.ndarray, most: int):
    """Return borders and index of each masked place of a row, in ascending order."""
    borders, indices = np.zeros((most, 2), int), np.full(most, NO_TARGET)
    for number, place in enumerate(np.flatnonzero(mask)):
        first = last = place
        while mask[first - 1]:
            first -= 1
        while mask[last + 1]:
            last += 1
        # [CLS] and [SEP] are no borders.
        if is_text[first - 1] and is_text[last + 1] and place - first < LONGEST:
            borders[number], indices[number] = (first - 1, last + 1), place - first
    return borders, indices


def test_each_piece_has_the_borders_of_its_span_and_its_index_in_it() -> None:
    random = np.random.default_rng(0)
    rows, width, most = 800, 40, 32
    lengths = random.integers(4, width, rows)
    mask = random.random((rows, width)) < random.uniform(0.1, 0.9, (rows, 1))
    positions_in_row = np.arange(width)
    # [CLS] at 0, [SEP] at the end and, in every second row, between two segments.
    is_text = (positions_in_row > 0) & (positions_in_row < lengths[:, None] - 1)
    is_text[::2] &= positions_in_row != lengths[::2, None] // 2
    mask &= is_text
    mask &= np.cumsum(mask, axis=1) <= most
    positions, targets = np.zeros((rows, most), int), np.zeros((rows, most), int)
    for row in range(rows):
        places = np.flatnonzero(mask[row])
        positions[row, : len(places)], targets[row, : len(places)] = places, 7
    borders, index = boundaries(mask, positions, targets, is_text)
    expected = [by_loop(mask[row], is_text[row], most) for row in range(rows)]
    assert np.array_equal(borders, [one for one, _ in expected])
    assert np.array_equal(index, [one for _, one in expected])
    assert (index == 0).sum() > 300
    assert index.max() == LONGEST - 1
