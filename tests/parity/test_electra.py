"""Beside Hugging Face's ELECTRA, both networks, with the same random weights, both ways."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="peers are not installed: make parity")
transformers = pytest.importorskip("transformers", reason="peers are not installed: make parity")

from t5repro.config.presets.sizes import SIZES  # noqa: E402

pytestmark = [pytest.mark.parity, pytest.mark.keras]
ROWS, LENGTH, PLACES = 97, 23, 7
# Widths of detector, embedding and generator: with a projection in both, one or none of them.
SHAPES = {
    "both projected": (40, 24, 0.5),
    "generator projected": (40, 0, 0.5),
    "detector projected": (40, 20, 0.5),
    "one width": (40, 0, 1.0),
}
CASES = [
    *((shape, "embeddings") for shape in SHAPES),
    ("both projected", "none"),
    ("one width", "none"),
    ("one width", "all"),
]


def network_of(shape, tying, **heads):
    from t5repro.model.generator_detector import GeneratorDetector

    width, embedding, share = SHAPES[shape]
    model = SIZES["electra_tiny"].model_copy(
        update={
            "d_model": width, "d_ff": 52, "d_kv": 10, "num_heads": 4, "num_encoder_layers": 3,
            "num_decoder_layers": 3, "embedding_width": embedding, "max_positions": 31,
            "generator_width": share, "generator_tying": tying, "norm_epsilon": 1e-6,
        }
    )  # fmt: skip
    network = GeneratorDetector(model, embedding_rows=ROWS, dropout_rate=0.0, seed=1)
    random = np.random.default_rng(3)
    for variable in network.weights:
        deviation = 0.1 if "norm" in variable.path else 0.3
        variable.assign_add(deviation * random.normal(size=variable.shape))
    return network


def arrays_of(network):
    from t5repro.model.checkpoints import weight_variables

    return {name: variable.numpy() for name, variable in weight_variables(network).items()}


def exported(network, folder):
    from t5repro.publish.tokenizer_files import VocabularyFiles
    from t5repro.publish.weights import write_huggingface

    write_huggingface(folder, network.settings, arrays_of(network), VocabularyFiles(b"", b"", 0))
    peers = []
    for kind, place in (("ForPreTraining", folder), ("ForMaskedLM", folder / "generator")):
        peer, report = getattr(transformers, f"Electra{kind}").from_pretrained(
            place, output_loading_info=True, attn_implementation="eager"
        )
        assert not any(report.values()), report
        peers.append(peer.eval())
    return peers


@pytest.fixture
def batch():
    """Return rows with padding at their ends and a second segment; [MASK] and drawn pieces."""
    random = np.random.default_rng(6)
    lengths = np.array([LENGTH, 11, 9, LENGTH, 20, 12])[:, None]
    places = np.arange(LENGTH)[None]
    real = places < lengths
    ids = np.where(real, random.integers(4, ROWS, (6, LENGTH)), 0)
    positions = np.sort([random.permutation(np.arange(1, 8))[:PLACES] for _ in range(6)])
    targets = np.take_along_axis(ids, positions, axis=1)
    targets[:, 5:] = positions[:, 5:] = 0
    targets[0, 3:] = positions[0, 3:] = 0
    masked = ids.copy()
    for row, chosen in enumerate(positions):
        masked[row, chosen[targets[row] > 0]] = 3
    features = {
        "encoder_ids": masked,
        "encoder_segments": real,
        "encoder_types": real & (places > lengths // 2),
        "target_positions": positions,
        "sample_draws": random.integers(0, 1 << 24, positions.shape),
    }
    return {name: np.asarray(a, np.int32) for name, a in features.items()}, targets.astype(np.int32)


def their_logits(peer, features, ids=None):
    def tensor(array):
        return torch.tensor(np.asarray(array), dtype=torch.long)

    return peer(
        input_ids=tensor(features["encoder_ids"] if ids is None else ids),
        attention_mask=tensor(features["encoder_segments"]),
        token_type_ids=tensor(features["encoder_types"]),
    ).logits


def at_positions(logits, features):
    places = torch.tensor(features["target_positions"], dtype=torch.long)
    return torch.gather(logits, 1, places[:, :, None].expand(-1, -1, ROWS))


@pytest.mark.parametrize(("shape", "tying"), CASES)
def test_logits_of_both_networks_agree_to_a_ten_thousandth(shape, tying, tmp_path, batch):
    features, _ = batch
    network = network_of(shape, tying)
    detector, generator = exported(network, tmp_path)
    pieces, replaced = (np.asarray(logits) for logits in network(features))
    with torch.no_grad():
        expected = at_positions(their_logits(generator, features), features).numpy()
        of_detector = their_logits(detector, features).numpy()
    assert np.abs(pieces - expected).max() < 1e-4 * np.abs(expected).max()
    real = features["encoder_segments"] > 0
    difference = np.abs(replaced - of_detector)[real].max()
    assert difference < 1e-4 * np.abs(of_detector[real]).max()
    assert expected.std() > 0.2
    assert of_detector[real].std() > 0.2


@pytest.mark.parametrize(("shape", "tying"), CASES)
def test_exported_weights_return_to_the_bit(shape, tying, tmp_path):
    from t5repro.model.foreign_weights import read_foreign

    network = network_of(shape, tying)
    detector, generator = exported(network, tmp_path / "ours")
    detector.save_pretrained(tmp_path / "theirs", safe_serialization=True)
    generator.save_pretrained(tmp_path / "theirs" / "generator", safe_serialization=True)
    expected = arrays_of(network)
    for folder in ("ours", "theirs"):
        foreign = read_foreign(tmp_path / folder)
        assert foreign.weights.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(foreign.weights[name], array, err_msg=name)
        for name in ("generator_width", "generator_blocks", "generator_tying", "embedding_width"):
            assert getattr(foreign.model, name) == getattr(network.settings, name), name


def test_each_network_is_read_alone(tmp_path):
    from t5repro.model.foreign_weights import read_foreign

    network = network_of("both projected", "embeddings")
    detector, generator = exported(network, tmp_path / "ours")
    detector.save_pretrained(tmp_path / "detector", safe_serialization=True)
    generator.save_pretrained(tmp_path / "generator", safe_serialization=True)
    expected = arrays_of(network)
    alone = read_foreign(tmp_path / "detector").weights
    assert {name for name in alone if name.startswith(("generator", "masked_lm"))} == set()
    for name, array in alone.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)
    foreign = read_foreign(tmp_path / "generator")
    assert foreign.model.generator_tying == "all"
    for name, array in foreign.weights.items():
        own = name.replace("encoder/", "generator/", 1)
        np.testing.assert_array_equal(array, expected[own if own in expected else name])


def test_a_joint_step_has_the_gradients_of_theirs(tmp_path, batch):
    """Their two classes with one table of embeddings, and the loss of the paper in torch."""
    import tensorflow as tf

    from t5repro.model.checkpoints import weight_variables
    from t5repro.model.weight_names import from_huggingface
    from t5repro.systems.generator_detector.loss import ReplacedTokensLoss, replaced_rows
    from t5repro.train.tensorflow_step import TensorFlowModel

    features, targets = batch
    network = network_of("both projected", "embeddings")
    detector, generator = exported(network, tmp_path)
    generator.electra.embeddings = detector.electra.embeddings
    generator.generator_lm_head.weight = detector.electra.embeddings.word_embeddings.weight
    # A drawn piece may be the id of padding, whose row has no gradient in torch by default.
    detector.electra.embeddings.word_embeddings.padding_idx = None
    logits = at_positions(their_logits(generator, features), features)
    rows = replaced_rows(
        {name: tf.constant(array) for name, array in features.items()},
        tf.constant(targets),
        tf.constant(logits.detach().numpy()),
    )
    ids, originals = np.asarray(rows.ids), np.asarray(rows.originals)
    assert (ids != originals).any()
    labels = torch.tensor((ids != originals).astype(np.float32))
    real = torch.tensor(features["encoder_segments"] > 0)
    is_masked = torch.tensor(targets > 0)
    functional = torch.nn.functional
    of_pieces = functional.cross_entropy(
        logits[is_masked], torch.tensor(targets, dtype=torch.long)[is_masked]
    )
    judged = their_logits(detector, features, ids)
    of_detector = functional.binary_cross_entropy_with_logits(judged[real], labels[real])
    (of_pieces + 50 * of_detector).backward()
    model = TensorFlowModel(
        network, ReplacedTokensLoss(), normaliser="target_tokens", micro_batches=1
    )
    constants = {name: tf.constant(array) for name, array in features.items()}
    loss, gradients = model.loss_and_gradients(constants, tf.constant(targets))
    assert float(loss) == pytest.approx((of_pieces + 50 * of_detector).item(), rel=1e-5)
    theirs = {name: p.grad.numpy() for name, p in detector.named_parameters()}
    theirs |= {
        f"generator/{name}": p.grad.numpy()
        for name, p in generator.named_parameters()
        if not name.startswith("electra.embeddings.")
    }
    expected = from_huggingface(theirs, network.settings)
    found = dict(zip(weight_variables(network), gradients, strict=True))
    assert expected.keys() == found.keys()
    for name, gradient in found.items():
        difference = np.abs(tf.convert_to_tensor(gradient) - expected[name]).max()
        assert difference < 1e-3 * np.abs(expected[name]).max() + 1e-5, name


def test_a_head_of_labels_has_no_class_and_is_refused(tmp_path):
    from t5repro.errors import CheckpointError
    from t5repro.model.generator_detector import Detector
    from t5repro.publish.tokenizer_files import VocabularyFiles
    from t5repro.publish.weights import write_huggingface

    network = Detector(
        SIZES["electra_tiny"], embedding_rows=ROWS, dropout_rate=0.0, seed=0, labels=2
    )
    with pytest.raises(CheckpointError, match="ElectraForSequenceClassification a dense layer"):
        write_huggingface(
            tmp_path, network.settings, arrays_of(network), VocabularyFiles(b"", b"", 0)
        )


PUBLISHED = {
    "electra_small": {},  # of its discriminator, the defaults of the class
    "electra_base": {
        "embedding_size": 768, "hidden_size": 768, "num_attention_heads": 12,
        "intermediate_size": 3072,
    },
    "electra_large": {
        "embedding_size": 1024, "hidden_size": 1024, "num_hidden_layers": 24,
        "num_attention_heads": 16, "intermediate_size": 4096,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_number_of_parameters_is_that_of_the_released_configuration(name):
    from t5repro.model.sizes import parameter_count

    config = transformers.ElectraConfig(**PUBLISHED[name])
    size = SIZES[name]
    generator_config = transformers.ElectraConfig(
        **{
            **PUBLISHED[name],
            "hidden_size": size.generator.d_model,
            "num_attention_heads": size.generator.num_heads,
            "intermediate_size": size.generator.d_ff,
        }
    )
    with torch.device("meta"):
        detector = transformers.ElectraForPreTraining(config)
        generator = transformers.ElectraForMaskedLM(generator_config)
    counts = [
        sum(parameter.numel() for parameter in peer.parameters()) for peer in (detector, generator)
    ]
    shared = sum(p.numel() for p in detector.electra.embeddings.parameters())
    assert parameter_count(size, config.vocab_size) == sum(counts) - shared
