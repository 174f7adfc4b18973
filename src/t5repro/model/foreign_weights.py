"""Reads weights of other libraries; of their code only keras-hub's runs.

Formats: folders of this project, Hugging Face (`config.json`, `model.safetensors` or its shards),
keras-hub presets (`keras_hub_presets.py`), the TensorFlow checkpoints of the T5 release with
Adafactor's moments and step (`released_checkpoint.py`), and T5X's (`t5x_checkpoint.py`). To support
another library, add its names to `weight_names.py`, a function to `READERS` and a test with a file
that it wrote.
`publish/weights.py` writes foreign formats.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from t5repro.artifacts import MANIFEST, OPTIMIZER, VOCABULARY, WEIGHTS
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.vocab import LANES
from t5repro.errors import ArtifactError, CheckpointError
from t5repro.files import read_json
from t5repro.model import keras_hub_presets, leftovers, released_checkpoint, t5x_checkpoint
from t5repro.model.checkpoints import read_arrays
from t5repro.model.encoder_names import GENERATOR
from t5repro.model.foreign_vocabulary import (
    AXES_OF_IDS,
    ForeignVocabulary,
    in_our_order,
    sentencepiece_in,
    vocabulary_in,
)
from t5repro.model.huggingface_config import MODEL_TYPES, add_shared_arrays, huggingface_shape
from t5repro.model.huggingface_electra import with_generator
from t5repro.model.huggingface_encoders import incomplete_heads
from t5repro.model.weight_names import Arrays, from_huggingface, shape_of, weight_names

FACE_CONFIG, FACE_WEIGHTS = "config.json", "model.safetensors"
FACE_INDEX, FACE_PICKLE = "model.safetensors.index.json", "pytorch_model.bin"
# Settings of `model` that change neither a weight nor what it means.
NOT_IN_WEIGHTS = {
    "published", "target_marker", "pair_separators", "initializer", "initializer_range",
    "dropout_noise", "activation_dropout", "pooler_dropout",
    "generator_width", "generator_blocks", "generator_tying",  # of weights that may be missing
}  # fmt: skip


@dataclass(frozen=True)
class ForeignWeights:
    """Weights of another library, by our names.

    Attributes:
        form: the library that wrote them, a key of `READERS`.
        model: shape of the network.
        weights: float32 arrays by path in our model.
        optimizer: Adafactor's moments and step by our names; empty if there are none.
        vocabulary: of the folder; absent if the folder lacks one. Rows of the weights are in the
            order of our ids.
    """

    form: str
    model: ModelSettings
    weights: Arrays
    optimizer: Arrays = field(default_factory=dict)
    vocabulary: ForeignVocabulary | None = None

    @property
    def embedding_rows(self) -> int:
        """Rows of the embedding."""
        return int(self.weights["embedding"].shape[0])


def read_foreign(folder: Path) -> ForeignWeights:
    """Read a folder of weights of any library in `READERS`.

    Raises:
        ArtifactError: the folder contains no readable weights.
        CheckpointError: the weights do not belong to a T5 encoder-decoder.
    """
    # A reader that returns nothing leaves the folder to the readers after it.
    for pattern, reader in READERS.values():
        if any(folder.glob(pattern)):
            weights = reader(folder)
            if weights is None:
                continue
            _check_complete(weights, folder)
            return weights
    if (folder / FACE_PICKLE).is_file():
        raise ArtifactError(
            f"{folder} has only {FACE_PICKLE}, a pickle, which can run code when it is read; "
            "have transformers save the model again: save_pretrained(..., safe_serialization=True)"
        )
    raise ArtifactError(
        f"{folder} contains no readable weights; allowed are {WEIGHTS} of this project, "
        f"{FACE_CONFIG} with {FACE_WEIGHTS} of Hugging Face, a keras-hub preset with "
        f"{keras_hub_presets.WEIGHTS}, a TensorFlow checkpoint (*.index) of the T5 release, and a "
        f"folder checkpoint_N of T5X with its file {t5x_checkpoint.INDEX!r}"
    )


def fit(
    foreign: ForeignWeights, model: ModelSettings, *, embedding_rows: int, where: Path
) -> Arrays:
    """Return the weights for a model of these settings.

    Rows of the embedding that no id uses may be missing; they become zeros.

    Args:
        foreign: the weights.
        model: shape of the network.
        embedding_rows: rows of its embedding.
        where: folder of the weights, for messages.

    Raises:
        CheckpointError: the settings describe another network; names each that differs.
    """
    expected, actual = model.model_dump(), foreign.model.model_dump()
    faults = [
        f"model.{name} is {expected[name]!r}, the weights have {actual[name]!r}"
        for name in actual
        if name not in NOT_IN_WEIGHTS | model.unused and actual[name] != expected[name]
    ]
    rows = foreign.embedding_rows
    # Other libraries store the ids in use, ours rounds them up to whole vector lanes.
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
    weights = dict(foreign.weights)
    for name, axis in AXES_OF_IDS.items():
        if name in weights and rows < embedding_rows:
            widths = [(0, 0)] * weights[name].ndim
            widths[axis] = (0, embedding_rows - rows)
            weights[name] = np.pad(weights[name], widths)
    return weights


def _check_complete(foreign: ForeignWeights, folder: Path) -> None:
    for path, array in foreign.weights.items():
        if not np.isfinite(array).all():
            raise CheckpointError(
                f"{folder}: {path!r} contains NaN or infinity; the training diverged, "
                "or the download is damaged"
            )
    names = weight_names(foreign.model)
    heads = {name.path: name.head for name in names if name.head}
    optional = heads.keys() - incomplete_heads(foreign.weights, heads)
    for name in names:
        if name.path not in foreign.weights and name.path not in optional:
            raise CheckpointError(
                f"{folder} lacks {name.path!r} (Hugging Face: {name.huggingface!r}, released: "
                f"{name.released or None!r}, T5X: {name.t5x or None!r}); the "
                "download may be incomplete: download it again"
            )


# Folders of this project


def _read_own(folder: Path) -> ForeignWeights:
    weights = read_arrays(folder / WEIGHTS)
    leftovers.check_numbers(folder, weights)
    manifest = folder / MANIFEST
    record = read_json(manifest) if manifest.is_file() else {}
    settings = record.get("settings", {}).get("model", {})
    model = (
        ModelSettings.model_validate(settings)
        if settings
        else shape_of(weights)  # a file alone: settings that no array shows are the baseline's
    )
    optimizer = read_arrays(folder / OPTIMIZER) if (folder / OPTIMIZER).is_file() else {}
    return ForeignWeights(
        "t5repro", model, weights, optimizer, sentencepiece_in(folder / VOCABULARY)
    )


# Hugging Face


def _read_huggingface(folder: Path) -> ForeignWeights | None:
    path = folder / FACE_CONFIG
    config = read_json(path)
    if not isinstance(config, dict):
        raise ArtifactError(f"{path} contains a {type(config).__name__}; it must be a mapping")
    if "model_type" not in config:
        return None  # a keras-hub preset has this file, too
    if config["model_type"] not in MODEL_TYPES:
        raise CheckpointError(
            f"{path} is of a {config['model_type']!r} model; only T5 1.0, T5 1.1, mT5, umT5, GPT, "
            "BERT, RoBERTa, ALBERT, ELECTRA and XLNet "
            f"(model_type {', '.join(map(repr, MODEL_TYPES))}) can be read"
        )
    model = huggingface_shape(path, config)
    arrays = _face_arrays(folder)
    layers = model.block_groups * model.blocks_per_group or sum(model.heights.values())
    if layers > len(arrays):
        raise CheckpointError(f"{path} has {layers} layers, the weights have {len(arrays)} arrays")
    leftovers.check_configuration(path, config)
    arrays = add_shared_arrays(arrays, path, config, model)
    if model.family.has_generator and (folder / GENERATOR / FACE_CONFIG).is_file():
        model, arrays = with_generator(
            folder / GENERATOR / FACE_CONFIG, _face_arrays(folder / GENERATOR), model, arrays
        )
    leftovers.check_numbers(folder, arrays)
    leftovers.check_huggingface(folder, arrays, config, model)
    weights = from_huggingface(arrays, model)
    leftovers.check_shape(path, weights, model)
    vocabulary = vocabulary_in(folder, config)
    weights = in_our_order(weights, vocabulary)
    return ForeignWeights("huggingface", model, weights, vocabulary=vocabulary)


def _face_arrays(folder: Path) -> Arrays:
    index, whole = folder / FACE_INDEX, folder / FACE_WEIGHTS
    if index.is_file() and whole.is_file():  # transformers reads the latter, other programs do not
        raise CheckpointError(
            f"{folder} has {FACE_WEIGHTS} and the shards of {FACE_INDEX}; delete those that are "
            "not meant"
        )
    if index.is_file():
        try:
            names = sorted({str(name) for name in read_json(index)["weight_map"].values()})
        except (LookupError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{index} has no weight_map from names to files") from error
    else:
        names = [FACE_WEIGHTS]
    arrays: Arrays = {}
    for name in names:
        if Path(name).name != name:
            raise CheckpointError(f"{index} names {name!r}, which is outside the folder; refused")
        shard = read_arrays(folder / name)
        if repeated := sorted(arrays.keys() & shard.keys()):
            raise CheckpointError(
                f"{folder / name} has {repeated[0]!r}, which another file of {index} has too; get "
                "the folder again"
            )
        arrays |= shard
    return arrays


# keras-hub


def _read_keras_hub(folder: Path) -> ForeignWeights:
    model, weights, vocabulary = keras_hub_presets.read_preset(folder)
    weights = in_our_order(weights, vocabulary)
    return ForeignWeights("keras_hub", model, weights, vocabulary=vocabulary)


# TensorFlow checkpoints of the T5 release, and those of T5X


def _read_released(folder: Path) -> ForeignWeights:
    model, weights, slots = released_checkpoint.read(folder)
    return ForeignWeights("released", model, weights, slots, sentencepiece_in(folder / VOCABULARY))


def _read_t5x(folder: Path) -> ForeignWeights:
    model, weights = t5x_checkpoint.read(folder)
    return ForeignWeights("t5x", model, weights, vocabulary=sentencepiece_in(folder / VOCABULARY))


# Library -> pattern of a file in its folders, and the reader. The order matters: a folder of ours
# or a keras-hub preset may contain files of the later patterns.
READERS: dict[str, tuple[str, Callable[[Path], ForeignWeights | None]]] = {
    "t5repro": (WEIGHTS, _read_own),
    "huggingface": (FACE_CONFIG, _read_huggingface),
    "keras_hub": (keras_hub_presets.WEIGHTS, _read_keras_hub),
    "released": ("*.index", _read_released),
    "t5x": (t5x_checkpoint.INDEX, _read_t5x),  # TensorFlow's folders have a file of this name, too
}
