"""T5 weights of other libraries in and out; no code of theirs runs except keras-hub's own.

Read: folders of this project, Hugging Face (`config.json`, `model.safetensors` or its shards),
keras-hub presets, and the TensorFlow checkpoints of the T5 release with Adafactor's moments and
step. Written: Hugging Face and keras-hub. To exchange with another library, add its names to
`names.py`, a function to `READERS` or `WRITERS` and a test with a file that the library wrote.
"""

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.vocab import LANES
from t5repro.errors import ArtifactError, CheckpointError
from t5repro.files import read_json, write_bytes, write_json
from t5repro.model.checkpoints import read_arrays
from t5repro.model.weight_names import Arrays, Place, places, shape_of
from t5repro.vocab.special_ids import EOS_ID, PAD_ID

WEIGHTS = "weights.safetensors"
OPTIMIZER = "optimizer.safetensors"
VOCABULARY = "sentencepiece.model"
FACE_CONFIG, FACE_WEIGHTS = "config.json", "model.safetensors"
FACE_INDEX, FACE_PICKLE = "model.safetensors.index.json", "pytorch_model.bin"
FACE_VOCABULARY = "spiece.model"
HUB_WEIGHTS = "model.weights.h5"
HUB_VOCABULARY = "assets/tokenizer/vocabulary.spm"
FEED_FORWARD = {"relu": "relu", "gated_gelu": "gated-gelu"}  # ours -> Hugging Face's word
UNSEEN = ("published", "target_marker")  # settings of `model` that change no weight
HUB_BUCKETS, HUB_DISTANCE = 32, 128  # fixed in keras-hub


@dataclass(frozen=True)
class Published:
    """Weights from elsewhere, by our names.

    Attributes:
        form: which library wrote them, a key of `READERS`.
        model: shape of the network.
        weights: float32 arrays by place in our model.
        optimizer: Adafactor's moments and step by our names; empty: begin anew.
        vocabulary: SentencePiece model that came with them, as its owner wrote it; maybe none.
    """

    form: str
    model: ModelSettings
    weights: Arrays
    optimizer: Arrays = field(default_factory=dict)
    vocabulary: bytes | None = None

    @property
    def embedding_rows(self) -> int:
        """Rows of the embedding."""
        return int(self.weights["embedding"].shape[0])


def read_published(folder: Path) -> Published:
    """Read a folder of weights, whichever library wrote it.

    Raises:
        ArtifactError: nothing in the folder can be read.
        CheckpointError: the weights are not those of a T5 encoder-decoder.
    """
    for form, (mark, reader) in READERS.items():
        if any(folder.glob(mark)):
            found = reader(folder)
            if found.form != form:
                continue
            _check_complete(found, folder)
            return found
    if (folder / FACE_PICKLE).is_file():
        raise ArtifactError(
            f"{folder} holds {FACE_PICKLE} alone, a pickle, which can run code when it is read; "
            "have transformers save the model again: save_pretrained(..., safe_serialization=True)"
        )
    raise ArtifactError(
        f"{folder} holds no weights that can be read; allowed are {WEIGHTS} of this project, "
        f"{FACE_CONFIG} with {FACE_WEIGHTS} of Hugging Face, a keras-hub preset with "
        f"{HUB_WEIGHTS}, and a TensorFlow checkpoint (*.index) of the T5 release"
    )


