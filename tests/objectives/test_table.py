"""Every objective of the paper: what it makes of a text, against a twin in plain Python."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.errors import SettingsError
from t5repro.objectives.corruption import flatten
from t5repro.objectives.masks import first_positions
from t5repro.objectives.row_lengths import corruption_limits, segment_length
from t5repro.objectives.table import OBJECTIVES, Segment, corrupt

TOTAL_IDS = 1000
SENTINEL = 999
WIDTH = 64
FIRST = 10  # the text is 10, 11, 12, ...


def settings_of(objective: str, **more: Any) -> PretrainSettings:
    plan = {"inputs_length": WIDTH + 1, "targets_length": 2 * WIDTH, "objective": objective}
    return PretrainSettings(**{**plan, **more})


@dataclasses.dataclass
class Pair:
    text: list[int]
    noise: list[bool]
    inputs: list[int]
    targets: list[int]


def pairs(plan: PretrainSettings, lengths: list[int], seed: int) -> list[Pair]:
    """Run the objective on texts of the given lengths."""
    sizes = np.array(lengths, np.int32)
    valid = first_positions(sizes, WIDTH)
    tokens = np.where(valid, np.arange(FIRST, FIRST + WIDTH, dtype=np.int32), 0)
    mask_seed, corruption_seed = np.array([[seed, 1], [seed, 2]], np.int32)
    mask = OBJECTIVES[plan.objective].mask(plan, sizes, WIDTH, mask_seed)
    sides = corrupt(plan, Segment(tokens, mask, valid, TOTAL_IDS, corruption_seed))
    lists = []
    for side in sides:
        if side is None:
            lists.append([[] for _ in lengths])
            continue
        flat = flatten(side, limits=np.full(len(lengths), 1000))
        cuts = np.cumsum(flat.lengths)[:-1]
        lists.append([part.tolist() for part in np.split(flat.ids, cuts)])
    return [
        Pair(list(range(FIRST, FIRST + size)), mask[row, :size].tolist(), *both)
        for row, (size, *both) in enumerate(zip(lengths, *lists, strict=True))
    ]


def spans(text: list[int], replaced: list[bool]) -> list[int]:
    """Replace each run by a sentinel, counted down."""
    made: list[int] = []
    sentinel = TOTAL_IDS
    for place, (token, gone) in enumerate(zip(text, replaced, strict=True)):
        if not gone:
            made.append(token)
        elif not place or not replaced[place - 1]:
            sentinel -= 1
            made.append(sentinel)
    return made


def kept(pair: Pair) -> list[int]:
    return [token for token, gone in zip(pair.text, pair.noise, strict=True) if not gone]


def taken(pair: Pair) -> list[int]:
    return [token for token, gone in zip(pair.text, pair.noise, strict=True) if gone]


LENGTHS = st.lists(st.integers(4, WIDTH), min_size=1, max_size=4)
SEEDS = st.integers(0, 2**31 - 1)
MASKS = st.sampled_from(
    [
        *({"noise_mask": "iid", "noise_density": rate} for rate in (0.1, 0.15, 0.25, 0.5)),
        *(
            {"noise_mask": "random_spans", "mean_noise_span_length": mean}
            for mean in (2.0, 3.0, 5.0, 10.0)
        ),
    ]
)
examples = settings(max_examples=25)


@examples
@given(LENGTHS, SEEDS, MASKS)
def test_replaced_spans_are_in_the_targets_between_the_same_sentinels(lengths, seed, mask):
    for pair in pairs(settings_of("replace_spans", **mask), lengths, seed):
        rest = [not gone for gone in pair.noise]
        assert pair.inputs == [*spans(pair.text, pair.noise), 1]
        assert pair.targets == [*spans(pair.text, rest), 1]


@examples
@given(LENGTHS, SEEDS, MASKS)
def test_dropped_tokens_are_the_targets_without_a_trace(lengths, seed, mask):
    for pair in pairs(settings_of("drop_tokens", **mask), lengths, seed):
        assert pair.inputs == [*kept(pair), 1]
        assert pair.targets == [*taken(pair), 1]
        assert sorted(pair.inputs[:-1] + pair.targets[:-1]) == pair.text


@examples
@given(LENGTHS, SEEDS, MASKS)
def test_mass_style_hides_each_corrupted_token_and_asks_for_the_whole_text(lengths, seed, mask):
    for pair in pairs(settings_of("mass_style", **mask), lengths, seed):
        hidden = [SENTINEL if gone else t for t, gone in zip(pair.text, pair.noise, strict=True)]
        assert pair.inputs == [*hidden, 1]
        assert pair.targets == [*pair.text, 1]


@examples
@given(LENGTHS, SEEDS, MASKS)
def test_bert_style_moves_corrupted_tokens_alone_and_asks_for_the_whole_text(lengths, seed, mask):
    for pair in pairs(settings_of("bert_style", **mask), lengths, seed):
        assert pair.targets == [*pair.text, 1]
        assert len(pair.inputs) == len(pair.text) + 1
        for token, found, gone in zip(pair.text, pair.inputs, pair.noise, strict=False):
            assert gone or found == token
            assert 3 <= found < TOTAL_IDS


@examples
@given(LENGTHS, SEEDS)
def test_deshuffling_gives_all_tokens_in_another_order(lengths, seed):
    for pair in pairs(settings_of("deshuffling"), lengths, seed):
        assert pair.inputs[-1] == 1
        assert sorted(pair.inputs[:-1]) == pair.text
        assert pair.targets == [*pair.text, 1]


@examples
@given(LENGTHS, SEEDS)
def test_a_prefix_and_its_continuation_are_the_text(lengths, seed):
    for pair in pairs(settings_of("prefix_lm", noise_density=0.5), lengths, seed):
        assert pair.inputs[:-1] + pair.targets[:-1] == pair.text
        assert len(pair.inputs) > 1
        assert len(pair.targets) > 1


@examples
@given(LENGTHS, SEEDS)
def test_a_language_model_has_no_inputs_and_the_text_as_targets(lengths, seed):
    for pair in pairs(settings_of("lm"), lengths, seed):
        assert pair.inputs == []
        assert pair.targets == [*pair.text, 1]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("noise_mask", ["iid", "random_spans"])
def test_an_objective_is_a_function_of_its_seed(objective, noise_mask):
    plan = settings_of(objective, noise_mask=noise_mask)
    one, same, other = (pairs(plan, [40, 64, 50], seed) for seed in (1, 1, 2))
    assert one == same
    assert objective == "lm" or one != other


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("noise_mask", ["iid", "random_spans"])
@pytest.mark.parametrize("density", [0.1, 0.15, 0.25, 0.5])
def test_no_pair_is_longer_than_the_room_set_aside(objective, noise_mask, density):
    plan = settings_of(objective, noise_mask=noise_mask, noise_density=density)
    limits = corruption_limits(plan, WIDTH)
    lengths = [4 + n % (WIDTH - 3) for n in range(1000)]
    longer = 0
    for pair in pairs(plan, lengths, seed=3):
        inputs, targets = limits[len(pair.text)]
        assert len(pair.inputs) <= inputs
        longer += len(pair.targets) > targets
    assert longer <= (2 if noise_mask == "iid" else 0)  # four standard deviations


@pytest.mark.parametrize(
    ("density", "tokens", "targets"),
    # Section 3.3.4 and the released gin files, for 512 inputs: raw tokens and targets.
    [
        (0.10, {2: 538, 3: 548, 5: 556, 10: 561}, {2: 82, 3: 74, 5: 68, 10: 63}),
        (0.15, {2: 552, 3: 568, 5: 581, 10: 591}, {2: 126, 3: 114, 5: 105, 10: 99}),
        (0.25, {2: 584, 3: 614, 5: 639, 10: 660}, {2: 220, 3: 206, 5: 193, 10: 182}),
        (0.50, {2: 682, 3: 766, 5: 852, 10: 930}, {2: 512, 3: 512, 5: 512, 10: 512}),
    ],
)
def test_random_spans_have_the_published_lengths(density, tokens, targets):
    for mean, expected in tokens.items():
        plan = PretrainSettings(
            noise_mask="random_spans",
            noise_density=density,
            mean_noise_span_length=mean,
            targets_length=targets[mean],
        )
        assert segment_length(plan) == expected
        assert corruption_limits(plan, expected)[expected].tolist() == [512, targets[mean]]
        short = plan.model_copy(update={"targets_length": targets[mean] - 1})
        with pytest.raises(SettingsError, match=rf"gives {targets[mean]} targets"):
            segment_length(short)


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        ("replace_spans", 511),
        ("drop_tokens", 511),
        ("bert_style", 511),
        ("mass_style", 511),
        ("deshuffling", 511),
        ("prefix_lm", 511),
        ("lm", 383),
    ],
)
def test_other_objectives_split_one_token_short_of_a_row(objective, expected):
    lengths = {"inputs_length": 512, "targets_length": 384 if objective == "lm" else 512}
    assert segment_length(settings_of(objective, **lengths)) == expected


@pytest.mark.parametrize("objective", ["mass_style", "bert_style", "deshuffling", "prefix_lm"])
def test_targets_that_may_be_the_whole_text_need_room_for_it(objective):
    with pytest.raises(ValueError, match=r"targets_length 192 must be at least inputs_length 512"):
        PretrainSettings(objective=objective)


def test_a_prefix_of_less_than_nothing_is_refused():
    with pytest.raises(ValueError, match=r"noise_density of objective prefix_lm is 0.6"):
        settings_of("prefix_lm", noise_density=0.6)


def test_the_final_sentinel_is_a_switch():
    plan = settings_of("replace_spans", noise_mask="random_spans", final_sentinel=True)
    for pair in pairs(plan, [40, 64], seed=0):
        rest = [not gone for gone in pair.noise]
        closing = TOTAL_IDS - 1 - sum(t > 500 for t in spans(pair.text, rest))
        assert pair.targets == [*spans(pair.text, rest), closing, 1]


def test_the_sentence_of_the_papers_table_3():
    """Thank you for inviting me to your party last week: the corrupted words of the table."""
    words = ["Thank", "you", "for", "inviting", "me", "to", "your", "party", "last", "week", "."]
    noise = [word in ("for", "inviting", "last") for word in words]
    text = list(range(FIRST, FIRST + len(words)))
    shown = {FIRST + n: word for n, word in enumerate(words)}
    shown |= {999: "<X>", 998: "<Y>", 997: "<Z>", 1: "</s>"}
    segment = Segment(
        np.array([text]),
        np.array([noise]),
        np.ones((1, len(words)), bool),
        TOTAL_IDS,
        np.zeros(2, np.int32),
    )
    expected = {
        "replace_spans": "Thank you <X> me to your party <Y> week . </s>",
        "drop_tokens": "Thank you me to your party week . </s>",
        "mass_style": "Thank you <X> <X> me to your party <X> week . </s>",
    }
    answers = {"drop_tokens": "for inviting last </s>", "mass_style": " ".join(words) + " </s>"}
    for objective, inputs in expected.items():
        made = corrupt(settings_of(objective), segment)
        texts = [
            " ".join(shown[token] for token in flatten(side, limits=np.array([99])).ids.tolist())
            for side in made
            if side is not None
        ]
        assert texts[0] == inputs
        assert objective not in answers or texts[1] == answers[objective]
