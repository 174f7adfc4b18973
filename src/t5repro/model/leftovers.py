"""What a checkpoint of another library has and our networks do not read: known, or refused.

Silence about an array or a setting would import another network than the one that was published.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import CheckpointError
from t5repro.files import read_json
from t5repro.model.weight_names import shape_of, weight_names
from t5repro.vocab.special_ids import EOS_ID, PAD_ID

SHOWN_NAMES = 3
EMBEDDING_OF = {
    kind: f"{kind}.embeddings.word_embeddings.weight"
    for kind in ("bert", "roberta", "albert", "electra")
}
# Second names of an array; a file may have them, with the same values.
COPIES = {
    "encoder.embed_tokens.weight": "shared.weight",
    "decoder.embed_tokens.weight": "shared.weight",
    "lm_head.weight": "shared.weight",
    "transformer.lm_head.weight": "transformer.tokens_embed.weight",
    "cls.predictions.decoder.weight": EMBEDDING_OF["bert"],
    "cls.predictions.decoder.bias": "cls.predictions.bias",
    "lm_head.decoder.weight": EMBEDDING_OF["roberta"],
    "lm_head.decoder.bias": "lm_head.bias",
    "predictions.decoder.weight": EMBEDDING_OF["albert"],
    "predictions.decoder.bias": "predictions.bias",
    "generator_lm_head.weight": EMBEDDING_OF["electra"],
    "lm_loss.weight": "transformer.word_embedding.weight",
}
UNUSED = re.compile(
    # Trained with T5 1.0 but without effect: attention to the encoder has no position biases.
    r"decoder[./]block[._]0+[./]layer[._]0*1[./]EncDecAttention[./]relative_attention_bias(\.weight)?"
    # Constants: the mask of GPT, numbers of positions and types.
    r"|transformer\.h\.\d+\.attn\.bias|transformer\.position_ids"
    r"|(bert|roberta|albert|electra)\.embeddings\.(position_ids|token_type_ids)"
    # The released RoBERTa has a pooler that pre-training does not use.
    r"|roberta\.pooler\.dense\.(weight|bias)"
    r"|global_step"
)
FLOATS = ("float32", "bfloat16", "float16", "float64")
SLOT = re.compile(r"_slot_(m|v|vr|vc)$")  # of Adafactor, in the released checkpoints
# Settings of a configuration that change the network or its ids -> the values that can be read.
READABLE: dict[str, tuple[object, ...]] = {
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "tie_encoder_decoder": (False,),
    "pruned_heads": ({}, None),
    "quantization_config": (None,),
}
READABLE_OF_T5: dict[str, tuple[object, ...]] = {
    "tie_encoder_decoder": (False,),
    "is_encoder_decoder": (True,),
    "pruned_heads": ({}, None),
    "quantization_config": (None,),
    "pad_token_id": (PAD_ID, None),
    "eos_token_id": (EOS_ID, None),
    "decoder_start_token_id": (PAD_ID, None),
}
# `feed_forward_proj` -> what transformers derives from it, which a configuration may replace.
DERIVED: dict[str, dict[str, tuple[object, ...]]] = {
    "relu": {"dense_act_fn": ("relu",), "is_gated_act": (False,)},
    "gated-gelu": {"dense_act_fn": ("gelu_new", "gelu"), "is_gated_act": (True,)},
    "gated-silu": {"dense_act_fn": ("silu",), "is_gated_act": (True,)},
}
T5_TYPES = ("t5", "mt5", "umt5")
TOKENIZER_CONFIG = "tokenizer_config.json"
BYTES = "ByT5"  # begins the class of the tokenizer that has no vocabulary


def check_configuration(path: Path, config: Mapping[str, Any]) -> None:
    """Refuse a setting that makes another network than ours.

    Args:
        path: file of the configuration.
        config: the configuration.

    Raises:
        CheckpointError: a setting has a value that cannot be read.
    """
    readable = READABLE
    if config.get("model_type") in T5_TYPES:
        readable = READABLE_OF_T5 | DERIVED[config.get("feed_forward_proj", "relu")]
    for name, allowed in readable.items():
        if name in config and config[name] not in allowed:
            raise CheckpointError(
                f"{path}: {name} is {config[name]!r}; only "
                f"{' or '.join(repr(value) for value in allowed)} can be read: the network would "
                "be another one"
            )


def check_tokenizer(folder: Path, config: Mapping[str, Any]) -> None:
    """Refuse a T5 that reads bytes, of a folder without a SentencePiece model.

    Raises:
        CheckpointError: the configuration of network or tokenizer names ByT5's tokenizer.
    """
    path = folder / TOKENIZER_CONFIG
    tokenizer_config = read_json(path) if path.is_file() else {}
    names = [config.get("tokenizer_class"), tokenizer_config.get("tokenizer_class")]
    if any(str(name).startswith(BYTES) for name in names):
        raise CheckpointError(
            f"{folder} has weights of ByT5, whose ids are bytes; this project encodes text with "
            "SentencePiece: name a T5, T5 1.1, mT5 or umT5 with its spiece.model"
        )


def check_huggingface(
    folder: Path, arrays: Mapping[str, np.ndarray], config: Mapping[str, Any], model: ModelSettings
) -> None:
    """Refuse arrays that the network of the configuration does not have.

    Args:
        folder: folder of the checkpoint.
        arrays: its arrays by Hugging Face's names.
        config: its configuration.
        model: shape of the network.

    Raises:
        CheckpointError: an array has no place in the network, or differs from the one that it is
            a copy of; or only the encoder of a T5 exists, or a T5 without its output matrix.
    """
    names = [name.huggingface for name in weight_names(model)]
    if config.get("model_type") in T5_TYPES:
        _check_whole_t5(folder, arrays, config, names)
    copies = {
        name: original
        for name, original in COPIES.items()
        if name not in names and name in arrays and original in arrays
    }
    for name, original in copies.items():
        if not np.array_equal(arrays[name], arrays[original]):
            raise CheckpointError(
                f"{folder}: {name!r} is not equal to {original!r}, and the network has one array "
                "for both; delete the one that is not meant from the file"
            )
    check_names(folder, arrays, [*names, *copies])
    rows = config.get("vocab_size")
    embedding = next((arrays[name] for name in names[:1] if name in arrays), None)
    if rows is not None and embedding is not None and len(embedding) != rows:
        raise CheckpointError(
            f"{folder}: vocab_size of the configuration is {rows}, the embedding has "
            f"{len(embedding)} rows; correct the configuration, or get the folder again"
        )


def check_numbers(where: Path, arrays: Mapping[str, Any]) -> None:
    """Refuse whole numbers in place of weights, without `UNUSED` ones.

    Args:
        where: folder or file of the checkpoint.
        arrays: name -> array, or anything else with a `dtype`.

    Raises:
        CheckpointError: there are such arrays; the message names the first.
    """
    kinds = {name: arrays[name].dtype.name for name in sorted(arrays) if not UNUSED.fullmatch(name)}
    whole = [name for name, kind in kinds.items() if kind not in FLOATS]
    if whole:
        more = f" ({len(whole):,} such arrays)" if len(whole) > 1 else ""
        raise CheckpointError(
            f"{where}: {whole[0]!r} has numbers of the type {kinds[whole[0]]}{more}; only "
            f"{', '.join(FLOATS)} can be read: a quantized network is another one, so have its "
            "library export it dequantized, as float32"
        )


def check_shape(path: Path, weights: Mapping[str, np.ndarray], model: ModelSettings) -> None:
    """Refuse a configuration of a T5 with other widths than its arrays.

    Raises:
        CheckpointError: they differ.
    """
    if model.architecture != "encoder_decoder":
        return
    of_arrays = shape_of(weights)
    for name in ("d_model", "d_ff", "d_kv", "num_heads", "relative_position_buckets"):
        configured, implied = getattr(model, name), getattr(of_arrays, name)
        if configured != implied:
            raise CheckpointError(
                f"{path}: {name} is {configured}, the arrays have {implied}; correct the "
                "configuration, or get the folder again"
            )


def _check_whole_t5(
    folder: Path,
    arrays: Mapping[str, np.ndarray],
    config: Mapping[str, Any],
    names: Collection[str],
) -> None:
    classes = config.get("architectures") or "unknown"
    written_by = ", ".join(map(str, classes)) if isinstance(classes, list) else str(classes)
    if not any(name.startswith("decoder.block.") for name in arrays):
        raise CheckpointError(
            f"{folder} has the encoder of a T5 only (architectures: {written_by}); this project "
            "trains encoder and decoder: name the checkpoint of the whole network"
        )
    missing = [name for name in names if name not in arrays]
    if missing == ["lm_head.weight"]:
        raise CheckpointError(
            f"{folder} has a T5 without its output matrix 'lm_head.weight' (architectures: "
            f"{written_by}); save the model again as T5ForConditionalGeneration"
        )


def check_names(where: Path, arrays: Collection[str], names: Collection[str | None]) -> None:
    """Refuse arrays that no weight of the network claims, without `UNUSED` ones.

    Args:
        where: folder or file of the checkpoint.
        arrays: names of its arrays.
        names: names of the weights of the network.

    Raises:
        CheckpointError: there are such arrays; the message names the first.
    """
    claimed = set(names)
    unclaimed = sorted(
        name
        for name in arrays
        if SLOT.sub("", name) not in claimed and not UNUSED.fullmatch(SLOT.sub("", name))
    )
    if unclaimed:
        shown = ", ".join(map(repr, unclaimed[:SHOWN_NAMES]))
        more = f" and {len(unclaimed) - SHOWN_NAMES:,} more" if len(unclaimed) > SHOWN_NAMES else ""
        raise CheckpointError(
            f"{where} has arrays that the network of its configuration lacks: {shown}{more}; the "
            "configuration may state too few layers, or the network has parts that this project "
            "does not: correct the configuration, or export the network without them"
        )
