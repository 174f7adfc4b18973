"""Hugging Face's encoders, eager: python encoders_huggingface.py SYSTEM SIZE STEPS."""

import sys
from typing import Any

import encoders_shapes as encoders
import torch
import training_shapes as shared
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    BertConfig,
    BertForPreTraining,
    RobertaConfig,
    RobertaForMaskedLM,
)

CLASSES: dict[str, tuple[Any, Any]] = {
    "bert": (BertConfig, BertForPreTraining),
    "roberta": (RobertaConfig, RobertaForMaskedLM),
    "albert": (AlbertConfig, AlbertForPreTraining),
}
IGNORED = -100  # label of a position that is not predicted


def network(system: str, size: str) -> Any:
    """Return the network in training mode."""
    shape = encoders.size_of(system, size)
    config, network_class = CLASSES[system]
    more = {"embedding_size": shape.embedding_width} if shape.embedding_width else {}
    return network_class(
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
    ).train()


def arguments(system: str) -> dict[str, torch.Tensor]:
    """Return the rows as arguments of the network, with a label at each position."""
    features, targets = encoders.batch(system)
    arrays = {name: torch.from_numpy(array).long() for name, array in features.items()}
    labels = torch.full_like(arrays["encoder_ids"], IGNORED)
    labels.scatter_(1, arrays["target_positions"], torch.from_numpy(targets).long())
    values = {
        "input_ids": arrays["encoder_ids"],
        "attention_mask": arrays["encoder_segments"],
        "labels": labels,
    }
    if system == "bert":
        pair = "next_sentence_label"
    elif system == "albert":
        pair = "sentence_order_label"
    else:
        return values
    return values | {"token_type_ids": arrays["encoder_types"], pair: arrays["pair_label"]}


def main(system: str, size: str, steps: int) -> None:
    """Train and print the time of a step."""
    torch.set_num_threads(2)
    torch.manual_seed(0)
    model, values = network(system, size), arguments(system)
    optimizer = torch.optim.AdamW(model.parameters(), lr=encoders.RATE, weight_decay=0.01)

    def step() -> None:
        optimizer.zero_grad()
        model(**values).loss.backward()
        optimizer.step()

    shared.measure(step, steps, encoders.ROWS * encoders.LENGTH, encoders.operations(system, size))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
