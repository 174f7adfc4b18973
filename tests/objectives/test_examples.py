"""Segments for a reader: what each objective makes of them, as lists of ids."""

import pytest

from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.objectives.examples import corrupt_segments
from t5repro.objectives.row_lengths import corruption_limits
from t5repro.objectives.table import OBJECTIVES
from t5repro.vocab.special_ids import EOS_ID

TOTAL_IDS = 1000
SENTINELS = range(900, TOTAL_IDS)
SEGMENTS = [list(range(10, 10 + length)) for length in (60, 4, 31)]
SEEDS = ((1, 2), (3, 4))


def corrupted(objective, **more):
    plan = PretrainSettings(inputs_length=64, targets_length=128, objective=objective, **more)
    return corrupt_segments(plan, SEGMENTS, total_ids=TOTAL_IDS, extra_ids=100, seeds=SEEDS)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_shows_each_segment_with_its_two_sides(objective) -> None:
    rows = corrupted(objective)
    assert [row.text for row in rows] == SEGMENTS
    assert all(row.targets[-1] == EOS_ID for row in rows)
    assert all((row.inputs[-1:] == [EOS_ID]) == (objective != "lm") for row in rows)
    assert rows == corrupted(objective)


@pytest.mark.parametrize("final", [False, True])
def test_the_spans_of_the_targets_fill_the_sentinels_of_the_inputs(final) -> None:
    rows = corrupted("replace_spans", noise_mask="random_spans", final_sentinel=final)
    for text, inputs, targets in rows:
        spans: dict[int, list[int]] = {}
        span: list[int] = []
        for token in targets[:-1]:
            if token in SENTINELS:
                span = spans.setdefault(token, [])
            else:
                span.append(token)
        whole = [part for token in inputs[:-1] for part in spans.get(token, [token])]
        assert [token for token in whole if token not in SENTINELS] == text


def test_a_language_model_has_the_text_as_targets_and_no_inputs() -> None:
    for text, inputs, targets in corrupted("lm"):
        assert inputs == []
        assert targets == [*text, EOS_ID]


def test_a_prefix_and_the_rest_are_the_text() -> None:
    for text, inputs, targets in corrupted("prefix_lm", noise_density=0.5):
        assert inputs[:-1] + targets[:-1] == text
        assert 0 < len(inputs) - 1 < len(text)


def test_documents_on_their_own_are_cut_at_what_they_reserve_in_a_row() -> None:
    long = {"noise_density": 0.5, "noise_mask": "iid"}
    together = corrupted("drop_tokens", **long)
    apart = corrupted("drop_tokens", **long, concatenate_documents=False)
    assert [row.targets[:5] for row in apart] == [row.targets[:5] for row in together]
    for row in apart:
        plan = PretrainSettings(
            inputs_length=64, targets_length=128, objective="drop_tokens", **long
        )
        _, limit = corruption_limits(plan, len(row.text))[-1]
        assert len(row.targets) <= limit


def test_another_seed_is_other_noise() -> None:
    plan = PretrainSettings(inputs_length=64, targets_length=128)
    other = corrupt_segments(
        plan, SEGMENTS, total_ids=TOTAL_IDS, extra_ids=100, seeds=((5, 6), SEEDS[1])
    )
    assert other != corrupted("replace_spans")
