"""Writes the weights of a training as a preset of keras-hub: backbone, preprocessor and task.

A preset has the numbers of its network or is refused: keras-hub fixes activations and constants of
its networks that are settings here (D-055).

To support another network, add its names to `model/encoder_names.py` or `model/weight_names.py` and
a row to `model/keras_hub_presets.py`, which reads presets.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import CheckpointError, packages_of
from t5repro.files import write_json
from t5repro.model.encoder_heads import LABEL_HEAD, SPAN_HEAD, TAG_HEAD
from t5repro.model.encoder_names import family
from t5repro.model.keras_hub_presets import ENCODERS, keras_hub_variable, quiet_keras_hub
from t5repro.model.trained_as import UNKNOWN, TrainedAs
from t5repro.model.weight_names import float32_array, weight_names
from t5repro.publish.tokenizer_files import TokenizerFiles
from t5repro.vocab.special_pieces import with_special_pieces

LABELS = "labels.json"  # names of the columns of a classifier, which keras-hub does not read
HUB_BUCKETS, HUB_DISTANCE = 32, 128  # fixed in keras-hub's T5

Weights = Mapping[str, np.ndarray]


def write_keras_hub(
    folder: Path,
    model: ModelSettings,
    weights: Weights,
    vocabulary: TokenizerFiles,
    trained: TrainedAs = UNKNOWN,
) -> list[Path]:
    """Write a preset that ``from_preset`` of keras-hub's backbones and tasks reads.

    A T5 is one for ``T5Seq2SeqLM``. A BERT, RoBERTa or ALBERT with labels is one for its
    ``TextClassifier``, whose columns `LABELS` names; a pre-trained RoBERTa for ``RobertaMaskedLM``;
    a pre-trained BERT or ALBERT for its ``Backbone``, without the heads of pre-training, which
    have other constants there. The preprocessor writes rows as this project does.

    Args:
        folder: receives the files.
        model: shape of the network.
        weights: arrays by path in our model.
        vocabulary: of the run, a SentencePiece one.
        trained: dropout and names of labels.

    Returns:
        The files.

    Raises:
        CheckpointError: keras-hub cannot have this shape, or no task for these heads.
        PackageError: keras-hub is not installed.
        VocabularyError: the vocabulary is not a SentencePiece one.
    """
    names_of_model = weight_names(model) if model.family.name != "decoder" else []
    _check_shape(model, weights)
    is_t5 = model.family.name == "encoder_decoder"
    proto = vocabulary.sentencepiece_model()
    with quiet_keras_hub():
        if is_t5:
            saved = [_t5(model, weights, proto)]
        else:
            saved = _encoder(model, weights, with_special_pieces(proto), trained)
        backbone = getattr(saved[0], "backbone", saved[0])
        for name in names_of_model:
            is_left_out = name.path not in weights or not name.keras_hub
            if is_left_out or (name.in_keras_hub_task and saved[0] is backbone):
                continue
            value = float32_array(weights[name.path], transposed=name.transposed_in_keras_hub)
            variable = keras_hub_variable(saved[0] if name.in_keras_hub_task else backbone, name)
            variable.assign(value.reshape(variable.shape))  # its attention has an axis of heads
        folder.mkdir(parents=True, exist_ok=True)
        for part in saved:
            part.save_to_preset(str(folder))
    if any(name.startswith(LABEL_HEAD) for name in weights):
        columns = weights[f"{LABEL_HEAD}bias"].shape[0]
        write_json(folder / LABELS, trained.label_names(columns))
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _t5(model: ModelSettings, weights: Weights, proto: bytes) -> Any:
    import keras

    with packages_of("exchange"):
        import keras_hub

    # Keras's own name `gelu` is the exact function; T5 1.1 has the tanh approximation.
    gelu = keras.saving.get_registered_object("keras_hub>gelu_approximate")
    backbone = keras_hub.models.T5Backbone(
        vocabulary_size=int(weights["embedding"].shape[0]),
        num_layers=model.num_encoder_layers,
        num_heads=model.num_heads,
        hidden_dim=model.d_model,
        intermediate_dim=model.d_ff,
        key_value_dim=model.d_kv,
        activation=gelu if model.feed_forward == "gated_gelu" else "relu",
        use_gated_activation=model.feed_forward == "gated_gelu",
        layer_norm_epsilon=model.norm_epsilon,
        tie_embedding_weights=model.tie_embeddings,
        dtype="float32",
    )
    tokenizer = keras_hub.models.T5Tokenizer(proto=proto)
    preprocessor = keras_hub.models.T5Seq2SeqLMPreprocessor(tokenizer)
    return keras_hub.models.T5Seq2SeqLM(backbone, preprocessor)


def _encoder(model: ModelSettings, weights: Weights, proto: bytes, trained: TrainedAs) -> list[Any]:
    """Return a task with its backbone, or a backbone and its preprocessor."""
    with packages_of("exchange"):
        import keras_hub

    hub = ENCODERS[family(model)]

    def class_of(suffix: str) -> Any:
        return getattr(keras_hub.models, f"{hub.name}{suffix}")

    arguments = {
        "vocabulary_size": int(weights["embedding"].shape[0]),
        "num_layers": model.num_encoder_layers,
        "num_heads": model.num_heads,
        "hidden_dim": model.d_model,
        "intermediate_dim": model.d_ff,
        "dropout": trained.dropout_rate,
        "max_sequence_length": model.max_positions,
        "dtype": "float32",
    }
    backbone = class_of("Backbone")(**(arguments | hub.arguments(model)))
    # ALBERT's tokenizer is the one that runs a SentencePiece model with special pieces.
    tokenizer = keras_hub.models.AlbertTokenizer(proto=proto)
    length = {"sequence_length": model.max_positions}
    if f"{LABEL_HEAD}bias" in weights:
        return [
            class_of("TextClassifier")(
                backbone,
                num_classes=int(weights[f"{LABEL_HEAD}bias"].shape[0]),
                preprocessor=class_of("TextClassifierPreprocessor")(tokenizer, **length),
                dropout=trained.head_dropout,
            )
        ]
    if "masked_lm/bias" in weights and hub.has_masked_lm:
        preprocessor = class_of("MaskedLMPreprocessor")(tokenizer, **length)
        return [class_of("MaskedLM")(backbone, preprocessor)]
    if hasattr(backbone, "pooled_dense") and "pooler/matrix" not in weights:
        backbone.pooled_dense.kernel.assign(np.zeros(backbone.pooled_dense.kernel.shape))
    return [backbone, class_of("TextClassifierPreprocessor")(tokenizer, **length)]


def _check_shape(model: ModelSettings, weights: Weights) -> None:
    if model.family.name == "decoder":
        raise CheckpointError(
            "keras-hub has no GPT of 2018, and its GPT2Backbone has norms before the sub-layers: "
            "model.architecture must be encoder_decoder or encoder; export for Hugging Face "
            "(--form huggingface), whose OpenAIGPTLMHeadModel is this network"
        )
    if model.family.name not in ("encoder_decoder", "encoder"):
        raise CheckpointError(
            f"keras-hub has no network of model.architecture {model.architecture}; export for "
            "Hugging Face (--form huggingface)"
        )
    faults = (
        _faults_of_t5(model)
        if model.family.name == "encoder_decoder"
        else _faults_of_encoder(model, weights)
    )
    if faults:
        raise CheckpointError(
            f"keras-hub cannot have this network: {'; '.join(faults)}; export for Hugging Face "
            "instead"
        )


def _faults_of_t5(model: ModelSettings) -> list[str]:
    faults = []
    if model.num_encoder_layers != model.num_decoder_layers:
        faults.append("model.num_encoder_layers and model.num_decoder_layers must be equal")
    if model.feed_forward == "swiglu":
        faults.append("model.feed_forward must be relu or gated_gelu")
    if model.relative_position_bias != "per_stack":
        faults.append("model.relative_position_bias must be per_stack")
    if model.relative_position_buckets != HUB_BUCKETS:
        faults.append(f"model.relative_position_buckets must be {HUB_BUCKETS}")
    if model.relative_position_max_distance != HUB_DISTANCE:
        faults.append(f"model.relative_position_max_distance must be {HUB_DISTANCE}")
    return faults


def _faults_of_encoder(model: ModelSettings, weights: Weights) -> list[str]:
    hub = ENCODERS.get(family(model))
    if hub is None:
        return ["of ELECTRA this project writes no preset"]
    values = model.model_dump()
    faults = [
        f"model.{name} is {values[name]!r}, and {hub.name}Backbone has {value!r}"
        for name, value in hub.fixed.items()
        if values[name] != value
    ]
    heads = [head for head in (SPAN_HEAD, TAG_HEAD) if any(n.startswith(head) for n in weights)]
    if heads:
        faults.append(f"it has no task for {' and '.join(heads)}")
    return faults
