import pytest

keras = pytest.importorskip("keras")
from t5repro.config.sections.model import ModelSettings  # noqa: E402
from t5repro.model.sizes import SIZES, parameter_count  # noqa: E402

pytestmark = pytest.mark.keras

PUBLISHED = {
    "small": 60_506_624,
    "base": 222_903_552,
    "large": 737_668_096,
    "3b": 2_851_598_336,
    "11b": 11_307_321_344,
    "2x": 502_746_112,
    "4x": 972_590_080,
    "v1_1_small": 76_961_152,
    "v1_1_base": 247_577_856,
    "v1_1_large": 783_150_080,
    "v1_1_xl": 2_849_757_184,
    "v1_1_xxl": 11_135_332_352,
    "gpt": 116_534_784 + (32_128 - 40_478) * 768,  # with this vocabulary in place of its own
}
NOT_PUBLISHED = {
    f"{system}_{name}"
    for system in ("gpt", "bert", "spanbert", "structbert", "roberta", "albert", "electra", "xlnet")
    for name in ("tiny", "mini")
}
# Size -> rows of its own embedding, and the parameters of the body with a pooler, without heads.
BODIES = {
    "bert_base": (30_522, 109_482_240),
    "bert_large": (30_522, 335_141_888),
    "spanbert_base": (28_996, 108_310_272),
    "spanbert_large": (28_996, 333_579_264),
    "structbert_base": (30_522, 109_482_240),  # BERT's sizes and vocabulary
    "structbert_large": (30_522, 335_141_888),
    "albert_base": (30_000, 11_683_584),
    "albert_large": (30_000, 17_683_968),
    "albert_xlarge": (30_000, 58_724_864),
    "albert_xxlarge": (30_000, 222_595_584),
}
# Size -> rows of its own embedding, classes of pairs, and the parameters with the heads.
WITH_HEADS = {
    "bert_base": (30_522, 2, 110_106_428),
    "bert_large": (30_522, 2, 336_226_108),
    "roberta_base": (50_265, 0, 124_697_433),
    "roberta_large": (50_265, 0, 355_412_057),
    "xlnet_base": (32_000, 0, 116_750_336),
    "xlnet_large": (32_000, 0, 360_300_800),
}
# Size -> parameters of the detector without a head, and of both networks in pre-training, with the
# 30,522 rows of the released checkpoints (transformers ``ElectraModel``).
ELECTRA = {
    "electra_small": (13_483_008, 14_196_219),
    "electra_base": (108_891_648, 119_386_427),
    "electra_large": (334_092_288, 354_655_291),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes_have_the_published_number_of_parameters(name):
    assert parameter_count(SIZES[name]) == PUBLISHED[name]


def test_every_size_is_counted():
    assert set(SIZES) == {*PUBLISHED, *BODIES, *WITH_HEADS, *ELECTRA} | NOT_PUBLISHED


@pytest.mark.parametrize("name", BODIES)
def test_encoders_have_the_published_number_of_parameters(name):
    rows, published = BODIES[name]
    label_head = SIZES[name].d_model + 1
    assert parameter_count(SIZES[name], rows, labels=1) - label_head == published


@pytest.mark.parametrize(
    ("width", "change", "millions"),
    [
        (768, {}, 31),
        (768, {"shared_parts": "attention"}, 83),
        (768, {"shared_parts": "feed_forward"}, 57),
        (768, {"block_groups": 0}, 108),
        (128, {}, 12),
        (128, {"shared_parts": "attention"}, 64),
        (128, {"shared_parts": "feed_forward"}, 38),
        (128, {"block_groups": 0}, 89),
    ],
)
def test_the_sharings_of_albert_have_the_parameters_of_its_paper(width, change, millions):
    """Lan et al., 2020, table 4: ALBERT base with a vocabulary of 30,000, in whole millions.

    The paper's 108 has no pooler, its 12 has one: half a million decides the last digit.
    """
    base = SIZES["albert_base"]
    values = {key: getattr(base, key) for key in base.model_fields_set}
    model = ModelSettings(**{**values, "embedding_width": width, **change})
    # The body without heads; the paper has no projection at a width of 768.
    count = parameter_count(model, 30_000, labels=1) - (model.d_model + 1)
    count -= (width + 1) * model.d_model if width == 768 else 0
    assert abs(count / 1e6 - millions) < 1.1


@pytest.mark.parametrize("name", WITH_HEADS)
def test_heads_of_pretraining_have_the_published_number_of_parameters(name):
    rows, pair_classes, published = WITH_HEADS[name]
    if name.startswith("roberta"):
        # Its released table has two more rows of positions, and it has a row of token types.
        published -= 3 * SIZES[name].d_model
    assert parameter_count(SIZES[name], rows, pair_classes=pair_classes) == published


@pytest.mark.parametrize("name", ELECTRA)
def test_both_networks_of_electra_have_the_published_number_of_parameters(name):
    size, (body, both) = SIZES[name], ELECTRA[name]
    assert parameter_count(size, 30_522, labels=2) - 2 * (size.d_model + 1) == body
    assert parameter_count(size, 30_522) == both


@pytest.mark.parametrize("tying", ["none", "embeddings", "all"])
@pytest.mark.parametrize("name", ["electra_tiny", "electra_mini"])
def test_the_count_of_electra_is_that_of_a_network_that_was_built(name, tying):
    from t5repro.model.generator_detector import GeneratorDetector

    width = 1.0 if tying == "all" else SIZES[name].generator_width
    size = SIZES[name].model_copy(update={"generator_tying": tying, "generator_width": width})
    network = GeneratorDetector(size, embedding_rows=128, dropout_rate=0.0, seed=0)
    built = sum(int(variable.numpy().size) for variable in network.trainable_variables)
    assert parameter_count(size, 128) == built


def test_depth_does_not_change_the_number_of_parameters_of_albert():
    counts = {
        parameter_count(SIZES["albert_base"].model_copy(update={"num_encoder_layers": layers}))
        for layers in (1, 3, 6, 12, 24, 48)
    }
    assert len(counts) == 1


def test_the_baseline_of_the_settings_is_the_size_base():
    assert ModelSettings() == SIZES["base"]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"feed_forward": "gated_gelu", "tie_embeddings": False},
        {"architecture": "shared_encoder_decoder", "num_decoder_layers": 2},
        {"architecture": "language_model"},
        {"architecture": "prefix_language_model", "num_decoder_layers": 1},
        {"feed_forward": "swiglu"},
        {"relative_position_bias": "per_layer"},
        {
            "relative_position_bias": "per_layer",
            "architecture": "shared_encoder_decoder",
            "num_decoder_layers": 2,
        },
        {"relative_position_bias": "per_layer", "architecture": "language_model"},
        {"positions": "rotary"},
        {"positions": "rotary", "architecture": "language_model"},
    ],
    ids=[
        "1.0",
        "1.1",
        "shared",
        "language model",
        "prefix",
        "swiglu",
        "per layer",
        "shared, per layer",
        "language model, per layer",
        "rotary",
        "language model, rotary",
    ],
)
def test_the_count_is_that_of_a_network_that_was_built(make_model, change):
    model = make_model(**change)
    built = sum(int(variable.numpy().size) for variable in model.trainable_variables)
    assert parameter_count(model.settings, model.embedding_rows) == built
