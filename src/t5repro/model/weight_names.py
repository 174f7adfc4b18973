"""The names of each weight in Hugging Face, the released TensorFlow checkpoints and keras-hub.

Our own names are paths in the model (`encoder/block_0/self_attention/q`), as in every weights file.
To support another library, add a field to `WeightName` and fill it in `weight_names`.

Source: transformers ``T5ForConditionalGeneration``; mesh variable scopes of the released
checkpoints (``block_000/layer_000/SelfAttention``), read by transformers'
``load_tf_weights_in_t5``; keras-hub ``T5Backbone``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import CheckpointError

Arrays = dict[str, np.ndarray]

PROJECTORS = {"q": "query", "k": "key", "v": "value", "o": "output"}
DENSES = {"wi": "input", "wi_0": "input", "wi_1": "gate", "wo": "output"}


@dataclass(frozen=True)
class WeightName:
    """The names of one weight.

    Attributes:
        path: path in our model.
        huggingface: name in a Hugging Face state.
        released: name in a released TensorFlow checkpoint.
        keras_hub: attributes from keras-hub's backbone to the variable, joined by dots.
        transposed: whether Hugging Face stores the transposed matrix.
        transposed_in_keras_hub: whether keras-hub does.
    """

    path: str
    huggingface: str
    released: str
    keras_hub: str
    transposed: bool = True
    transposed_in_keras_hub: bool = False


def weight_names(model: ModelSettings) -> list[WeightName]:
    """Return the names of every weight of a network of this shape.

    Raises:
        CheckpointError: no other library has this architecture, or its T5 these positions.
    """
    if model.architecture != "encoder_decoder":
        raise CheckpointError(
            f"model.architecture is {model.architecture!r}, which Hugging Face, keras-hub and the "
            "released checkpoints do not have; only 'encoder_decoder' can be exchanged"
        )
    if model.positions != "relative":
        raise CheckpointError(
            f"model.positions is {model.positions!r}, which the T5 of Hugging Face, keras-hub and "
            "the released checkpoints do not have; only 'relative' can be exchanged: train with "
            "model.positions: relative"
        )
    names = [
        WeightName(
            "embedding", "shared.weight", "shared/embedding", "token_embedding.embeddings", False
        )
    ]
    if not model.tie_embeddings:
        names.append(
            WeightName(
                "output_matrix",
                "lm_head.weight",
                "decoder/logits/kernel",
                "token_embedding.reverse_embeddings",
            )
        )
    for stack, layers in (
        ("encoder", model.num_encoder_layers),
        ("decoder", model.num_decoder_layers),
    ):
        per_layer = model.relative_position_bias == "per_layer"
        names += _stack(stack, layers, gated=model.gated, per_layer=per_layer)
    return names


def _stack(stack: str, layers: int, *, gated: bool, per_layer: bool) -> Iterator[WeightName]:
    for number in range(layers) if per_layer else (0,):
        path = f"{stack}/block_{number}" if per_layer else stack
        yield WeightName(
            f"{path}/relative_bias/table",
            f"{stack}.block.{number}.layer.0.SelfAttention.relative_attention_bias.weight",
            f"{stack}/block_{number:03d}/layer_000/SelfAttention/relative_attention_bias",
            f"{stack}_transformer_layers.{number}.self_attention.relative_attention_bias",
            transposed_in_keras_hub=True,
        )
    for number in range(layers):
        yield from _block(stack, number, gated=gated)
    yield WeightName(
        f"{stack}/norm/scale",
        f"{stack}.final_layer_norm.weight",
        f"{stack}/final_layer_norm/scale",
        f"{stack}_layer_norm.weight",
        False,
    )


def _block(stack: str, number: int, *, gated: bool) -> Iterator[WeightName]:
    path, hub = f"{stack}/block_{number}", f"{stack}_transformer_layers.{number}"
    attentions = [("self_attention", "SelfAttention")]
    if stack == "decoder":
        attentions.append(("cross_attention", "EncDecAttention"))
    for order, (name, foreign_name) in enumerate(attentions):
        face = f"{stack}.block.{number}.layer.{order}"
        released = f"{stack}/block_{number:03d}/layer_{order:03d}"
        yield WeightName(
            f"{path}/{name}_norm/scale",
            f"{face}.layer_norm.weight",
            f"{released}/layer_norm/scale",
            f"{hub}.{name}_layer_norm.weight",
            False,
        )
        for matrix, projector in PROJECTORS.items():
            yield WeightName(
                f"{path}/{name}/{matrix}",
                f"{face}.{foreign_name}.{matrix}.weight",
                f"{released}/{foreign_name}/{matrix}",
                f"{hub}.{name}.{projector}_projector.kernel",
            )
    order = len(attentions)
    face = f"{stack}.block.{number}.layer.{order}"
    released = f"{stack}/block_{number:03d}/layer_{order:03d}"
    yield WeightName(
        f"{path}/feed_forward_norm/scale",
        f"{face}.layer_norm.weight",
        f"{released}/layer_norm/scale",
        f"{hub}.layer_norm.weight",
        False,
    )
    for matrix in ("wi_0", "wi_1", "wo") if gated else ("wi", "wo"):
        yield WeightName(
            f"{path}/feed_forward/{matrix}",
            f"{face}.DenseReluDense.{matrix}.weight",
            f"{released}/DenseReluDense/{matrix}/kernel",
            f"{hub}.{DENSES[matrix]}_projector.kernel",
        )


def shape_of(weights: Mapping[str, np.ndarray], **settings: object) -> ModelSettings:
    """Return the shape of the network of these weights.

    Args:
        weights: arrays by path in our model.
        settings: settings that no array shows, such as the epsilon of the norms.

    Raises:
        CheckpointError: the arrays are not those of an encoder-decoder.
    """
    try:
        per_layer = "encoder/block_0/relative_bias/table" in weights
        stack = "encoder/block_0" if per_layer else "encoder"
        heads, buckets = weights[f"{stack}/relative_bias/table"].shape
        d_model, inner = weights["encoder/block_0/self_attention/q"].shape
        gated = "encoder/block_0/feed_forward/wi_0" in weights
        d_ff = weights[f"encoder/block_0/feed_forward/{'wi_0' if gated else 'wi'}"].shape[1]
    except (KeyError, ValueError) as error:
        raise CheckpointError(
            f"the weights are not those of a T5 encoder-decoder ({error}); "
            "name a folder with a T5 1.0 or 1.1 checkpoint"
        ) from error
    values: dict[str, object] = {
        "d_model": d_model,
        "d_ff": d_ff,
        "d_kv": inner // heads,
        "num_heads": heads,
        "num_encoder_layers": _layers(weights, "encoder"),
        "num_decoder_layers": _layers(weights, "decoder"),
        "feed_forward": "gated_gelu" if gated else "relu",
        "tie_embeddings": "output_matrix" not in weights,
        "relative_position_bias": "per_layer" if per_layer else "per_stack",
        "relative_position_buckets": buckets,
    }
    return ModelSettings.model_validate(values | settings)


def _layers(weights: Mapping[str, np.ndarray], stack: str) -> int:
    return len({name.split("/")[1] for name in weights if name.startswith(f"{stack}/block_")})
