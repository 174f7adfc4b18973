"""Beside Hugging Face's XLNet, with the same random weights: order, memory, directions, rows."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="peers are not installed: make parity")
transformers = pytest.importorskip("transformers", reason="peers are not installed: make parity")

pytestmark = [pytest.mark.parity, pytest.mark.keras]
IDS, LENGTH, ROWS, PREDICTED, REUSED, KEPT = 97, 23, 6, 7, 9, 14
SHAPE = {
    "vocab_size": IDS,
    "d_model": 36,
    "n_layer": 3,
    "n_head": 3,
    "d_inner": 43,
    "ff_activation": "gelu_new",
    "layer_norm_eps": 1e-6,
    "num_labels": 3,
    "dropout": 0.0,
    "summary_last_dropout": 0.0,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def hugging_face(task: str, **change: Any) -> Any:
    torch.manual_seed(3)
    config = transformers.XLNetConfig(**{**SHAPE, **change})
    model = getattr(transformers, f"XLNet{task}")(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Less in norms, so that answers vary.
            deviation = 0.1 if "norm" in name.lower() else 0.3
            parameter.add_(deviation * torch.randn_like(parameter))
    return model


def ours_from(folder: Any, **arguments: Any) -> Any:
    from t5repro.model.checkpoints import weight_variables
    from t5repro.model.foreign_weights import read_foreign
    from t5repro.model.two_stream import TwoStreamEncoder

    foreign = read_foreign(folder)
    model = TwoStreamEncoder(
        foreign.model,
        embedding_rows=foreign.embedding_rows,
        dropout_rate=0.0,
        seed=0,
        labels=len(foreign.weights.get("label_head/bias", ())),
        **arguments,
    )
    variables = weight_variables(model)
    assert set(variables) == set(foreign.weights)
    for name, variable in variables.items():
        variable.assign(foreign.weights[name])
    return model


def pair(folder: Any, task: str, change: dict[str, Any] | None = None, **arguments: Any) -> Any:
    """Return Hugging Face's model and ours with the same weights, through files."""
    theirs = hugging_face(task, **(change or {}))
    theirs.save_pretrained(folder, safe_serialization=True)
    return theirs, ours_from(folder, **arguments)


