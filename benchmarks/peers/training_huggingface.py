"""Hugging Face's T5, eager: python training_huggingface.py SHAPE STEPS."""

import sys

import torch
import training_shapes as shared
from transformers import T5Config, T5ForConditionalGeneration
from transformers.optimization import Adafactor


def network(shape: shared.Shape) -> tuple[T5ForConditionalGeneration, Adafactor]:
    """Return the network in training mode, and its optimizer."""
    torch.set_num_threads(2)
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=shape.ids,
        d_model=shape.d_model,
        d_kv=64,
        d_ff=shape.d_ff,
        num_layers=shape.layers,
        num_heads=shape.num_heads,
        dropout_rate=shared.DROPOUT,
        decoder_start_token_id=0,
    )
    model = T5ForConditionalGeneration(config).train()
    optimizer = Adafactor(
        model.parameters(),
        lr=shared.RATE,
        relative_step=False,
        scale_parameter=True,
        warmup_init=False,
    )
    return model, optimizer


def main(name: str, steps: int) -> None:
    """Train and print the time of a step."""
    shape = shared.SHAPES[name]
    model, optimizer = network(shape)
    ids = {key: torch.from_numpy(value).long() for key, value in shared.batch(shape).items()}

    def step() -> None:
        optimizer.zero_grad()
        outputs = model(
            input_ids=ids["inputs"],
            attention_mask=torch.ones_like(ids["inputs"]),
            labels=ids["targets"],
        )
        outputs.loss.backward()
        optimizer.step()

    shared.measure(step, steps, shared.tokens(shape), shared.flops(shape))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
