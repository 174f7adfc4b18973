"""Learning rates by their formulas."""

import math

import numpy as np
import pytest

pytest.importorskip("keras")
from t5repro.config.sections.training import LearningRate
from t5repro.train.schedules import schedule

pytestmark = pytest.mark.keras

COSINE = {"schedule": "cosine", "factor": 0.02, "final_factor": 1e-5, "warmup_steps": 4}


def rate(step, **settings):
    return float(schedule(LearningRate(**settings))(step))


def test_the_rate_is_flat_until_warmup_and_then_falls_with_the_root_of_the_step():
    settings = {"schedule": "inverse_square_root", "warmup_steps": 10_000}
    assert rate(0, **settings) == pytest.approx(0.01)
    assert rate(10_000, **settings) == pytest.approx(0.01)
    assert rate(40_000, **settings) == pytest.approx(0.005)
    assert rate(40_000, **settings, factor=3.0) == pytest.approx(0.015)


def test_the_constant_rate_is_the_factor():
    settings = {"schedule": "constant", "factor": 0.001}
    assert rate(0, **settings) == rate(10**6, **settings) == pytest.approx(0.001)


def test_schedules_tell_keras_their_arguments():
    for settings in ({"schedule": "constant"}, {"schedule": "inverse_square_root"}, COSINE):
        made = schedule(LearningRate(**settings), steps=100, offset=3)
        assert type(made)(**made.get_config())(7) == made(7)


def test_the_cosine_rises_from_a_half_and_falls_to_the_final_rate():
    rate = schedule(LearningRate(**COSINE), steps=100)
    assert float(rate(0)) == pytest.approx(0.01)
    assert float(rate(4)) == pytest.approx(0.02)
    assert float(rate(52)) == pytest.approx((0.02 + 1e-5) / 2)


def test_the_cosine_of_a_stage_begins_at_its_first_update():
    rate = schedule(LearningRate(**COSINE), steps=100, offset=1000)
    assert float(rate(1000)) == pytest.approx(0.01)
    assert float(rate(1052)) == pytest.approx((0.02 + 1e-5) / 2)


def rates(steps, **settings):
    return np.asarray(schedule(LearningRate(**settings), steps=steps)(np.arange(steps)))


def test_the_cosine_of_gpt_rises_from_zero_and_falls_to_zero():
    found = rates(
        12_000, schedule="cosine", factor=2.5e-4, warmup_steps=2000, warmup_start=0, final_factor=0
    )
    assert found[0] == 0
    assert found[1000] == pytest.approx(1.25e-4)
    assert found[2000] == pytest.approx(2.5e-4)
    assert found[7000] == pytest.approx(1.25e-4)
    assert found[11_999] == pytest.approx(2.5e-4 * (1 + math.cos(math.pi * 0.9999)) / 2)


def test_the_line_of_fairseq_begins_at_the_end_of_its_warmup():
    found = rates(1000, schedule="linear", factor=5e-4, warmup_steps=100, final_factor=1e-9)
    assert found[0] == 0
    assert found[50] == pytest.approx(2.5e-4)
    assert found[100] == pytest.approx(5e-4)
    assert found[550] == pytest.approx(2.5e-4, rel=1e-5)
    assert found[999] == pytest.approx(1e-9 + 5e-4 / 900, rel=1e-5)
    assert np.argmax(found) == 100


def test_the_line_of_bert_begins_at_step_zero_so_the_rate_jumps_after_the_warmup():
    found = rates(1000, schedule="bert_linear", factor=1e-4, warmup_steps=100)
    assert found[0] == 0
    assert found[99] == pytest.approx(0.99e-4)
    assert found[100] == pytest.approx(0.90e-4)  # by t_w / T less than the factor
    assert found[999] == pytest.approx(1e-7)
    assert max(found) < 1e-4  # which is never reached


@pytest.mark.parametrize("name", ["linear", "bert_linear", "cosine"])
def test_without_warmup_the_first_rate_is_the_factor(name):
    settings = {"schedule": name, "factor": 1e-5, "warmup_steps": 0, "warmup_start": 0}
    assert rates(100, **settings)[0] == pytest.approx(1e-5)
    with pytest.raises(ValueError, match="divides by the root of it; at least 1"):
        LearningRate(warmup_steps=0)


def test_the_line_of_gpt_falls_also_during_its_warmup():
    found = rates(10_000, schedule="gpt_linear", factor=6.25e-5)
    assert found[0] == 0
    assert found[10] == pytest.approx(6.25e-5 * 0.5 * 0.999)
    assert found[20] == pytest.approx(6.25e-5 * 0.998)
    assert found[5000] == pytest.approx(6.25e-5 / 2)


@pytest.mark.parametrize("name", ["cosine", "linear", "bert_linear", "gpt_linear"])
def test_after_the_last_step_the_last_rate_holds(name):
    made = schedule(LearningRate(schedule=name, warmup_steps=4), steps=100, offset=1000)
    assert float(made(2000)) == float(made(1099)) < float(made(1050))
    assert float(made(0)) == float(made(1000))
