import pytest

from t5repro.config.flops import recomputed_flops, step_flops
from t5repro.config.row_shapes import row_shape
from t5repro.config.sections.finetune import FinetuneSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.training import TrainingSettings
from t5repro.model.sizes import SIZES
from t5repro.plan.memory import texts_of


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


def test_the_backward_pass_repeats_the_blocks_but_not_the_output_matrix():
    model = ModelSettings(
        d_model=1, d_ff=1, d_kv=1, num_heads=1, num_encoder_layers=1, num_decoder_layers=1
    )
    plan = TrainingSettings(batch_size=3, inputs_length=4, targets_length=5)
    positions = 2 * 4 * 4 + 2 * 5 * 5 + 2 * 5 * 4
    weights = 4 * (4 + 2) + 5 * (6 + 2) + 4 * 2
    repeated = {
        remat: recomputed_flops(model, plan, remat=remat) for remat in ("none", "dots", "block")
    }
    assert repeated == {
        "none": 0,
        "dots": 3 * 2 * positions,
        "block": 3 * 2 * (positions + weights),
    }


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


@pytest.mark.parametrize(
    ("name", "rows", "length", "predicted", "gigaflops"),
    [
        ("bert_base", 30_522, 512, 77, 100.3),
        ("bert_base", 30_522, 128, 20, 23.3),
        ("roberta_base", 50_265, 512, 77, 102.7),
        ("albert_base", 30_000, 512, 20, 96.9),
        ("electra_base", 30_522, 512, 77, 114.0),  # both networks
        ("electra_small", 30_522, 128, 19, 2.995),
    ],
)
def test_a_row_of_an_encoder_takes_the_operations_of_its_formula(
    name, rows, length, predicted, gigaflops
):
    plan = PretrainSettings(batch_size=1, inputs_length=length, targets_length=predicted)
    flops = step_flops(SIZES[name], plan, embedding_rows=rows)
    assert flops / 3 == pytest.approx(gigaflops * 1e9, rel=0.001)


def test_fine_tuning_of_an_encoder_predicts_a_label_and_no_pieces() -> None:
    lengths = {"batch_size": 1, "inputs_length": 128}
    pretrained = PretrainSettings(**lengths, targets_length=20)
    fine_tuned = FinetuneSettings(**lengths, targets_length=20)
    model = SIZES["bert_base"]
    ends = 20 * (768 * 768 + 768 * 30_522)
    assert step_flops(model, pretrained, embedding_rows=30_522) == (
        step_flops(model, fine_tuned, embedding_rows=30_522) + 3 * 2 * ends
    )


def test_fine_tuning_of_electra_is_that_of_its_detector_alone() -> None:
    plan = FinetuneSettings(batch_size=1, inputs_length=128)
    detector = SIZES["electra_small"].model_copy(update={"architecture": "encoder"})
    flops = [
        step_flops(size, plan, embedding_rows=99) for size in (SIZES["electra_small"], detector)
    ]
    assert flops[0] == flops[1]


@pytest.mark.parametrize(
    ("task", "judged", "predicted"),
    [("masked_detection", 128, 0), ("masked_pieces", 0, 19), ("all_pieces", 128, 128)],
)
def test_the_task_of_the_second_network_decides_its_heads(task, judged, predicted) -> None:
    model, (width, embedding) = SIZES["electra_small"], (256, 128)
    flops = {
        name: step_flops(
            model,
            PretrainSettings.model_validate(
                {
                    "batch_size": 1, "inputs_length": 128, "targets_length": 19,
                    "replaced_tokens": {"task": name},
                }
            ),
            embedding_rows=30_522,
        ) // 6
        for name in ("detection", task)
    }  # fmt: skip
    heads = judged * (width**2 + width) + predicted * embedding * (width + 30_522)
    assert flops[task] - flops["detection"] == heads - 128 * (width**2 + width)


def test_a_decoder_of_labels_predicts_pieces_only_for_its_language_model() -> None:
    lengths = {"batch_size": 1, "inputs_length": 128, "targets_length": 20, "answers": "labels"}
    model = SIZES["gpt"]
    without, with_pieces = (
        step_flops(model, FinetuneSettings(**lengths, lm_weight=weight), embedding_rows=32_128)
        for weight in (0, 0.5)
    )
    assert with_pieces - without == 3 * 2 * 128 * 768 * 32_128
    block = 128 * (12 * 768**2 + 2 * 128 * 768)
    assert without == 3 * 2 * 12 * block


@pytest.mark.parametrize(
    ("tasks", "of_gpt", "of_bert"),
    [
        (["glue_cola", "glue_stsb"], 2, 1),
        (["super_glue_copa"], 2, 2),
        (["super_glue_copa", "glue_mrpc"], 4, 2),
        (["squad", "glue_rte"], 1, 1),
    ],
)
def test_options_and_orders_of_a_task_multiply_the_texts_of_all_rows(tasks, of_gpt, of_bert):
    plan = FinetuneSettings(inputs_length=32, answers="labels", lm_weight=0.5)
    for model, texts in ((SIZES["gpt_tiny"], of_gpt), (SIZES["bert_tiny"], of_bert)):
        one = step_flops(model, plan, embedding_rows=99)
        assert texts_of(model, tasks, own={}) == texts
        assert step_flops(model, plan, embedding_rows=99, texts=texts) == texts * one
    text = plan.model_copy(update={"answers": "text"})
    one = step_flops(SIZES["gpt_tiny"], text, embedding_rows=99)
    assert step_flops(SIZES["gpt_tiny"], text, embedding_rows=99, texts=of_gpt) == one


def test_positions_of_a_row_are_those_that_the_network_reads():
    plan = {"inputs_length": 128, "targets_length": 20}
    positions = {
        size: row_shape(SIZES[size], PretrainSettings(**plan, objective=objective)).positions
        for size, objective in (
            ("small", "drop_tokens"),
            ("bert_tiny", "masked_lm"),
            ("gpt_tiny", "lm"),
        )
    }
    assert positions == {"small": 148, "bert_tiny": 128, "gpt_tiny": 20}


def test_the_boundary_objective_adds_its_head() -> None:
    """SpanBERT at base width: 3.7 GFLOP of its 103.9 a row forward, with 28,996 ids."""
    lengths = {"batch_size": 1, "inputs_length": 512, "targets_length": 77}
    without = PretrainSettings(**lengths)
    boundary = {"masked_lm": {"unit": "span", "boundary_weight": 1}}
    with_head = PretrainSettings.model_validate({**lengths, **boundary})
    model = SIZES["spanbert_base"]
    flops = [step_flops(model, plan, embedding_rows=28_996) / 3 for plan in (without, with_head)]
    assert flops[1] - flops[0] == 2 * 77 * 768 * (3 * 768 + 200 + 28_996)
    assert flops[1] == pytest.approx(103.9e9, rel=0.002)
