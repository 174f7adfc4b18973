"""Dropout is applied to the arrays to which Hugging Face's networks apply it, in their order."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="peers are not installed: make parity")
transformers = pytest.importorskip("transformers", reason="peers are not installed: make parity")
from t5repro.config.presets.sizes import SIZES  # noqa: E402
from t5repro.config.sections.model import ModelSettings  # noqa: E402

pytestmark = [pytest.mark.parity, pytest.mark.keras]
Shapes = list[tuple[int, ...]]
IDS, RATE, LABELS, BATCH = 128, 0.25, 3, 2
LENGTH, TARGETS = 11, 7
# Widths that all differ, so that a shape tells the array.
WIDTH, INNER, HEADS, BLOCKS = 36, 52, 3, 2
ODD = {
    "d_model": WIDTH,
    "d_ff": INNER,
    "d_kv": WIDTH // HEADS,
    "num_heads": HEADS,
    "num_encoder_layers": BLOCKS,
    "num_decoder_layers": BLOCKS,
}
OF_ENCODERS = {
    "vocab_size": IDS,
    "hidden_size": WIDTH,
    "intermediate_size": INNER,
    "num_attention_heads": HEADS,
    "num_hidden_layers": BLOCKS,
    "hidden_dropout_prob": RATE,
    "attention_probs_dropout_prob": RATE,
    "classifier_dropout_prob": RATE,
    "num_labels": LABELS,
}
OF_GPT = {
    "vocab_size": IDS,
    "n_embd": WIDTH,
    "n_layer": BLOCKS,
    "n_head": HEADS,
    "embd_pdrop": RATE,
    "resid_pdrop": RATE,
    "attn_pdrop": RATE,
}
OF_T5 = {
    "vocab_size": IDS,
    "d_model": WIDTH,
    "d_ff": INNER,
    "d_kv": WIDTH // HEADS,
    "num_heads": HEADS,
    "num_layers": BLOCKS,
    "dropout_rate": RATE,
}


@pytest.fixture
def dropped(monkeypatch):
    """Return the list to which ours append the shapes of what they drop out."""
    from t5repro.model.layers import Dropout

    shapes: Shapes = []
    drop = Dropout.call

    def recorded(self, x, training=False):
        if training and self.rate:
            assert self.rate == RATE
            shapes.append(tuple(x.shape))
        return drop(self, x, training=training)

    monkeypatch.setattr(Dropout, "call", recorded)
    return shapes


def dropped_by_theirs(
    monkeypatch: pytest.MonkeyPatch, class_name: str, config: dict[str, Any], **inputs: Any
) -> Shapes:
    """Return the shapes of what a network of Hugging Face drops out."""
    network = getattr(transformers, class_name)
    settings = network.config_class(**config, attn_implementation="eager")
    model = network(settings).train()
    shapes: Shapes = []
    drop = torch.nn.functional.dropout

    def recorded(x, p=0.5, training=True, inplace=False):
        if training and p:
            assert p == RATE
            shapes.append(tuple(x.shape))
        return drop(x, p, training, inplace)

    monkeypatch.setattr(torch.nn.functional, "dropout", recorded)
    model(**{name: torch.tensor(ids, dtype=torch.long) for name, ids in inputs.items()})
    return shapes


def ids_of(length: int) -> np.ndarray:
    return np.random.default_rng(1).integers(3, IDS, (BATCH, length)).astype(np.int32)


def encoder(size: str, **heads: int) -> Any:
    from t5repro.model.encoder import Encoder

    of_size = {key: getattr(SIZES[size], key) for key in SIZES[size].model_fields_set}
    shape = ModelSettings(**{**of_size, **ODD})
    return Encoder(shape, embedding_rows=IDS, dropout_rate=RATE, seed=0, **heads)


def read_row(model: Any) -> None:
    ids = ids_of(LENGTH)
    ones = np.ones_like(ids)
    features = {"encoder_ids": ids, "encoder_segments": ones, "encoder_types": 0 * ones}
    model({**features, "target_positions": ids[:, :2] % LENGTH}, training=True)


@pytest.mark.parametrize("task", ["ForMaskedLM", "ForSequenceClassification"])
@pytest.mark.parametrize(("kind", "size"), [("Bert", "bert_base"), ("Roberta", "roberta_base")])
def test_of_an_encoder(monkeypatch, dropped, kind, size, task):
    expected = dropped_by_theirs(monkeypatch, kind + task, OF_ENCODERS, input_ids=ids_of(LENGTH))
    read_row(encoder(size, labels=LABELS if task == "ForSequenceClassification" else 0))
    # The first position has an axis of length in ours.
    without_axis = [(shape[0], shape[2]) if shape[1:2] == (1,) else shape for shape in dropped]
    assert without_axis == expected
    assert (BATCH, HEADS, LENGTH, LENGTH) in expected


def test_of_albert_whose_released_code_also_drops_the_output_of_the_feed_forward_layer(
    monkeypatch, dropped
):
    config = {**OF_ENCODERS, "embedding_size": 20}
    expected = dropped_by_theirs(monkeypatch, "AlbertForMaskedLM", config, input_ids=ids_of(LENGTH))
    from t5repro.model.encoder import Encoder

    of_size = {
        key: getattr(SIZES["albert_base"], key) for key in SIZES["albert_base"].model_fields_set
    }
    shape = ModelSettings(**{**of_size, **ODD, "embedding_width": 20})
    read_row(Encoder(shape, embedding_rows=IDS, dropout_rate=RATE, seed=0))
    hidden = (BATCH, LENGTH, WIDTH)
    first, of_block = expected[:1], expected[1:3]
    assert expected == first + BLOCKS * of_block
    assert dropped == first + BLOCKS * [*of_block, hidden]


def test_of_gpt(monkeypatch, dropped):
    from networks import text_network

    expected = dropped_by_theirs(
        monkeypatch, "OpenAIGPTLMHeadModel", OF_GPT, input_ids=ids_of(LENGTH)
    )
    of_size = {key: getattr(SIZES["gpt"], key) for key in SIZES["gpt"].model_fields_set}
    model = text_network(
        ModelSettings(**{**of_size, **ODD}), embedding_rows=IDS, dropout_rate=RATE, seed=0
    )
    ids = ids_of(LENGTH)
    model({"decoder_ids": ids, "decoder_segments": np.ones_like(ids)}, training=True)
    assert dropped == expected


@pytest.mark.parametrize("feed_forward", ["relu", "gated_gelu"])
def test_of_t5(monkeypatch, dropped, feed_forward):
    from networks import text_network

    theirs = {"relu": "relu", "gated_gelu": "gated-gelu"}[feed_forward]
    inputs, targets = ids_of(LENGTH), ids_of(TARGETS)
    expected = dropped_by_theirs(
        monkeypatch,
        "T5ForConditionalGeneration",
        {**OF_T5, "feed_forward_proj": theirs},
        input_ids=inputs,
        decoder_input_ids=targets,
    )
    shape = ModelSettings(**ODD, feed_forward=feed_forward)
    model = text_network(shape, embedding_rows=IDS, dropout_rate=RATE, seed=0)
    features = {
        "encoder_ids": inputs,
        "encoder_segments": np.ones_like(inputs),
        "decoder_ids": targets,
        "decoder_segments": np.ones_like(targets),
    }
    model(features, training=True)
    assert dropped == expected