def fit(published: Published, model: ModelSettings, *, embedding_rows: int, where: Path) -> Arrays:
    """Return the weights for a model of these settings.

    Rows of the embedding that no id uses may be absent; they become zeros.

    Raises:
        CheckpointError: the settings describe another network; names each that differs.
    """
    found, asked = (item.model_dump() for item in (published.model, model))
    faults = [
        f"model.{name} is {asked[name]!r}, the weights have {found[name]!r}"
        for name in found
        if name not in UNSEEN and found[name] != asked[name]
    ]
    rows = published.embedding_rows
    if rows != embedding_rows and -(-rows // LANES) * LANES != embedding_rows:
        faults.append(
            f"vocab.vocab_size and vocab.extra_ids make {embedding_rows} rows of the embedding, "
            f"the weights have {rows}"
        )
    if faults:
        raise CheckpointError(
            f"{where} does not fit the settings: {'; '.join(faults)}; set them to what the "
            "weights have"
        )
    weights = dict(published.weights)
    for name, axis in (("embedding", 0), ("output_matrix", 1)):
        if name in weights and rows < embedding_rows:
            widths = [(0, 0), (0, 0)]
            widths[axis] = (0, embedding_rows - rows)
            weights[name] = np.pad(weights[name], widths)
    return weights


def _check_complete(found: Published, folder: Path) -> None:
    for place in places(found.model):
        if place.ours not in found.weights:
            raise CheckpointError(
                f"{folder} lacks {place.ours!r} (Hugging Face: {place.huggingface!r}, released: "
                f"{place.released!r}); the download may be incomplete: get it again"
            )


# Our own folders


def _read_own(folder: Path) -> Published:
    weights = read_arrays(folder / WEIGHTS)
    manifest = folder / "manifest.json"
    record = read_json(manifest) if manifest.is_file() else {}
    settings = record.get("settings", {}).get("model", {})
    model = (
        ModelSettings.model_validate(settings)
        if settings
        else shape_of(weights)  # a bare file: what no array shows has the baseline's value
    )
    optimizer = read_arrays(folder / OPTIMIZER) if (folder / OPTIMIZER).is_file() else {}
    return Published("t5repro", model, weights, optimizer, _bytes(folder / VOCABULARY))


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


# Hugging Face


def _read_huggingface(folder: Path) -> Published:
    config = read_json(folder / FACE_CONFIG)
    if "model_type" not in config:
        return Published("", ModelSettings(), {})  # a keras-hub preset has this file, too
    if config["model_type"] not in ("t5", "mt5"):
        raise CheckpointError(
            f"{folder / FACE_CONFIG} is of a {config['model_type']!r} model; only T5 1.0, T5 1.1 "
            "and their kin (model_type 't5' or 'mt5') can be read"
        )
    arrays = _face_arrays(folder)
    gated = config.get("feed_forward_proj", "relu")
    if gated not in FEED_FORWARD.values():
        raise CheckpointError(
            f"{folder / FACE_CONFIG}: feed_forward_proj is {gated!r}; allowed are "
            f"{sorted(FEED_FORWARD.values())}"
        )
    model = ModelSettings(
        d_model=config["d_model"],
        d_ff=config["d_ff"],
        d_kv=config["d_kv"],
        num_heads=config["num_heads"],
        num_encoder_layers=config["num_layers"],
        num_decoder_layers=config.get("num_decoder_layers") or config["num_layers"],
        feed_forward="gated_gelu" if gated == "gated-gelu" else "relu",
        tie_embeddings=config.get("tie_word_embeddings", True),
        relative_position_buckets=config.get("relative_attention_num_buckets", 32),
        relative_position_max_distance=config.get("relative_attention_max_distance", 128),
        norm_epsilon=config.get("layer_norm_epsilon", 1e-6),
    )
    weights = {
        place.ours: _float32(arrays[place.huggingface], turned=place.turned)
        for place in places(model)
        if place.huggingface in arrays
    }
    return Published("huggingface", model, weights, vocabulary=_bytes(folder / FACE_VOCABULARY))


def _face_arrays(folder: Path) -> Arrays:
    index = folder / FACE_INDEX
    if index.is_file():
        names = sorted(set(read_json(index)["weight_map"].values()))
    else:
        names = [FACE_WEIGHTS]
    arrays: Arrays = {}
    for name in names:
        if Path(name).name != name:
            raise CheckpointError(f"{index} names {name!r}, which leaves the folder; refused")
        arrays |= read_arrays(folder / name)
    # Shared tensors are stored once, under any of their names.
    for name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"):
        if "shared.weight" not in arrays and name in arrays:
            arrays["shared.weight"] = arrays[name]
    return arrays


def _float32(array: np.ndarray, *, turned: bool) -> np.ndarray:
    values = array.T if turned and array.ndim == 2 else array
    return np.ascontiguousarray(values, dtype=np.float32)


def write_huggingface(
    folder: Path, model: ModelSettings, weights: Mapping[str, np.ndarray], vocabulary: "Pieces"
) -> list[Path]:
    """Write a folder that ``T5ForConditionalGeneration.from_pretrained`` reads.

    ``T5Tokenizer.from_pretrained`` reads its vocabulary; sentinels are its own extra ids.

    Returns:
        The files.
    """
    arrays = {
        place.huggingface: _float32(weights[place.ours], turned=place.turned)
        for place in places(model)
    }
    files = [folder / name for name in (FACE_WEIGHTS, FACE_CONFIG, FACE_VOCABULARY)]
    files.append(folder / "tokenizer_config.json")
    # Without this entry of its metadata transformers refuses the file.
    write_bytes(files[0], save(dict(sorted(arrays.items())), metadata={"format": "pt"}))
    write_json(
        files[1],
        {
            "architectures": ["T5ForConditionalGeneration"],
            "model_type": "t5",
            "vocab_size": int(weights["embedding"].shape[0]),
            "d_model": model.d_model,
            "d_ff": model.d_ff,
            "d_kv": model.d_kv,
            "num_heads": model.num_heads,
            "num_layers": model.num_encoder_layers,
            "num_decoder_layers": model.num_decoder_layers,
            "feed_forward_proj": FEED_FORWARD[model.feed_forward],
            "tie_word_embeddings": model.tie_embeddings,
            "relative_attention_num_buckets": model.relative_position_buckets,
            "relative_attention_max_distance": model.relative_position_max_distance,
            "layer_norm_epsilon": model.norm_epsilon,
            "dropout_rate": 0.1,
            "is_encoder_decoder": True,
            "pad_token_id": PAD_ID,
            "eos_token_id": EOS_ID,
            "decoder_start_token_id": PAD_ID,
            "torch_dtype": "float32",
        },
    )
    write_bytes(files[2], vocabulary.without_sentinels)
    write_json(
        files[3],
        {
            "tokenizer_class": "T5Tokenizer",
            "extra_ids": vocabulary.sentinels,
            "eos_token": "</s>",
            "pad_token": "<pad>",
            "unk_token": "<unk>",
            "legacy": True,
        },
    )
    return files


@dataclass(frozen=True)
class Pieces:
    """A vocabulary as other libraries want it.

    Attributes:
        with_sentinels: SentencePiece model of this project.
        without_sentinels: the same without the sentinels at its end.
        sentinels: how many there are.
    """

    with_sentinels: bytes
    without_sentinels: bytes
    sentinels: int


# keras-hub


def _read_keras_hub(folder: Path) -> Published:
    import keras_hub

    with _named(folder):
        backbone = keras_hub.models.T5Backbone.from_preset(str(folder))
    if not backbone.key_value_dim:
        key_value_dim = backbone.hidden_dim // backbone.num_heads
    else:
        key_value_dim = backbone.key_value_dim
    model = ModelSettings(
        d_model=backbone.hidden_dim,
        d_ff=backbone.intermediate_dim,
        d_kv=key_value_dim,
        num_heads=backbone.num_heads,
        num_encoder_layers=backbone.num_layers,
        num_decoder_layers=backbone.num_layers,
        feed_forward="gated_gelu" if backbone.use_gated_activation else "relu",
        tie_embeddings=backbone.tie_embedding_weights,
        norm_epsilon=backbone.layer_norm_epsilon,
    )
    weights = {}
    for place in places(model):
        value = np.asarray(_at(backbone, place).numpy())
        weights[place.ours] = _float32(value, turned=place.turned_in_keras_hub)
    return Published("keras_hub", model, weights, vocabulary=_bytes(folder / HUB_VOCABULARY))


@contextlib.contextmanager
def _named(folder: Path) -> Iterator[None]:
    try:
        with _calm():
            yield
    except (OSError, ValueError, KeyError) as error:
        raise ArtifactError(
            f"{folder} is not a T5 preset of keras-hub ({error}); write it with save_to_preset"
        ) from error


@contextlib.contextmanager
def _calm() -> Iterator[None]:
    """Keep keras-hub from warning, and from printing, about its own layers."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.filterwarnings("ignore", ".*does not support masking", UserWarning)
        yield


def _at(backbone: Any, place: Place) -> Any:
    """Return the variable of a keras-hub backbone at a place."""
    found = backbone
    for name in place.keras_hub.split("."):
        found = found[int(name)] if name.isdigit() else getattr(found, name)
    return found


def write_keras_hub(
    folder: Path, model: ModelSettings, weights: Mapping[str, np.ndarray], vocabulary: Pieces
) -> list[Path]:
    """Write a preset that ``keras_hub.models.T5Seq2SeqLM.from_preset`` reads.

    Its gated activation is the exact GELU where T5 1.1 has the tanh approximation: logits of such
    a model differ by some thousandths there.

    Returns:
        The files.

    Raises:
        CheckpointError: keras-hub's T5 cannot have this shape.
    """
    _check_hub_shape(model)
    import keras_hub

    with _calm():
        backbone = keras_hub.models.T5Backbone(
            vocabulary_size=int(weights["embedding"].shape[0]),
            num_layers=model.num_encoder_layers,
            num_heads=model.num_heads,
            hidden_dim=model.d_model,
            intermediate_dim=model.d_ff,
            key_value_dim=model.d_kv,
            activation="gelu" if model.feed_forward == "gated_gelu" else "relu",
            use_gated_activation=model.feed_forward == "gated_gelu",
            layer_norm_epsilon=model.norm_epsilon,
            tie_embedding_weights=model.tie_embeddings,
            dtype="float32",
        )
        for place in places(model):
            value = _float32(weights[place.ours], turned=place.turned_in_keras_hub)
            _at(backbone, place).assign(value)
        preprocessor = keras_hub.models.T5Seq2SeqLMPreprocessor(
            keras_hub.models.T5Tokenizer(proto=vocabulary.with_sentinels)
        )
        folder.mkdir(parents=True, exist_ok=True)
        keras_hub.models.T5Seq2SeqLM(backbone, preprocessor).save_to_preset(str(folder))
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _check_hub_shape(model: ModelSettings) -> None:
    faults = []
    if model.num_encoder_layers != model.num_decoder_layers:
        faults.append("model.num_encoder_layers and model.num_decoder_layers must be equal")
    if model.relative_position_buckets != HUB_BUCKETS:
        faults.append(f"model.relative_position_buckets must be {HUB_BUCKETS}")
    if model.relative_position_max_distance != HUB_DISTANCE:
        faults.append(f"model.relative_position_max_distance must be {HUB_DISTANCE}")
    if faults:
        raise CheckpointError(
            f"keras-hub's T5 cannot have this shape: {'; '.join(faults)}; export for Hugging Face "
            "instead"
        )


# TensorFlow checkpoints of the T5 release


def _read_released(folder: Path) -> Published:
    import tensorflow as tf

    prefix = _newest_checkpoint(folder)
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        names = set(reader.get_variable_to_shape_map())
        arrays = {
            name: np.asarray(reader.get_tensor(name)) for name in names if "_slot_m" not in name
        }
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
        raise ArtifactError(
            f"{prefix} is not a whole TensorFlow checkpoint ({error}); get it again"
        ) from error
    by_old_name = {_modern(name): name for name in arrays}
    weights = {
        ours: _float32(arrays[by_old_name[released]], turned=False)
        for ours, released in _all_released(by_old_name)
    }
    model = shape_of(weights)
    slots = _slots(model, weights, {new: arrays[old] for new, old in by_old_name.items()})
    return Published("released", model, weights, slots, _bytes(folder / VOCABULARY))


def _newest_checkpoint(folder: Path) -> Path:
    """Return the prefix of the checkpoint with the most steps."""

    def steps(path: Path) -> int:
        number = path.stem.rpartition("-")[2]
        return int(number) if number.isdigit() else -1

    newest = max(sorted(folder.glob("*.index")), key=steps)
    return newest.with_suffix("")


def _modern(name: str) -> str:
    """Return a name as the first releases wrote it; later ones call the norms otherwise."""
    parts = name.split("/")
    if parts[0] == "encoder" or parts[0] == "decoder":
        last = "final_layer_norm" if len(parts) == 3 else "layer_norm"
        parts = [last if part == "rms_norm" else part for part in parts]
    return "/".join(parts)


def _all_released(known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield our name and the released one of every weight that the checkpoint has."""
    deepest = 1 + max(
        (int(part[6:]) for name in known for part in name.split("/") if part.startswith("block_")),
        default=0,
    )
    for tied in (True, False):
        for gated in ("relu", "gated_gelu"):
            model = ModelSettings(
                num_encoder_layers=deepest,
                num_decoder_layers=deepest,
                feed_forward=gated,
                tie_embeddings=tied,
            )
            for place in places(model):
                if place.released in known:
                    yield place.ours, place.released


def _slots(model: ModelSettings, weights: Arrays, arrays: Arrays) -> Arrays:
    """Return the optimizer's moments and step by our names, or nothing if one is absent.

    The released code calls the mean over the largest dimension `vr` and that over the second
    largest `vc`, whichever of them are the rows.

    Source: mesh ``AdafactorOptimizer.apply_grad``.
    """
    if "global_step" not in arrays:
        return {}
    slots = {"iteration": np.asarray(arrays["global_step"], np.int64).reshape(())}
    for place in places(model):
        ours = place.ours.replace("/", ".")
        if (whole := arrays.get(f"{place.released}_slot_v")) is not None:
            slots[f"{ours}.moment"] = np.asarray(whole, np.float32)
            continue
        over_largest = arrays.get(f"{place.released}_slot_vr")
        over_second = arrays.get(f"{place.released}_slot_vc")
        if over_largest is None or over_second is None:
            return {}
        rows, columns = weights[place.ours].shape
        row, column = (over_largest, over_second) if columns > rows else (over_second, over_largest)
        slots[f"{ours}.row_moment"] = np.asarray(row, np.float32)
        slots[f"{ours}.column_moment"] = np.asarray(column, np.float32)
    return slots


READERS: dict[str, tuple[str, Callable[[Path], Published]]] = {
    "t5repro": (WEIGHTS, _read_own),
    "huggingface": (FACE_CONFIG, _read_huggingface),
    "keras_hub": (HUB_WEIGHTS, _read_keras_hub),
    "released": ("*.index", _read_released),
}

WRITERS: dict[str, Callable[..., list[Path]]] = {
    "huggingface": write_huggingface,
    "keras_hub": write_keras_hub,
}
