"""Beside Hugging Face's `OpenAIGPTLMHeadModel`, with the same random weights, both ways."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="peers are not installed: make parity")
transformers = pytest.importorskip("transformers", reason="peers are not installed: make parity")
from t5repro.config.presets.sizes import SIZES  # noqa: E402

pytestmark = [pytest.mark.parity, pytest.mark.keras]
ROWS = 97


@pytest.fixture
def theirs():
    torch.manual_seed(3)
    config = transformers.OpenAIGPTConfig(
        vocab_size=ROWS, n_positions=31, n_embd=35, n_layer=3, n_head=5
    )
    model = transformers.OpenAIGPTLMHeadModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Less in norms, so that answers vary.
            parameter.add_((0.1 if "ln_" in name else 0.4) * torch.randn_like(parameter))
    return model


@pytest.fixture
def ours(theirs, tmp_path):
    from networks import text_network

    from t5repro.model.checkpoints import weight_variables
    from t5repro.model.foreign_weights import read_foreign

    theirs.save_pretrained(tmp_path, safe_serialization=True)
    foreign = read_foreign(tmp_path)
    model = text_network(foreign.model, embedding_rows=ROWS, dropout_rate=0.0, seed=0)
    for name, variable in weight_variables(model).items():
        variable.assign(foreign.weights[name])
    return model


def our_logits(model, ids):
    return model({"decoder_ids": ids, "decoder_segments": np.ones_like(ids)})


def their_logits(model, ids):
    return model(input_ids=torch.tensor(ids, dtype=torch.long)).logits


@pytest.mark.parametrize("length", [2, 17, 31])
def test_logits_agree_to_a_ten_thousandth(theirs, ours, length):
    ids = np.random.default_rng(6).integers(0, ROWS, (7, length)).astype(np.int32)
    expected = their_logits(theirs, ids).detach().numpy()
    found = np.asarray(our_logits(ours, ids))
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()
    assert expected.std() > 0.5  # the comparison is of numbers that differ


def test_gradients_of_the_loss_agree_to_a_thousandth(theirs, ours):
    import tensorflow as tf

    from t5repro.model.checkpoints import weight_variables
    from t5repro.model.weight_names import from_huggingface
    from t5repro.systems.token_loss import token_losses

    ids = np.random.default_rng(6).integers(1, ROWS, (4, 23)).astype(np.int32)
    logits = their_logits(theirs, ids)[:, :-1].reshape(-1, ROWS)
    loss = torch.nn.functional.cross_entropy(
        logits, torch.tensor(ids[:, 1:].reshape(-1), dtype=torch.long)
    )
    loss.backward()
    gradients = {name: p.grad.numpy() for name, p in theirs.named_parameters()}
    expected = from_huggingface(gradients, ours.settings)
    variables = weight_variables(ours)
    with tf.GradientTape() as tape:
        losses = token_losses(ids[:, 1:], our_logits(ours, ids)[:, :-1], 0.0)
        ours_loss = tf.reduce_mean(losses)
    assert float(ours_loss) == pytest.approx(loss.item(), rel=1e-5)
    found = tape.gradient(ours_loss, [variable.value for variable in variables.values()])
    for name, gradient in zip(variables, found, strict=True):
        difference = np.abs(tf.convert_to_tensor(gradient) - expected[name]).max()
        # The gradient of the keys' biases is 0: each is added to all logits of a query.
        assert difference < 1e-3 * np.abs(expected[name]).max() + 1e-7, name


def test_greedy_decoding_writes_the_same_tokens(theirs, ours):
    from t5repro.model.decode import greedy

    inputs = np.random.default_rng(8).integers(2, ROWS, (6, 9)).astype(np.int32)
    prompt = np.pad(inputs, [(0, 0), (1, 0)])
    with torch.no_grad():
        expected = theirs.generate(
            torch.tensor(prompt, dtype=torch.long),
            attention_mask=torch.ones(prompt.shape, dtype=torch.long),
            max_new_tokens=12,
            do_sample=False,
            eos_token_id=1,
            pad_token_id=0,
        ).numpy()[:, prompt.shape[1] :]
    found = greedy(ours, inputs, max_decode_length=12)
    np.testing.assert_array_equal(found[:, : expected.shape[1]], expected)
    assert len(np.unique(expected)) > 4


def test_exported_weights_give_the_same_logits(theirs, ours, tmp_path):
    from t5repro.model.checkpoints import weight_variables
    from t5repro.publish.tokenizer_files import VocabularyFiles
    from t5repro.publish.weights import write_huggingface

    arrays = {name: variable.numpy() for name, variable in weight_variables(ours).items()}
    folder = tmp_path / "exported"
    write_huggingface(folder, ours.settings, arrays, VocabularyFiles(b"", b"", 0))
    again = transformers.OpenAIGPTLMHeadModel.from_pretrained(folder).eval()
    for (name, value), (other_name, other) in zip(
        sorted(theirs.state_dict().items()), sorted(again.state_dict().items()), strict=True
    ):
        assert name == other_name
        assert torch.equal(value, other), name
    ids = np.random.default_rng(6).integers(0, ROWS, (3, 11)).astype(np.int32)
    found = their_logits(again, ids).detach().numpy()
    np.testing.assert_array_equal(found, their_logits(theirs, ids).detach().numpy())


def test_the_number_of_parameters_is_that_of_the_released_configuration():
    from t5repro.config.presets.sizes import SIZES
    from t5repro.model.sizes import parameter_count

    with torch.device("meta"):
        model = transformers.OpenAIGPTLMHeadModel(transformers.OpenAIGPTConfig())
    count = sum(parameter.numel() for parameter in model.parameters())
    assert parameter_count(SIZES["gpt"], 40_478) == count


def test_a_number_is_that_of_the_double_heads_model(tmp_path):
    """Its second head is a linear layer with a bias on the state at the last position."""
    from t5repro.model.checkpoints import weight_variables
    from t5repro.model.transformer import DecoderClassifier
    from t5repro.model.weight_names import from_huggingface

    torch.manual_seed(4)
    config = transformers.OpenAIGPTConfig(
        vocab_size=ROWS, n_positions=31, n_embd=35, n_layer=3, n_head=5
    )
    theirs = transformers.OpenAIGPTDoubleHeadsModel(config).eval()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            parameter.add_((0.1 if "ln_" in name else 0.4) * torch.randn_like(parameter))
    state = {name: array.numpy() for name, array in theirs.state_dict().items()}
    shape = SIZES["gpt"].model_copy(
        update={
            "d_model": 35, "d_ff": 140, "d_kv": 7, "num_heads": 5, "num_decoder_layers": 3,
            "max_positions": 31,
        }
    )  # fmt: skip
    ours = DecoderClassifier(shape, embedding_rows=ROWS, dropout_rate=0.0, seed=0, labels=1)
    summary = "multiple_choice_head.summary"
    weights = from_huggingface(state, shape) | {
        "label_head/matrix": state[f"{summary}.weight"].T,
        "label_head/bias": state[f"{summary}.bias"],
    }
    for name, variable in weight_variables(ours).items():
        variable.assign(weights[name])
    random = np.random.default_rng(6)
    lengths = random.integers(2, 31, 9)
    ids = random.integers(1, ROWS, (9, 31)) * (np.arange(31) < lengths[:, None])
    expected = theirs(
        input_ids=torch.tensor(ids[:, None], dtype=torch.long),
        mc_token_ids=torch.tensor(lengths[:, None] - 1, dtype=torch.long),
    ).mc_logits.detach().numpy()  # fmt: skip
    found = np.asarray(
        ours(
            {
                "decoder_ids": ids.astype(np.int32),
                "decoder_segments": (ids > 0).astype(np.int32),
                "last_positions": (lengths[:, None] - 1).astype(np.int32),
            }
        )
    )
    assert np.abs(found - expected.reshape(9, 1)).max() < 1e-4 * np.abs(expected).max()
    assert expected.std() > 0.2
