"""UL2's mixture of denoisers: rates, spans, mode tokens, and the text that both sides restore."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t5repro.config.sections.pretrain import Denoiser, PretrainSettings
from t5repro.errors import SettingsError
from t5repro.objectives.denoisers import Seeds, Texts, apply_objective, draw_denoisers
from t5repro.objectives.examples import CorruptedSegment, corrupt_segments
from t5repro.objectives.mode_tokens import mode_token_id
from t5repro.objectives.row_lengths import corruption_limits, segment_length

TOTAL_IDS, EXTRA_IDS, EOS = 32_100, 100, 1
NLU, S2S, NLG = 32_000, 32_001, 32_002  # <extra_id_99>, 98 and 97
FIRST_SENTINEL = TOTAL_IDS - 1
# Table 1 of the article: kind, density, mean length.
ARTICLE = [
    ("NLU", 0.15, 3.0),
    ("NLU", 0.15, 8.0),
    ("S2S", 0.25, None),
    ("NLG", 0.5, 3.0),
    ("NLG", 0.5, 8.0),
    ("NLG", 0.15, 64.0),
    ("NLG", 0.5, 64.0),
]
MODE_IDS = {"NLU": NLU, "S2S": S2S, "NLG": NLG}
UL2 = tuple(
    Denoiser(objective="prefix_lm", noise_density=density, mode_token=mode)
    if mean is None
    else Denoiser(noise_density=density, mean_noise_span_length=mean, mode_token=mode)
    for mode, density, mean in ARTICLE
)


def plan(denoisers: tuple[Denoiser, ...] = UL2, **more: Any) -> PretrainSettings:
    values = {"inputs_length": 512, "targets_length": 512, **more}
    return PretrainSettings(objective="mixture_of_denoisers", denoisers=denoisers, **values)


def seed(number: int) -> tuple[int, int]:
    return (number, 7)


def seed_array(number: int) -> np.ndarray:
    return np.array(seed(number), np.int32)


def corrupt_one(lengths: list[int], denoiser: int, number: int = 0) -> list[CorruptedSegment]:
    return corrupt_segments(
        plan(),
        [list(range(10, 10 + length)) for length in lengths],
        total_ids=TOTAL_IDS,
        extra_ids=EXTRA_IDS,
        seeds=(seed(number), seed(number + 1)),
        denoisers=[denoiser] * len(lengths),
    )


def restored(segment: CorruptedSegment, mode: str) -> list[int]:
    """Put the targets back into the inputs, by the definition of each kind of denoiser."""
    inputs, targets = segment.inputs[1:-1], segment.targets[:-1]
    if mode == "S2S":
        return inputs + targets
    spans: dict[int, list[int]] = {}
    for token in targets:
        if token > NLG:
            spans[token] = span = []
        else:
            span.append(token)
    text: list[int] = []
    for token in inputs:
        # The sentinel of the targets stands for kept tokens: sentinel i of the inputs is the span
        # between sentinels i and i + 1 of the targets.
        text += spans[token] if token > NLG else [token]
    return text


@pytest.mark.parametrize("denoiser", range(7))
@settings(max_examples=15)
@given(lengths=st.lists(st.integers(4, 510), min_size=1, max_size=4), number=st.integers(0, 2**30))
def test_mode_token_inputs_and_targets_of_each_denoiser_restore_the_text(denoiser, lengths, number):
    mode = ARTICLE[denoiser][0]
    for segment in corrupt_one(lengths, denoiser, number):
        assert segment.inputs[0] == MODE_IDS[mode]
        assert segment.inputs[-1] == segment.targets[-1] == EOS
        assert not {NLU, S2S, NLG} & {*segment.inputs[1:], *segment.targets}
        assert restored(segment, mode) == segment.text


@pytest.mark.parametrize("denoiser", [number for number in range(7) if number != 2])
def test_a_span_denoiser_has_the_articles_density_and_mean_length(denoiser):
    _, density, mean = ARTICLE[denoiser]
    for segment in corrupt_one([510] * 8, denoiser):
        noise = sum(token <= NLG for token in segment.targets[:-1])
        spans = sum(token > NLG for token in segment.inputs)
        assert noise == round(510 * density)
        assert spans == max(1, round(noise / mean))


def test_the_prefix_leaves_a_quarter_of_the_text_on_average():
    segments = [row for number in range(50) for row in corrupt_one([401] * 100, 2, number)]
    shares = np.array([(len(row.targets) - 1) / 401 for row in segments])
    # Uniform between 1 and 201 of 401 tokens: mean 101 / 401, variance (201^2 - 1) / 12.
    deviation = np.sqrt((201**2 - 1) / 12) / 401
    assert abs(shares.mean() - 101 / 401) < 4 * deviation / np.sqrt(len(shares))
    assert shares.min() >= 1 / 401
    assert shares.max() <= 201 / 401


@pytest.mark.parametrize("weights", [(1.0,) * 7, (1.0, 1.0, 4.0, 0.5, 0.5, 0.5, 0.5), (3.0, 1e-6)])
def test_denoisers_are_drawn_at_their_weights(weights):
    draws = 100_000
    denoisers = tuple(Denoiser(weight=weight) for weight in weights)
    drawn = draw_denoisers(denoisers, draws, seed_array(3))
    shares = np.array(weights) / np.sum(weights)
    counts = np.bincount(drawn, minlength=len(weights))
    assert (abs(counts - draws * shares) <= 4 * np.sqrt(draws * shares * (1 - shares)) + 1).all()


@settings(max_examples=10)
@given(st.integers(0, 2**30), st.lists(st.integers(4, 60), min_size=1, max_size=8))
def test_a_mixed_batch_has_the_rows_of_the_drawn_denoisers(number, lengths):
    width = max(lengths)
    tokens = np.tile(np.arange(10, 10 + width, dtype=np.int32), (len(lengths), 1))
    texts = Texts(tokens, np.array(lengths, np.int32), TOTAL_IDS, EXTRA_IDS)
    seeds = Seeds(*(seed_array(number + use) for use in range(3)))
    drawn = draw_denoisers(UL2, len(lengths), seeds.denoiser)
    mixed = apply_objective(plan(), texts, seeds)
    for row, denoiser in enumerate(drawn):
        alone = apply_objective(plan(), texts, seeds, np.full(len(lengths), denoiser))
        for side, expected in zip(mixed[:2], alone[:2], strict=True):
            kept = expected.keep[row]
            assert (side.keep[row] == kept).all()
            assert (side.ids[row][kept] == expected.ids[row][kept]).all()


@pytest.mark.parametrize(("inputs_length", "targets_length"), [(512, 512), (64, 64), (128, 200)])
def test_the_longest_segment_fits_the_row_under_every_denoiser(inputs_length, targets_length):
    lengths = {"inputs_length": inputs_length, "targets_length": targets_length}
    mixture = plan(**lengths)
    longest = segment_length(mixture)
    assert longest == inputs_length - 2  # a prefix of all tokens but one, mode token and EOS
    limits = corruption_limits(mixture, longest)
    for denoiser in range(7):
        for tokens in (4, longest // 2, longest):
            (row,) = corrupt_one([tokens], denoiser)
            assert len(row.inputs) <= limits[tokens, 0] <= inputs_length
            assert len(row.targets) <= limits[tokens, 1] <= targets_length


def test_a_mixture_of_spans_alone_has_longer_segments_than_rows():
    spans = tuple(denoiser for denoiser in UL2 if denoiser.objective == "replace_spans")
    # The R-denoiser of mean length 8 shortens inputs least: of 593 tokens 89 are noise in 11
    # spans; inputs are 593 - 89 + 11, EOS and the mode token.
    least = min(
        max(
            n
            for n in range(2, 700)
            if n - round(n * 0.15) + max(1, round(round(n * 0.15) / m)) < 511
        )
        for m in (3.0, 8.0, 64.0)
    )
    assert segment_length(plan(spans)) == least


def test_targets_that_a_denoiser_can_exceed_are_refused():
    with pytest.raises(SettingsError, match="targets_length is 300, but a denoiser of 512 inputs"):
        segment_length(plan(targets_length=300))


def test_spans_do_not_use_the_sentinels_of_mode_tokens_uncounted():
    texts = Texts(np.ones((1, 600), np.int32), np.array([600]), TOTAL_IDS, EXTRA_IDS)
    seeds = Seeds(*map(seed_array, range(3)))
    # 300 noise tokens in 100 spans: 97 sentinels are free.
    pair = apply_objective(plan(), texts, seeds, np.array([3]))
    assert pair.missing_sentinels.tolist() == [3]


@pytest.mark.parametrize("number", range(3))
def test_a_denoiser_without_a_mode_token_prepends_none(number):
    without = tuple(denoiser.model_copy(update={"mode_token": ""}) for denoiser in UL2)
    (row,) = corrupt_segments(
        plan(without),
        [list(range(10, 50))],
        total_ids=TOTAL_IDS,
        extra_ids=EXTRA_IDS,
        seeds=(seed(1), seed(2)),
        denoisers=[number],
    )
    assert row.inputs[0] == 10  # every denoiser keeps the first token


def test_mode_tokens_are_the_last_sentinels():
    ids = {"total_ids": TOTAL_IDS, "extra_ids": EXTRA_IDS}
    assert [mode_token_id(name, **ids) for name in MODE_IDS] == [NLU, S2S, NLG]
    assert FIRST_SENTINEL - NLU == 99


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"objective": "mixture_of_denoisers"}, "with 0 denoisers; mixture_of_denoisers needs"),
        ({"denoisers": UL2}, "objective is replace_spans with 7 denoisers"),
        (
            {"objective": "mixture_of_denoisers", "denoisers": UL2, "final_sentinel": True},
            "final_sentinel is true, but targets of mixture_of_denoisers",
        ),
        (
            {"denoisers": [{"objective": "prefix_lm", "noise_density": 0.6}]},
            "noise_density of objective prefix_lm is 0.6; at most 0.5",
        ),
    ],
)
def test_an_impossible_mixture_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        PretrainSettings(**values)
