"""The names of the weights of BERT, RoBERTa, ALBERT and ELECTRA in Hugging Face and keras-hub.

Which of them a network is follows from its shape. A network has some of the heads: masked
pieces, pooler and pairs in pre-training, pooler and labels, spans, or tags in fine-tuning.

Source: transformers ``BertForPreTraining``, ``RobertaForMaskedLM``, ``AlbertForPreTraining`` and
their ``ForMaskedLM``, ``ForSequenceClassification``, ``ForQuestionAnswering`` and
``ForTokenClassification``; ``ElectraForPreTraining`` and ``ElectraForMaskedLM``; keras-hub
``BertBackbone``, ``RobertaBackbone``, ``AlbertBackbone`` and their ``TextClassifier`` and
``MaskedLM``.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from t5repro.config.sections.model import ModelSettings
from t5repro.model.block_sharing import blocks_with_weights
from t5repro.model.weight_name import TASK, WeightName

Family = Literal["bert", "roberta", "albert", "electra"]  # Hugging Face's model types

# Begins the names of the generator of ELECTRA, which is a folder of its own in the folder of its
# detector: each is a network of Hugging Face.
GENERATOR = "generator/"

# In Hugging Face the head of tags is `classifier`, as that of labels: `huggingface_encoders` tells
# them apart by the class of the configuration.
TAG_HEAD = "token_classifier"

# Our layer -> Hugging Face's, in a block.
BERT_BLOCK = {
    "self_attention/q": "attention.self.query",
    "self_attention/k": "attention.self.key",
    "self_attention/v": "attention.self.value",
    "self_attention/o": "attention.output.dense",
    "self_attention_norm": "attention.output.LayerNorm",
    "feed_forward/wi": "intermediate.dense",
    "feed_forward/wo": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}
ALBERT_BLOCK = {
    "self_attention/q": "attention.query",
    "self_attention/k": "attention.key",
    "self_attention/v": "attention.value",
    "self_attention/o": "attention.dense",
    "self_attention_norm": "attention.LayerNorm",
    "feed_forward/wi": "ffn",
    "feed_forward/wo": "ffn_output",
    "feed_forward_norm": "full_layer_layer_norm",
}
HUB_BLOCK = {  # our layer -> keras-hub's
    "self_attention/q": "_self_attention_layer.query_dense",
    "self_attention/k": "_self_attention_layer.key_dense",
    "self_attention/v": "_self_attention_layer.value_dense",
    "self_attention/o": "_self_attention_layer.output_dense",
    "self_attention_norm": "_self_attention_layer_norm",
    "feed_forward/wi": "_feedforward_intermediate_dense",
    "feed_forward/wo": "_feedforward_output_dense",
    "feed_forward_norm": "_feedforward_layer_norm",
}
HUB_POOLER = {"pooler": "pooled_dense", "label_head": f"{TASK}output_dense"}
# Our layer -> keras-hub's, above the blocks. The heads of pre-training of BERT and ALBERT have
# other constants there (D-055).
HUB_HEADS: dict[Family, dict[str, str]] = {
    "bert": HUB_POOLER,
    "roberta": {
        "masked_lm": f"{TASK}masked_lm_head._bias",
        "masked_lm/transform": f"{TASK}masked_lm_head._intermediate_dense",
        "masked_lm/norm": f"{TASK}masked_lm_head._intermediate_layer_norm",
        "pooler": f"{TASK}pooled_dense",
        "label_head": f"{TASK}output_dense",
    },
    "albert": HUB_POOLER,
    "electra": {},
}
# Our layer -> Hugging Face's, above the blocks. The label head of ELECTRA is another one there.
HEADS: dict[Family, dict[str, str]] = {
    "bert": {
        "masked_lm": "cls.predictions",
        "masked_lm/transform": "cls.predictions.transform.dense",
        "masked_lm/norm": "cls.predictions.transform.LayerNorm",
        "pooler": "bert.pooler.dense",
        "pair_head": "cls.seq_relationship",
        "label_head": "classifier",
        "span_head": "qa_outputs",
        "tag_head": TAG_HEAD,
    },
    "roberta": {
        "masked_lm": "lm_head",
        "masked_lm/transform": "lm_head.dense",
        "masked_lm/norm": "lm_head.layer_norm",
        "pooler": "classifier.dense",
        "label_head": "classifier.out_proj",
        "span_head": "qa_outputs",
        "tag_head": TAG_HEAD,
    },
    "albert": {
        "masked_lm": "predictions",
        "masked_lm/transform": "predictions.dense",
        "masked_lm/norm": "predictions.LayerNorm",
        "pooler": "albert.pooler",
        "pair_head": "sop_classifier.classifier",
        "label_head": "classifier",
        "span_head": "qa_outputs",
        "tag_head": TAG_HEAD,
    },
    "electra": {
        "masked_lm": "generator_lm_head",
        "masked_lm/transform": "generator_predictions.dense",
        "masked_lm/norm": "generator_predictions.LayerNorm",
        "detector_head/transform": "discriminator_predictions.dense",
        "detector_head/logit": "discriminator_predictions.dense_prediction",
        "span_head": "qa_outputs",
        "tag_head": TAG_HEAD,
    },
}


def family(model: ModelSettings) -> Family:
    """Return which network of Hugging Face an encoder-only network is."""
    if model.family.has_generator:
        return "electra"
    if model.embedding_width or model.block_groups:
        return "albert"
    return "bert" if model.token_types else "roberta"


def encoder_names(model: ModelSettings) -> Iterator[WeightName]:
    """Yield the names of every weight that an encoder-only network of this shape can have."""
    kind = family(model)
    yield from _embedding_names(model, kind)
    yield from _names_above(model, kind)


def electra_names(model: ModelSettings) -> Iterator[WeightName]:
    """Yield the names of every weight of ELECTRA's two networks, and of its detector with a head.

    The generator is there as a whole or not at all. What it shares with the detector is not its
    own; if both are one network, its head has the name that it has in a folder of its own.
    """
    is_one = model.generator_tying == "all"
    for name in encoder_names(model):
        if is_one or name.head != "masked_lm":
            yield name
    if is_one:
        return
    shape = model.generator.model_copy(update={"architecture": model.architecture})
    shared = {name.path for name in _embedding_names(shape, "electra")} - {
        f"encoder/embedding_projection/{part}" for part in ("matrix", "bias")
    }
    for name in encoder_names(shape):
        if name.head not in ("", "masked_lm"):
            continue
        if model.generator_tying == "embeddings" and name.path in shared:
            continue
        path = name.path.replace("encoder/", GENERATOR, 1)
        yield replace(
            name,
            path="generator_embedding" if path == "embedding" else path,
            huggingface=GENERATOR + name.huggingface,
            head="generator",
        )


def _names_above(model: ModelSettings, kind: Family) -> Iterator[WeightName]:
    """Yield the names of blocks and heads."""
    for order, number in enumerate(blocks_with_weights(model)):
        layers, foreign_block = BERT_BLOCK, f"{kind}.encoder.layer.{number}"
        hub_block = f"transformer_layers.{number}"
        # Only blocks with weights of their own have names; ALBERT counts them by group.
        if kind == "albert":
            group, inner = divmod(order, model.blocks_per_group)
            layers = ALBERT_BLOCK
            foreign_block = f"albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
            hub_block = f"transformer_layers.{group}.{inner}"
        for layer, foreign_layer in layers.items():
            yield from _layer(
                f"encoder/block_{number}/{layer}",
                f"{foreign_block}.{foreign_layer}",
                f"{hub_block}.{HUB_BLOCK[layer]}",
            )
    for path, foreign_path in HEADS[kind].items():
        head = path.split("/")[0]
        hub = HUB_HEADS[kind].get(path, "")
        if path == "masked_lm":
            yield WeightName(f"{path}/bias", f"{foreign_path}.bias", keras_hub=hub, head=head)
        else:
            yield from _layer(path, foreign_path, hub, head=head)


def _embedding_names(model: ModelSettings, kind: Family) -> Iterator[WeightName]:
    embeddings = f"{kind}.embeddings"
    # RoBERTa's backbone has one layer of both tables.
    hub = "embeddings." if kind == "roberta" else ""
    tables = {
        "embedding": ("word_embeddings", f"{hub}token_embedding.embeddings"),
        "encoder/positions/table": (
            "position_embeddings",
            f"{hub}position_embedding.position_embeddings",
        ),
    }
    if model.token_types:
        types = ("token_type_embeddings", "segment_embedding.embeddings")
        tables["encoder/token_types/table"] = types
    for path, (foreign_path, hub_path) in tables.items():
        face = f"{embeddings}.{foreign_path}.weight"
        yield WeightName(path, face, keras_hub=hub_path, transposed=False)
    yield from _layer("encoder/embedding_norm", f"{embeddings}.LayerNorm", "embeddings_layer_norm")
    mapping = {
        "albert": "albert.encoder.embedding_hidden_mapping_in",
        "electra": "electra.embeddings_project" if model.embedding_width else "",
    }.get(kind)
    if mapping:
        yield from _layer("encoder/embedding_projection", mapping, "embeddings_projection")


def _layer(path: str, foreign_path: str, hub: str, *, head: str = "") -> Iterator[WeightName]:
    """Yield the names of a layer's matrix or scale, and of its bias."""
    hub_weight, hub_bias = (f"{hub}.{name}" if hub else "" for name in ("kernel", "bias"))
    if path.endswith("norm"):
        weight, bias = f"{path}/scale", f"{path}/bias"
        hub_weight, hub_bias = (f"{hub}.{name}" if hub else "" for name in ("gamma", "beta"))
    elif "/block_" in path:  # several matrices in a layer
        weight, bias = path, f"{path}_bias"
    else:
        weight, bias = f"{path}/matrix", f"{path}/bias"
    yield WeightName(weight, f"{foreign_path}.weight", keras_hub=hub_weight, head=head)
    yield WeightName(bias, f"{foreign_path}.bias", keras_hub=hub_bias, head=head)
