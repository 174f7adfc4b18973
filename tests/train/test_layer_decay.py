"""Learning rates that fall from the head to the embedding, against ELECTRA's own rule."""

import numpy as np
import pytest

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.config.schema import Settings  # noqa: E402
from t5repro.train.adam import Adam  # noqa: E402
from t5repro.train.layer_decay import gradient_factors, rate_factors  # noqa: E402

pytestmark = pytest.mark.keras

BERT = SIZES["bert_base"]


def electra_rate(depth: int, layers: int, decay: float) -> float:
    """Return the factor at a depth: 0, the block's number from 1, or of heads `layers` + 2."""
    return decay ** (layers + 2 - depth)


@pytest.mark.parametrize(
    ("path", "depth"),
    [
        ("embedding", 0), ("encoder/positions/table", 0), ("encoder/token_types/table", 0),
        ("encoder/embedding_norm/scale", 0), ("encoder/block_0/self_attention/q", 1),
        ("encoder/block_11/feed_forward/wo_bias", 12), ("pooler/matrix", 14),
        ("label_head/bias", 14), ("span_head/matrix", 14),
    ],
)  # fmt: skip
def test_the_factor_of_a_layer_is_that_of_electra(path, depth):
    factors = rate_factors([path], 0.8, BERT)
    assert factors.get(path, 1.0) == pytest.approx(electra_rate(depth, 12, 0.8), rel=1e-12)


def test_both_stacks_of_t5_fall_from_their_top_block():
    t5 = SIZES["small"]
    paths = ["encoder/norm/scale", "encoder/block_5/self_attention/q", "decoder/block_5/x",
             "decoder/block_4/x", "decoder/relative_bias/table", "output_matrix"]  # fmt: skip
    found = rate_factors(paths, 0.5, t5)
    assert list(found.values()) == [2**-2, 2**-2, 2**-2, 2**-3, 2**-8]
    assert rate_factors(paths, 1.0, t5) == {}


def test_a_step_is_scaled_by_the_factor_of_its_weight():
    def after(factors):
        optimizer = Adam(lambda: 0.1, variant="adam_bert", decay=0.01)
        weights = [keras.Variable(np.full((2, 3), 2.0, np.float32), name=name) for name in "ab"]
        for weight, path in zip(weights, ("model/a", "model/b"), strict=True):
            weight._path = path
        optimizer.build(weights)
        optimizer.rate_factors = factors
        optimizer.apply([tf.ones((2, 3)), tf.ones((2, 3))])
        return [2.0 - np.asarray(weight) for weight in weights]

    whole, _ = after({})
    same, scaled = after({"b": 0.25})
    assert np.array_equal(same, whole)
    assert scaled == pytest.approx(0.25 * whole, rel=1e-5)


def test_blocks_that_share_weights_have_no_layer_of_their_own():
    with pytest.raises(ValueError, match=r"layer_decay is 0\.8, but blocks that share weights"):
        Settings.model_validate(
            {
                "model": SIZES["albert_tiny"].model_dump(),
                "pretrain": {"objective": "masked_lm", "loss_normaliser": "target_tokens"},
                "tasks": {"names": ["glue_rte"], "segments": True},
                "finetune": {
                    "layer_decay": 0.8,
                    "optimizer_state": "fresh",
                    "loss_normaliser": "target_tokens",
                },
            }
        )


def test_gradients_of_blocks_fall_as_in_xlnet_and_those_of_others_stay():
    """Factor decay^(n - 1 - l) of layer l; in the update after clipping, before the moments."""
    xlnet = SIZES["xlnet_base"]
    paths = [
        "embedding",
        "pooler/matrix",
        *(f"encoder/block_{n}/feed_forward/wi" for n in (0, 10, 11)),
    ]
    factors = gradient_factors(paths, 0.75, xlnet)
    assert factors == pytest.approx({paths[2]: 0.75**11, paths[3]: 0.75})
    weights = [keras.Variable(np.ones(3), name=name) for name in ("top", "low")]
    optimizer = Adam(0.1, variant="adam_bert", max_grad_norm=0.5, epsilon=1e-3)
    optimizer.build(weights)
    optimizer._paths = ["top", "low"]
    optimizer.gradient_factors = {"low": 0.25}
    gradients = [np.full(3, 2.0, np.float32), np.full(3, 1.0, np.float32)]
    optimizer.apply([tf.constant(gradient) for gradient in gradients], weights)
    norm = np.sqrt(3 * 4 + 3)
    for weight, gradient in zip(weights, (2.0, 0.25), strict=True):
        clipped = gradient * 0.5 / norm
        update = 0.1 * 0.1 * clipped / (np.sqrt(0.001) * clipped + 1e-3)
        assert weight.numpy() == pytest.approx(1 - update, rel=1e-5)
