"""Checkpoints of T5X become the weights that the same arrays from Hugging Face are."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

msgpack = pytest.importorskip("msgpack", reason="the extra t5x is not installed")
pytest.importorskip("tensorstore", reason="the extra t5x is not installed")
from networks import text_network  # noqa: E402
from t5x_checkpoints import write_t5x  # noqa: E402

from t5repro.errors import ArtifactError, CheckpointError, PackageError, T5ReproError  # noqa: E402
from t5repro.model.checkpoints import read_arrays, weight_variables  # noqa: E402
from t5repro.model.foreign_weights import read_foreign  # noqa: E402
from t5repro.model.weight_names import weight_names  # noqa: E402
from t5repro.publish.tokenizer_files import VocabularyFiles  # noqa: E402
from t5repro.publish.weights import write_huggingface  # noqa: E402
from t5repro.train.import_weights import import_weights  # noqa: E402

pytestmark = [
    pytest.mark.keras,
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore:TensorFlow already runs with"),
]
VARIANTS = {"1.0": {}, "1.1": {"feed_forward": "gated_gelu", "tie_embeddings": False}}
KEY = "target.encoder.layers_0.attention.key.kernel"
EMBEDDING = "target.token_embedder.embedding"  # of several chunks


def arrays_of(model: Any) -> dict[str, np.ndarray]:
    return {name: item.numpy() for name, item in weight_variables(model).items()}


def logits_of(model: Any) -> np.ndarray:
    ids = np.random.default_rng(1).integers(2, 96, (3, 12)).astype(np.int32)
    segments = np.ones_like(ids)
    batch = {"encoder_ids": ids, "encoder_segments": segments}
    return np.asarray(model(batch | {"decoder_ids": ids, "decoder_segments": segments}))


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys())
def model(make_model: Any, request: pytest.FixtureRequest) -> Any:
    return make_model(seed=5, relative_position_max_distance=128, **request.param)


@pytest.fixture
def written(make_model: Any, tmp_path: Path) -> Path:
    """A checkpoint of T5 1.0 in the layout of T5X."""
    model = make_model(seed=5, relative_position_max_distance=128)
    write_t5x(tmp_path / "checkpoint_7", model.settings, arrays_of(model))
    return tmp_path / "checkpoint_7"


@pytest.mark.parametrize("form", ["zarr", "orbax", "index"])
def test_logits_are_those_of_the_same_weights_from_hugging_face(
    model: Any, tmp_path: Path, form: str
) -> None:
    arrays = arrays_of(model)
    write_t5x(tmp_path / "checkpoint_7", model.settings, arrays, form=form)
    write_huggingface(tmp_path / "face", model.settings, arrays, VocabularyFiles(b"", b"", 0))
    imported = {}
    for name in ("checkpoint_7", "face"):
        foreign = read_foreign(tmp_path / name)
        network = text_network(
            foreign.model, embedding_rows=foreign.embedding_rows, dropout_rate=0.0, seed=1
        )
        for path, variable in weight_variables(network).items():
            variable.assign(foreign.weights[path])
        imported[foreign.form] = logits_of(network)
    assert np.array_equal(imported["t5x"], imported["huggingface"])
    assert np.array_equal(imported["t5x"], logits_of(model))


def test_the_names_are_those_of_t5x_itself() -> None:
    """The names of `t5x/testdata/test_t5_tiny.checkpoint_0`, a T5 1.1 with one layer a stack."""
    from t5repro.config.sections.model import ModelSettings

    attention = ("key.kernel", "out.kernel", "query.kernel", "value.kernel")
    mlp = ("mlp.wi_0.kernel", "mlp.wi_1.kernel", "mlp.wo.kernel", "pre_mlp_layer_norm.scale")
    decoder = {
        *(f"encoder_decoder_attention.{name}" for name in attention),
        *(f"self_attention.{name}" for name in attention),
        *("pre_cross_attention_layer_norm.scale", "pre_self_attention_layer_norm.scale", *mlp),
    }
    encoder = {f"attention.{name}" for name in attention}
    encoder |= {"pre_attention_layer_norm.scale", *mlp}
    expected = {
        *(f"decoder.layers_0.{name}" for name in decoder),
        *(f"encoder.layers_0.{name}" for name in encoder),
        *("decoder.decoder_norm.scale", "encoder.encoder_norm.scale", "token_embedder.embedding"),
        *("decoder.relpos_bias.rel_embedding", "encoder.relpos_bias.rel_embedding"),
        "decoder.logits_dense.kernel",
    }
    shape = ModelSettings(
        num_encoder_layers=1, num_decoder_layers=1, feed_forward="gated_gelu", tie_embeddings=False
    )
    assert {name.t5x for name in weight_names(shape)} == expected


def test_bfloat16_becomes_the_same_values_in_float32(make_model: Any, tmp_path: Path) -> None:
    import ml_dtypes

    model = make_model(seed=5, relative_position_max_distance=128)
    arrays = arrays_of(model)
    write_t5x(tmp_path / "checkpoint_7", model.settings, arrays, dtype="bfloat16")
    foreign = read_foreign(tmp_path / "checkpoint_7")
    for path, array in arrays.items():
        rounded = array.astype(ml_dtypes.bfloat16).astype(np.float32)
        assert np.array_equal(foreign.weights[path], rounded)


def test_an_import_writes_the_weights_and_says_that_the_vocabulary_is_missing(
    written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import_weights(written, tmp_path / "out")
    imported = read_arrays(tmp_path / "out/weights.safetensors")
    expected = read_foreign(written).weights
    assert imported.keys() == expected.keys()
    assert all(np.array_equal(imported[path], expected[path]) for path in expected)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["counters"]["form"] == "t5x"
    assert "vocab.model_file" in capsys.readouterr().err


def change_index(folder: Path, *keys: str, leaf: object) -> None:
    """Change a leaf of an index; without a value, delete it."""
    path = folder / "checkpoint"
    tree = msgpack.unpackb(path.read_bytes(), ext_hook=msgpack.ExtType)
    inner = tree["optimizer"]["target"]
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = leaf
    path.write_bytes(msgpack.packb(tree))


@pytest.mark.parametrize("stated", ["../elsewhere/", "/etc/", ".", "a/b/"])
def test_an_index_that_leads_elsewhere_is_refused(written: Path, stated: str) -> None:
    leaf = {"driver": "zarr", "kvstore": {"driver": "file", "path": stated}}
    change_index(written, "token_embedder", "embedding", leaf=leaf)
    with pytest.raises(CheckpointError, match="outside of it; refused"):
        read_foreign(written)


def test_a_missing_chunk_is_named_and_not_read_as_zeros(written: Path) -> None:
    (written / EMBEDDING / "1.0").unlink()
    with pytest.raises(ArtifactError, match=rf"{EMBEDDING}/1\.0 is missing.*copy the whole folder"):
        read_foreign(written)


def test_a_missing_folder_is_named(written: Path) -> None:
    shutil.rmtree(written / KEY)
    with pytest.raises(T5ReproError, match=rf"{KEY}/\.zarray"):
        read_foreign(written)


def test_a_damaged_chunk_is_named(written: Path) -> None:
    (written / KEY / "0.0").write_bytes(b"no gzip")
    with pytest.raises(ArtifactError, match=rf"{KEY} is no complete array in zarr"):
        read_foreign(written)


@pytest.mark.parametrize(
    "content", [b"", b"\xc1", b"model_checkpoint_path: x", b"\x80", b"\x81\xa6target\xc0"]
)
def test_a_file_that_is_no_index_of_t5x_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "checkpoint").write_bytes(content)
    with pytest.raises(ArtifactError, match=r"no index of T5X|no weights below 'target'"):
        read_foreign(tmp_path)


def test_an_array_that_the_network_lacks_is_refused(written: Path) -> None:
    change_index(written, "encoder", "extra", leaf="PLACEHOLDER://target.encoder.extra")
    with pytest.raises(CheckpointError, match=r"lacks: 'encoder\.extra'"):
        read_foreign(written)


def test_a_missing_weight_is_named_by_its_name_in_t5x(written: Path) -> None:
    change_index(written, "encoder", "layers_1", "mlp", leaf={})
    with pytest.raises(CheckpointError, match=r"T5X: 'encoder\.layers_1\.mlp\.wi\.kernel'"):
        read_foreign(written)


def test_whole_numbers_are_refused(make_model: Any, tmp_path: Path) -> None:
    model = make_model(relative_position_max_distance=128)
    write_t5x(tmp_path / "checkpoint_7", model.settings, arrays_of(model), dtype="uint16")
    with pytest.raises(CheckpointError, match=r"numbers of the type uint16; only float32"):
        read_foreign(tmp_path / "checkpoint_7")


@pytest.mark.parametrize("package", ["msgpack", "tensorstore"])
def test_without_the_extra_the_message_says_how_to_install_it(
    written: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(PackageError, match=rf"{package} is not installed; .*make t5x in"):
        read_foreign(written)
