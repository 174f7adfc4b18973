import pytest

from t5repro.config.flops import step_flops
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.training import TrainingSettings
from t5repro.model.sizes import SIZES


def test_a_step_of_t5_small_takes_850_billion_operations_at_8_rows_of_512_and_114():
    plan = TrainingSettings(batch_size=8, inputs_length=512, targets_length=114)
    flops = step_flops(SIZES["small"], plan, embedding_rows=32_128)
    assert flops == pytest.approx(850e9, rel=0.001)


def test_a_network_of_ones_is_counted_by_hand():
    model = ModelSettings(
        d_model=1, d_ff=1, d_kv=1, num_heads=1, num_encoder_layers=1, num_decoder_layers=1
    )
    plan = TrainingSettings(batch_size=1, inputs_length=4, targets_length=5)
    encoder = 4 * (4 + 2) + 2 * 4 * 4  # four projections and two matrices; scores and reading
    decoder = 5 * (6 + 2) + 2 * 5 * 5 + 2 * 5 * 4 + 4 * 2
    assert step_flops(model, plan, embedding_rows=7) == 3 * 2 * (encoder + decoder + 5 * 7)


def test_a_gate_is_a_third_matrix():
    plan = TrainingSettings(batch_size=2, inputs_length=4, targets_length=4)
    relu, gated = (
        step_flops(ModelSettings(feed_forward=kind), plan, embedding_rows=128)
        for kind in ("relu", "swiglu")
    )
    assert gated - relu == 3 * 2 * 2 * (12 * 4 + 12 * 4) * 768 * 3072


def test_a_decoder_alone_reads_inputs_and_targets_as_one_row():
    model = ModelSettings(
        architecture="language_model", d_model=1, d_ff=1, d_kv=1, num_heads=1, num_decoder_layers=2
    )
    plan = TrainingSettings(batch_size=1, inputs_length=4, targets_length=5)
    block = 9 * (4 + 2) + 2 * 9 * 9
    assert step_flops(model, plan, embedding_rows=7) == 3 * 2 * (2 * block + 9 * 7)


def test_a_language_model_computes_no_inputs():
    model = ModelSettings(
        architecture="language_model", d_model=1, d_ff=1, d_kv=1, num_heads=1, num_decoder_layers=2
    )
    plan = PretrainSettings(batch_size=1, inputs_length=4, targets_length=5, objective="lm")
    block = 5 * (4 + 2) + 2 * 5 * 5
    assert step_flops(model, plan, embedding_rows=7) == 3 * 2 * (2 * block + 5 * 7)
