"""Hugging Face's T5, batches padded to their longest: SHAPE STEPS FOLDER."""

import sys
from pathlib import Path

import finetuning_shared as shared
import numpy as np
import torch
import training_shapes as shapes
from training_huggingface import network

EXAMPLES = 64
IGNORED = -100  # what Hugging Face's loss leaves out


def main(name: str, steps: int, folder: Path) -> None:
    """Fine-tune and print the time of an example."""
    model, optimizer = network(shapes.SHAPES[name])
    with np.load(folder / "examples.npz") as arrays:
        sides = {
            side: np.split(arrays[side], np.cumsum(arrays[f"{side}_lengths"])[:-1])
            for side in ("inputs", "targets")
        }
    count = steps + shapes.WARM_UP_STEPS
    clock = shared.Clock(shapes.WARM_UP_STEPS)
    filled = positions = 0
    for step in range(count):
        indices = range(step * EXAMPLES, (step + 1) * EXAMPLES)
        inputs = padded([sides["inputs"][index] for index in indices], 0)
        targets = padded([sides["targets"][index] for index in indices], IGNORED)
        optimizer.zero_grad()
        outputs = model(input_ids=inputs, attention_mask=(inputs != 0).long(), labels=targets)
        outputs.loss.backward()
        optimizer.step()
        clock.tick()
        if step >= shapes.WARM_UP_STEPS:
            filled += int((inputs != 0).sum())
            positions += inputs.numel()
    clock.tell(examples=steps * EXAMPLES, filled=filled, positions=positions, steps=steps)


def padded(rows: list[np.ndarray], value: int) -> torch.Tensor:
    """Return the rows padded to the longest of them."""
    matrix = np.full((len(rows), max(map(len, rows))), value, np.int64)
    for row, ids in zip(matrix, rows, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(matrix)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
