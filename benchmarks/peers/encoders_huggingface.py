"""Hugging Face's encoders and GPT, eager: python encoders_huggingface.py SYSTEM SIZE STEPS."""

import sys
from collections.abc import Callable
from typing import Any

import encoders_shapes as encoders
import torch
import training_shapes as shared
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    RobertaConfig,
    RobertaForMaskedLM,
)

CLASSES: dict[str, tuple[Any, Any]] = {
    "bert": (BertConfig, BertForPreTraining),
    "roberta": (RobertaConfig, RobertaForMaskedLM),
    "albert": (AlbertConfig, AlbertForPreTraining),
    "spanbert": (BertConfig, BertForMaskedLM),
}
IGNORED = -100  # label of a position that is not predicted
INDICES, INDEX_WIDTH = 15, 200  # of SpanBERT's head


class SpanBert(torch.nn.Module):
    """Hugging Face's BERT with SpanBERT's boundary objective, for which it has no class.

    Source: SpanBERT, section 3.2, and ``MLPWithLayerNorm`` of its code.
    """

    def __init__(self, bert: Any) -> None:
        super().__init__()
        width = bert.config.hidden_size
        self.bert = bert
        self.indices = torch.nn.Embedding(INDICES, INDEX_WIDTH)
        self.layers = torch.nn.Sequential(
            *(torch.nn.Linear(2 * width + INDEX_WIDTH, width), torch.nn.GELU()),
            *(torch.nn.LayerNorm(width), torch.nn.Linear(width, width)),
            *(torch.nn.GELU(), torch.nn.LayerNorm(width)),
        )
        self.bias = torch.nn.Parameter(torch.zeros(bert.config.vocab_size))

    def forward(
        self, borders: torch.Tensor, index: torch.Tensor, targets: torch.Tensor, **values: Any
    ) -> torch.Tensor:
        """Return the sum of both losses."""
        outputs = self.bert(**values, output_hidden_states=True)
        states, (rows, places, _) = outputs.hidden_states[-1], borders.shape
        pairs = states[torch.arange(rows)[:, None, None], borders].reshape(rows, places, -1)
        hidden = self.layers(torch.cat([pairs, self.indices(index)], dim=-1))
        logits = hidden @ self.bert.get_input_embeddings().weight.T + self.bias
        return outputs.loss + torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten()
        )


def network(system: str, size: str) -> Any:
    """Return the network in training mode."""
    shape = encoders.size_of(system, size)
    if system == "gpt":
        return OpenAIGPTLMHeadModel(
            OpenAIGPTConfig(
                vocab_size=encoders.IDS,
                n_positions=shape.max_positions,
                n_embd=shape.d_model,
                n_layer=shape.num_decoder_layers,
                n_head=shape.num_heads,
                embd_pdrop=encoders.DROPOUT,
                attn_pdrop=encoders.DROPOUT,
                resid_pdrop=encoders.DROPOUT,
            )
        ).train()
    config, network_class = CLASSES[system]
    more = {"embedding_size": shape.embedding_width} if shape.embedding_width else {}
    model = network_class(
        config(
            vocab_size=encoders.IDS,
            hidden_size=shape.d_model,
            num_hidden_layers=shape.num_encoder_layers,
            num_attention_heads=shape.num_heads,
            intermediate_size=shape.d_ff,
            hidden_dropout_prob=encoders.DROPOUT,
            attention_probs_dropout_prob=encoders.DROPOUT,
            max_position_embeddings=514,
            **more,
        )
    )
    return (SpanBert(model) if system == "spanbert" else model).train()


def arguments(system: str) -> dict[str, torch.Tensor]:
    """Return the rows as arguments of the network, with a label at each position."""
    features, targets = encoders.batch(system)
    arrays = {name: torch.from_numpy(array).long() for name, array in features.items()}
    predicted = torch.from_numpy(targets).long()
    if system == "gpt":
        # The class predicts the next id of its inputs, so a row has one target less than ours.
        return {"input_ids": arrays["decoder_ids"], "labels": arrays["decoder_ids"]}
    labels = torch.full_like(arrays["encoder_ids"], IGNORED)
    labels.scatter_(1, arrays["target_positions"], predicted)
    values = {
        "input_ids": arrays["encoder_ids"],
        "attention_mask": arrays["encoder_segments"],
        "labels": labels,
    }
    if system == "spanbert":
        borders, index = arrays["boundary_positions"], arrays["boundary_index"]
        return values | {"borders": borders, "index": index, "targets": predicted}
    if system == "bert":
        pair = "next_sentence_label"
    elif system == "albert":
        pair = "sentence_order_label"
    else:
        return values
    return values | {"token_type_ids": arrays["encoder_types"], pair: arrays["pair_label"]}


def loss_of(system: str, size: str) -> tuple[Any, Callable[[], torch.Tensor]]:
    """Return the network, and the function that computes the loss of a batch."""
    model, values = network(system, size), arguments(system)
    if system == "spanbert":
        return model, lambda: model(**values)
    return model, lambda: model(**values).loss


def main(system: str, size: str, steps: int) -> None:
    """Train and print the time of a step."""
    torch.set_num_threads(2)
    torch.manual_seed(0)
    model, loss = loss_of(system, size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=encoders.RATE, weight_decay=0.01)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    shared.measure(step, steps, encoders.ROWS * encoders.LENGTH, encoders.operations(system, size))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
