"""The names of each weight in Hugging Face, the T5 release, T5X and keras-hub.

Our own names are paths in the model (`encoder/block_0/self_attention/q`), as in every weights file.
To support another library, add a field to `WeightName` and fill it in `weight_names`. The names of
encoder-only networks are in `encoder_names.py`.

Source: transformers ``T5ForConditionalGeneration`` and ``OpenAIGPTLMHeadModel``; mesh variable
scopes of the released checkpoints (``block_000/layer_000/SelfAttention``), read by transformers'
``load_tf_weights_in_t5``; keras-hub ``T5Backbone``; module ``network`` of T5X.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import CheckpointError
from t5repro.model.encoder_names import electra_names, encoder_names
from t5repro.model.two_stream_names import two_stream_names
from t5repro.model.weight_name import WeightName

Arrays = dict[str, np.ndarray]

# The settings that other libraries' T5 and GPT have, and the values that they allow.
T5: dict[str, tuple[object, ...]] = {
    "architecture": ("encoder_decoder",),
    "feed_forward": ("relu", "gated_gelu", "swiglu"),
    "biases": (False,),
    "scale_attention": (False,),
    "scale_decoder_outputs": (True,),
    "positions": ("relative",),
    "norm": ("rms",),
    "norm_placement": ("pre",),
}
GPT: dict[str, tuple[object, ...]] = {
    "architecture": ("language_model",),
    "feed_forward": ("gelu_tanh",),
    "biases": (True,),
    "scale_attention": (True,),
    "tie_embeddings": (True,),
    "scale_decoder_outputs": (False,),
    "positions": ("learned",),
    "norm": ("layer",),
    "norm_placement": ("post",),
}
ENCODER: dict[str, tuple[object, ...]] = {
    "feed_forward": ("relu", "gelu", "gelu_tanh"),
    "biases": (True,),
    "scale_attention": (True,),
    "shared_parts": ("all",),
}
XLNET: dict[str, tuple[object, ...]] = {
    "feed_forward": ("relu", "gelu", "gelu_tanh"),
    "scale_attention": (True,),
}

PROJECTORS = {"q": "query", "k": "key", "v": "value", "o": "output"}
DENSES = {"wi": "input", "wi_0": "input", "wi_1": "gate", "wo": "output"}
# The sub-layers of a block of T5X.
T5X_ATTENTIONS = {
    "encoder": {"self_attention": "attention"},
    "decoder": {"self_attention": "self_attention", "cross_attention": "encoder_decoder_attention"},
}
T5X_MATRICES = {"q": "query", "k": "key", "v": "value", "o": "out"}
MOST_BLOCKS = 1000  # a greater number in a name is damage
BLOCK_NUMBER = re.compile(r"(?:block_|layers_)(\d+)")  # in names of the release and of T5X


def weight_names(model: ModelSettings) -> list[WeightName]:
    """Return the names of every weight of a network of this shape; of an encoder only, all heads.

    Raises:
        CheckpointError: no other library has a network of these settings.
    """
    check_other_libraries(model)
    return list(LIBRARIES[model.family.name].names(model))


def check_other_libraries(model: ModelSettings) -> None:
    """Check that a network is T5, GPT or an encoder only as other libraries have them.

    Raises:
        CheckpointError: it is not; names each setting with the allowed values.
    """
    library = LIBRARIES[model.family.name]
    values = model.model_dump()
    # An output matrix of its own is never scaled, whatever the setting says.
    if not model.tie_embeddings:
        values["scale_decoder_outputs"] = True  # without effect
    faults = [
        f"model.{key} is {values[key]!r}, only {' or '.join(map(repr, values_of_key))} can be "
        "exchanged"
        for key, values_of_key in library.allowed.items()
        if values[key] not in values_of_key
    ]
    # Settings that the others compute from the width, and cannot store.
    faults += [
        f"model.{key} is {values[key]}, only {derived} can be exchanged"
        for key, derived in library.derived(model).items()
        if values[key] != derived
    ]
    if model.block_groups and not model.embedding_width:
        faults.append("model.embedding_width is 0, only the width of an embedding can be exchanged")
    if faults:
        raise CheckpointError(
            f"{'; '.join(faults)}: the {library.title} of other libraries has nothing else; train "
            "with these values"
        )


def _derived_of_gpt(model: ModelSettings) -> dict[str, int]:
    return {"d_ff": 4 * model.d_model, **_derived_of_encoders(model)}


def _derived_of_encoders(model: ModelSettings) -> dict[str, int]:
    return {"d_kv": model.d_model // model.num_heads}


def _t5(model: ModelSettings) -> Iterator[WeightName]:
    yield WeightName(
        "embedding",
        "shared.weight",
        "shared/embedding",
        "token_embedding.embeddings",
        False,
        t5x="token_embedder.embedding",
    )
    if not model.tie_embeddings:
        yield WeightName(
            "output_matrix",
            "lm_head.weight",
            "decoder/logits/kernel",
            "token_embedding.reverse_embeddings",
            t5x="decoder.logits_dense.kernel",
        )
    for stack, layers in (
        ("encoder", model.num_encoder_layers),
        ("decoder", model.num_decoder_layers),
    ):
        per_layer = model.relative_position_bias == "per_layer"
        yield from _stack(stack, layers, gated=model.gated, per_layer=per_layer)


def _stack(stack: str, layers: int, *, gated: bool, per_layer: bool) -> Iterator[WeightName]:
    # Other libraries store the table of a stack in its first block.
    for number in range(layers) if per_layer else (0,):
        path = f"{stack}/block_{number}" if per_layer else stack
        yield WeightName(
            f"{path}/relative_bias/table",
            f"{stack}.block.{number}.layer.0.SelfAttention.relative_attention_bias.weight",
            f"{stack}/block_{number:03d}/layer_000/SelfAttention/relative_attention_bias",
            f"{stack}_transformer_layers.{number}.self_attention.relative_attention_bias",
            transposed_in_keras_hub=True,
            t5x="" if per_layer else f"{stack}.relpos_bias.rel_embedding",
        )
    for number in range(layers):
        yield from _block(stack, number, gated=gated)
    yield WeightName(
        f"{stack}/norm/scale",
        f"{stack}.final_layer_norm.weight",
        f"{stack}/final_layer_norm/scale",
        f"{stack}_layer_norm.weight",
        False,
        t5x=f"{stack}.{stack}_norm.scale",
    )


def _block(stack: str, number: int, *, gated: bool) -> Iterator[WeightName]:
    path, hub = f"{stack}/block_{number}", f"{stack}_transformer_layers.{number}"
    t5x = f"{stack}.layers_{number}"
    # The sub-layers of a block are numbered: self-attention, cross-attention if there is one,
    # feed-forward.
    attentions = [("self_attention", "SelfAttention")]
    if stack == "decoder":
        attentions.append(("cross_attention", "EncDecAttention"))
    for order, (name, foreign_name) in enumerate(attentions):
        face = f"{stack}.block.{number}.layer.{order}"
        released = f"{stack}/block_{number:03d}/layer_{order:03d}"
        t5x_name = T5X_ATTENTIONS[stack][name]
        t5x_norm = t5x_name.replace("encoder_decoder", "cross")
        yield WeightName(
            f"{path}/{name}_norm/scale",
            f"{face}.layer_norm.weight",
            f"{released}/layer_norm/scale",
            f"{hub}.{name}_layer_norm.weight",
            False,
            t5x=f"{t5x}.pre_{t5x_norm}_layer_norm.scale",
        )
        for matrix, projector in PROJECTORS.items():
            yield WeightName(
                f"{path}/{name}/{matrix}",
                f"{face}.{foreign_name}.{matrix}.weight",
                f"{released}/{foreign_name}/{matrix}",
                f"{hub}.{name}.{projector}_projector.kernel",
                t5x=f"{t5x}.{t5x_name}.{T5X_MATRICES[matrix]}.kernel",
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
        t5x=f"{t5x}.pre_mlp_layer_norm.scale",
    )
    for matrix in ("wi_0", "wi_1", "wo") if gated else ("wi", "wo"):
        yield WeightName(
            f"{path}/feed_forward/{matrix}",
            f"{face}.DenseReluDense.{matrix}.weight",
            f"{released}/DenseReluDense/{matrix}/kernel",
            f"{hub}.{DENSES[matrix]}_projector.kernel",
            t5x=f"{t5x}.mlp.{matrix}.kernel",
        )


def _gpt(model: ModelSettings) -> Iterator[WeightName]:
    """Yield the names of GPT; Hugging Face stores its matrices as we do."""
    yield WeightName("embedding", "transformer.tokens_embed.weight", transposed=False)
    table = "transformer.positions_embed.weight"
    yield WeightName("decoder/positions/table", table, transposed=False)
    for number in range(model.num_decoder_layers):
        block, face = f"decoder/block_{number}", f"transformer.h.{number}"
        for layer, foreign_layer in (
            ("self_attention_norm", "ln_1"),
            ("feed_forward_norm", "ln_2"),
        ):
            yield WeightName(
                f"{block}/{layer}/scale", f"{face}.{foreign_layer}.weight", transposed=False
            )
            yield WeightName(
                f"{block}/{layer}/bias", f"{face}.{foreign_layer}.bias", transposed=False
            )
        # GPT has q, k and v in one array, side by side.
        for layer, foreign_layer, third in (
            ("self_attention/q", "attn.c_attn", 0),
            ("self_attention/k", "attn.c_attn", 1),
            ("self_attention/v", "attn.c_attn", 2),
            ("self_attention/o", "attn.c_proj", None),
            ("feed_forward/wi", "mlp.c_fc", None),
            ("feed_forward/wo", "mlp.c_proj", None),
        ):
            for suffix, foreign_suffix in (("", "weight"), ("_bias", "bias")):
                yield WeightName(
                    f"{block}/{layer}{suffix}",
                    f"{face}.{foreign_layer}.{foreign_suffix}",
                    transposed=False,
                    third=third,
                )


class Library(NamedTuple):
    """A family of networks in other libraries.

    Attributes:
        title: its systems there.
        allowed: settings that they have -> values that they allow.
        derived: returns the settings that they derive from others.
        names: yields the names of all weights.
    """

    title: str
    allowed: Mapping[str, tuple[object, ...]]
    derived: Callable[[ModelSettings], Mapping[str, int]]
    names: Callable[[ModelSettings], Iterator[WeightName]]


LIBRARIES = {
    "encoder_decoder": Library("T5", T5, lambda model: {}, _t5),
    "decoder": Library("GPT", GPT, _derived_of_gpt, _gpt),
    "encoder": Library("BERT, RoBERTa or ALBERT", ENCODER, _derived_of_encoders, encoder_names),
    "generator_detector": Library("ELECTRA", ENCODER, _derived_of_encoders, electra_names),
    "two_stream": Library("XLNet", XLNET, _derived_of_encoders, two_stream_names),
}


def from_huggingface(arrays: Mapping[str, np.ndarray], model: ModelSettings) -> Arrays:
    """Return the arrays of a Hugging Face state by our paths, without missing ones."""
    weights = {}
    for name in weight_names(model):
        array = arrays.get(name.huggingface)
        if array is not None and name.third is not None:
            array = np.split(array, 3, axis=-1)[name.third]
        if array is not None:
            weights[name.path] = float32_array(array, transposed=name.transposed)
    return weights


def to_huggingface(weights: Mapping[str, np.ndarray], model: ModelSettings) -> Arrays:
    """Return weights by their names in Hugging Face."""
    arrays_by_name: dict[str, list[np.ndarray]] = {}
    for name in weight_names(model):  # thirds in their order
        # A network has only some of the heads.
        if name.head and name.path not in weights:
            continue
        array = float32_array(weights[name.path], transposed=name.transposed)
        arrays_by_name.setdefault(name.huggingface, []).append(array)
    return {
        name: arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=-1)
        for name, arrays in arrays_by_name.items()
    }


def float32_array(array: np.ndarray, *, transposed: bool) -> np.ndarray:
    """Return a contiguous float32 array, transposed if it is a matrix and `transposed` is set."""
    values = array.T if transposed and array.ndim == 2 else array
    return np.ascontiguousarray(values, dtype=np.float32)


def names_of_any_t5(arrays: Iterable[str]) -> Iterator[WeightName]:
    """Yield the names of every weight that a T5 as deep as these arrays may have.

    Args:
        arrays: names of the release or of T5X, whose checkpoints do not state the shape.
    """
    numbers = (int(number) for name in arrays for number in BLOCK_NUMBER.findall(name))
    deepest = 1 + min(max(numbers, default=0), MOST_BLOCKS)
    for feed_forward in ("relu", "gated_gelu"):
        yield from weight_names(
            ModelSettings(
                num_encoder_layers=deepest,
                num_decoder_layers=deepest,
                feed_forward=feed_forward,
                tie_embeddings=False,
            )
        )


def shape_of(weights: Mapping[str, np.ndarray], **settings: object) -> ModelSettings:
    """Return the shape of the network of these weights.

    Args:
        weights: arrays by path in our model.
        settings: settings that no array shows, such as the epsilon of the norms.

    Raises:
        CheckpointError: the arrays do not belong to an encoder-decoder.
    """
    try:
        # Only arrays of the encoder: the decoder has the same widths.
        per_layer = "encoder/block_0/relative_bias/table" in weights
        stack = "encoder/block_0" if per_layer else "encoder"
        heads, buckets = weights[f"{stack}/relative_bias/table"].shape
        d_model, inner = weights["encoder/block_0/self_attention/q"].shape
        gated = "encoder/block_0/feed_forward/wi_0" in weights
        d_ff = weights[f"encoder/block_0/feed_forward/{'wi_0' if gated else 'wi'}"].shape[1]
        if not all((heads, buckets, d_model, inner, d_ff)):
            raise ValueError("an array without numbers")
    except (KeyError, IndexError, ValueError) as error:
        raise CheckpointError(
            f"the weights are not those of a T5 encoder-decoder ({error}); "
            "name a folder with a T5 1.0 or 1.1 checkpoint"
        ) from error
    values: dict[str, object] = {
        "d_model": d_model,
        "d_ff": d_ff,
        "d_kv": inner // heads,  # not d_model // heads: T5-11B has wider heads
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