def batch(step: int) -> dict[str, np.ndarray]:
    """Return rows in random orders, of which some positions share a number."""
    generator = np.random.default_rng(step)
    places = [generator.permutation(LENGTH)[:PREDICTED] for _ in range(ROWS)]
    return {
        "encoder_ids": generator.integers(3, IDS, (ROWS, LENGTH)).astype(np.int32),
        "encoder_types": generator.integers(0, 3, (ROWS, LENGTH)).astype(np.int32),
        "encoder_order": generator.integers(0, LENGTH // 2, (ROWS, LENGTH)).astype(np.int32),
        "target_positions": np.sort(places).astype(np.int32),
    }


def their_arguments(features: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the same rows with masks and mappings in place of numbers."""
    order, positions = features["encoder_order"], features["target_positions"]
    hidden = order[:, None, :] > order[:, :, None]
    at_targets = np.take_along_axis(order, positions, axis=1)
    for row, places in enumerate(positions):
        hidden[row, places] = order[row][None] >= at_targets[row][:, None]
    mapping = np.eye(LENGTH)[positions]
    return {
        "input_ids": torch.tensor(features["encoder_ids"], dtype=torch.long),
        "token_type_ids": torch.tensor(features["encoder_types"], dtype=torch.long),
        "perm_mask": torch.tensor(hidden, dtype=torch.float32),
        "target_mapping": torch.tensor(mapping, dtype=torch.float32),
    }


def unequal(features: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return rows whose predicted positions share their number with none.

    Theirs has one mask for both streams and opens its diagonal for contents.
    """
    order = features["encoder_order"] * 2 * LENGTH
    places = np.arange(PREDICTED, dtype=np.int32)
    np.put_along_axis(
        order,
        features["target_positions"],
        np.take_along_axis(order, features["target_positions"], axis=1) + 1 + places,
        axis=1,
    )
    return {**features, "encoder_order": order.astype(np.int32)}


def close(ours: Any, theirs: Any, share: float = 1e-4) -> None:
    expected = theirs.detach().numpy()
    assert np.asarray(ours).shape == expected.shape
    assert np.abs(np.asarray(ours) - expected).max() < share * np.abs(expected).max()
    assert expected.std() > 0.2  # the comparison is of numbers that differ


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
def test_queries_in_random_orders_agree_to_a_ten_thousandth(tmp_path, activation):
    theirs, ours = pair(tmp_path, "LMHeadModel", {"ff_activation": activation})
    for step in range(3):
        features = unequal(batch(step))
        close(ours(features), theirs(**their_arguments(features)).logits)


def test_the_memory_over_three_calls_agrees(tmp_path):
    theirs, ours = pair(
        tmp_path,
        "LMHeadModel",
        {"mem_len": KEPT, "reuse_len": REUSED, "use_mems_eval": True},
        memory_shape=(ROWS, KEPT),
        reuse_length=REUSED,
    )
    # Ours begins with zeros, as the released code: theirs gets them.
    memory = tuple(torch.zeros(KEPT, ROWS, SHAPE["d_model"]) for _ in range(SHAPE["n_layer"]))
    for step in range(3):
        features = unequal(batch(step))
        with torch.no_grad():
            expected = theirs(**their_arguments(features), mems=memory)
        logits, inputs = ours.predict_pieces(features, ours.memory.states)
        close(logits, expected.logits)
        ours.memory.remember(inputs)
        memory = expected.mems
        assert len(memory) == len(inputs) == SHAPE["n_layer"]
        for of_block, theirs_of_block in zip(ours.memory.states.numpy(), memory, strict=True):
            close(of_block, theirs_of_block.permute(1, 0, 2))


def test_rows_that_are_read_backwards_have_negated_distances(tmp_path):
    """Theirs are the second half of a batch, ours every second row."""
    theirs, ours = pair(
        tmp_path,
        "LMHeadModel",
        {"bi_data": True, "mem_len": KEPT, "reuse_len": REUSED},
        memory_shape=(ROWS, KEPT),
        reuse_length=REUSED,
        both_directions=True,
    )
    features = unequal(batch(5))
    order = [0, 2, 4, 1, 3, 5]
    arguments = their_arguments({name: values[order] for name, values in features.items()})
    states = np.random.default_rng(1).normal(size=ours.memory.shape).astype(np.float32)
    memory = tuple(torch.tensor(block[order]).permute(1, 0, 2) for block in states)
    expected = theirs(**arguments, mems=memory).logits
    logits, _ = ours.predict_pieces(features, states)
    close(np.asarray(logits)[order], expected)
    forwards, _ = pair(tmp_path / "forwards", "LMHeadModel", {"bi_data": False})
    assert np.abs((forwards(**arguments, mems=memory).logits - expected).detach().numpy()).max() > 1


def test_gradients_agree_to_a_thousandth(tmp_path):
    import keras
    import tensorflow as tf

    from t5repro.model.checkpoints import weight_variables
    from t5repro.model.two_stream_names import flat_arrays
    from t5repro.model.weight_names import from_huggingface

    theirs, ours = pair(
        tmp_path,
        "LMHeadModel",
        {"mem_len": KEPT, "reuse_len": REUSED},
        memory_shape=(ROWS, KEPT),
        reuse_length=REUSED,
    )
    features = unequal(batch(2))
    targets = np.random.default_rng(7).integers(3, IDS, (ROWS, PREDICTED))
    states = np.random.default_rng(1).normal(size=ours.memory.shape).astype(np.float32)
    memory = tuple(torch.tensor(block).permute(1, 0, 2) for block in states)
    logits = theirs(**their_arguments(features), mems=memory).logits
    loss = torch.nn.functional.cross_entropy(
        logits.reshape(-1, IDS), torch.tensor(targets.reshape(-1)).long()
    )
    loss.backward()
    gradients = {name: p.grad.numpy() for name, p in theirs.named_parameters()}
    expected = from_huggingface(flat_arrays(gradients), ours.settings)
    variables = weight_variables(ours)
    with tf.GradientTape() as tape:
        found, _ = ours.predict_pieces(features, states)
        entropy = keras.ops.sparse_categorical_crossentropy
        ours_loss = tf.reduce_mean(entropy(targets, found, from_logits=True))
    assert float(ours_loss) == pytest.approx(loss.item(), rel=1e-5)
    found = tape.gradient(ours_loss, [variable.value for variable in variables.values()])
    assert set(expected) == set(variables)
    for name, gradient in zip(variables, found, strict=True):
        difference = np.abs(tf.convert_to_tensor(gradient) - expected[name]).max()
        assert difference < 1e-3 * np.abs(expected[name]).max() + 1e-6, name


def rows_of_tasks() -> dict[str, np.ndarray]:
    """Return rows of several lengths, padded on the left."""
    from t5repro.model.segment_rows import summary_types

    generator = np.random.default_rng(6)
    lengths = np.array([LENGTH, 11, 5, LENGTH, 20, 2])
    real = np.arange(LENGTH) >= LENGTH - lengths[:, None]
    ids = generator.integers(3, IDS, (ROWS, LENGTH))
    return {
        "encoder_ids": np.where(real, ids, 0).astype(np.int32),
        "encoder_segments": real.astype(np.int32),
        "encoder_types": summary_types(lengths // 2, lengths, LENGTH),
    }


def their_labels(model: Any, features: dict[str, np.ndarray]) -> Any:
    return model(
        input_ids=torch.tensor(features["encoder_ids"], dtype=torch.long),
        token_type_ids=torch.tensor(features["encoder_types"], dtype=torch.long),
        attention_mask=torch.tensor(features["encoder_segments"], dtype=torch.float32),
    ).logits


def test_labels_of_rows_that_are_padded_on_the_left_agree(tmp_path):
    theirs, ours = pair(tmp_path, "ForSequenceClassification")
    features = rows_of_tasks()
    close(ours(features), their_labels(theirs, features))


@pytest.mark.parametrize("task", ["LMHeadModel", "ForSequenceClassification"])
def test_exported_weights_return_to_the_bit(tmp_path, task):
    from t5repro.model.checkpoints import weight_variables
    from t5repro.publish.tokenizer_files import VocabularyFiles
    from t5repro.publish.weights import write_huggingface

    theirs, ours = pair(tmp_path / "theirs", task)
    arrays = {name: variable.numpy() for name, variable in weight_variables(ours).items()}
    folder = tmp_path / "exported"
    write_huggingface(folder, ours.settings, arrays, VocabularyFiles(b"", b"", 0))
    again, report = type(theirs).from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report  # no key is missing, superfluous or of another shape
    state = again.state_dict()
    assert all(torch.equal(state[name], values) for name, values in theirs.state_dict().items())
    if task == "LMHeadModel":
        features = unequal(batch(1))
        arguments = their_arguments(features)
        expected, found = theirs(**arguments).logits, again.eval()(**arguments).logits
    else:
        features = rows_of_tasks()
        expected, found = their_labels(theirs, features), their_labels(again.eval(), features)
    assert torch.equal(found, expected)
    ours_again = ours_from(folder)
    for name, variable in weight_variables(ours_again).items():
        assert np.array_equal(variable.numpy(), arrays[name]), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attn_type": "uni"}, "attn_type is 'uni'; only 'bi' can be read"),
        ({"clamp_len": 5}, "clamp_len is 5; only -1 can be read"),
        ({"ff_activation": "silu"}, "ff_activation is 'silu'; allowed are"),
    ],
)
def test_another_network_of_theirs_is_refused(tmp_path, change, message):
    from t5repro.errors import CheckpointError
    from t5repro.model.foreign_weights import read_foreign

    hugging_face("LMHeadModel", **change).save_pretrained(tmp_path, safe_serialization=True)
    with pytest.raises(CheckpointError, match=message):
        read_foreign(tmp_path)
