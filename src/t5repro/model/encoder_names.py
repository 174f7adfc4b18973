"""The names of the weights of encoder-only networks in Hugging Face: BERT, RoBERTa, ALBERT.

Which of the three a network is follows from its shape. A network has some of the heads: masked
pieces, pooler and pairs in pre-training, pooler and labels, spans, or tags in fine-tuning.

Source: transformers ``BertForPreTraining``, ``RobertaForMaskedLM``, ``AlbertForPreTraining`` and
their ``ForMaskedLM``, ``ForSequenceClassification``, ``ForQuestionAnswering`` and
``ForTokenClassification``.
"""

from collections.abc import Iterator
from typing import Literal

from t5repro.config.sections.model import ModelSettings
from t5repro.model.block_sharing import blocks_with_weights
from t5repro.model.weight_name import WeightName

Family = Literal["bert", "roberta", "albert"]  # Hugging Face's model types

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
        layers, foreign_block = BERT_BLOCK, f"{kind}.encoder.layer.{number}"
        # Only blocks with weights of their own have names; ALBERT counts them by group.
        if kind == "albert":
            group, inner = divmod(order, model.blocks_per_group)
            layers = ALBERT_BLOCK
            foreign_block = f"albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
        for layer, foreign_layer in layers.items():
            yield from _layer(f"encoder/block_{number}/{layer}", f"{foreign_block}.{foreign_layer}")
    for path, foreign_path in HEADS[kind].items():
        head = path.split("/")[0]
        if path == "masked_lm":
            yield WeightName(f"{path}/bias", f"{foreign_path}.bias", head=head)
        else:
            yield from _layer(path, foreign_path, head=head)


def _embedding_names(model: ModelSettings, kind: Family) -> Iterator[WeightName]:
    embeddings = f"{kind}.embeddings"
    tables = {"embedding": "word_embeddings", "encoder/positions/table": "position_embeddings"}
    if model.token_types:
        tables["encoder/token_types/table"] = "token_type_embeddings"
    for path, foreign_path in tables.items():
        yield WeightName(path, f"{embeddings}.{foreign_path}.weight", transposed=False)
    yield from _layer("encoder/embedding_norm", f"{embeddings}.LayerNorm")
    if kind == "albert":
        mapping = "albert.encoder.embedding_hidden_mapping_in"
        yield from _layer("encoder/embedding_projection", mapping)


def _layer(path: str, foreign_path: str, *, head: str = "") -> Iterator[WeightName]:
    """Yield the names of a layer's matrix or scale, and of its bias."""
    if path.endswith("norm"):
        weight, bias = f"{path}/scale", f"{path}/bias"
    elif "/block_" in path:  # several matrices in a layer
        weight, bias = path, f"{path}_bias"
    else:
        weight, bias = f"{path}/matrix", f"{path}/bias"
    yield WeightName(weight, f"{foreign_path}.weight", head=head)
    yield WeightName(bias, f"{foreign_path}.bias", head=head)
