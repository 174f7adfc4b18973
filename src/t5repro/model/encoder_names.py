"""The names of the weights of encoders alone in Hugging Face: BERT, RoBERTa, ALBERT.

Which of the three a network is follows from its shape. A network has some of the heads: that of
masked pieces, pooler and head of pairs in pre-training, pooler and head of labels or the head of
spans in fine-tuning.

Source: transformers ``BertForPreTraining``, ``RobertaForMaskedLM``, ``AlbertForPreTraining`` and
their ``ForMaskedLM``, ``ForSequenceClassification`` and ``ForQuestionAnswering``.
"""

from collections.abc import Iterator
from typing import Literal

from t5repro.config.sections.model import ModelSettings
from t5repro.model.block_sharing import blocks_with_weights
from t5repro.model.weight_name import WeightName

Family = Literal["bert", "roberta", "albert"]  # Hugging Face's model types

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
# Our layer -> Hugging Face's, above the blocks.
HEADS: dict[Family, dict[str, str]] = {
    "bert": {
        "masked_lm": "cls.predictions",
        "masked_lm/transform": "cls.predictions.transform.dense",
        "masked_lm/norm": "cls.predictions.transform.LayerNorm",
        "pooler": "bert.pooler.dense",
        "pair_head": "cls.seq_relationship",
        "label_head": "classifier",
        "span_head": "qa_outputs",
    },
    "roberta": {
        "masked_lm": "lm_head",
        "masked_lm/transform": "lm_head.dense",
        "masked_lm/norm": "lm_head.layer_norm",
        "pooler": "classifier.dense",
        "label_head": "classifier.out_proj",
        "span_head": "qa_outputs",
    },
    "albert": {
        "masked_lm": "predictions",
        "masked_lm/transform": "predictions.dense",
        "masked_lm/norm": "predictions.LayerNorm",
        "pooler": "albert.pooler",
        "pair_head": "sop_classifier.classifier",
        "label_head": "classifier",
        "span_head": "qa_outputs",
    },
}


def family(model: ModelSettings) -> Family:
    """Return which network of Hugging Face an encoder-only network is."""
    if model.embedding_width or model.block_groups:
        return "albert"
    return "bert" if model.token_types else "roberta"


def encoder_names(model: ModelSettings) -> Iterator[WeightName]:
    """Yield the names of every weight that an encoder-only network of this shape can have."""
    kind = family(model)
    yield from _embedding_names(model, kind)
    for order, number in enumerate(blocks_with_weights(model)):
        layers, theirs = BERT_BLOCK, f"{kind}.encoder.layer.{number}"
        if kind == "albert":
            group, inner = divmod(order, model.blocks_per_group)
            layers = ALBERT_BLOCK
            theirs = f"albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
        for ours, layer in layers.items():
            yield from _layer(f"encoder/block_{number}/{ours}", f"{theirs}.{layer}")
    for ours, theirs in HEADS[kind].items():
        head = ours.split("/")[0]
        if ours == "masked_lm":
            yield WeightName(f"{ours}/bias", f"{theirs}.bias", head=head)
        else:
            yield from _layer(ours, theirs, head=head)


def _embedding_names(model: ModelSettings, kind: Family) -> Iterator[WeightName]:
    embeddings = f"{kind}.embeddings"
    tables = {"embedding": "word_embeddings", "encoder/positions/table": "position_embeddings"}
    if model.token_types:
        tables["encoder/token_types/table"] = "token_type_embeddings"
    for ours, theirs in tables.items():
        yield WeightName(ours, f"{embeddings}.{theirs}.weight", transposed=False)
    yield from _layer("encoder/embedding_norm", f"{embeddings}.LayerNorm")
    if kind == "albert":
        mapping = "albert.encoder.embedding_hidden_mapping_in"
        yield from _layer("encoder/embedding_projection", mapping)


def _layer(ours: str, theirs: str, *, head: str = "") -> Iterator[WeightName]:
    """Yield the names of a layer's matrix or scale, and of its bias."""
    if ours.endswith("norm"):
        weight, bias = f"{ours}/scale", f"{ours}/bias"
    elif "/block_" in ours:  # several matrices in a layer
        weight, bias = ours, f"{ours}_bias"
    else:
        weight, bias = f"{ours}/matrix", f"{ours}/bias"
    yield WeightName(weight, f"{theirs}.weight", head=head)
    yield WeightName(bias, f"{theirs}.bias", head=head)
