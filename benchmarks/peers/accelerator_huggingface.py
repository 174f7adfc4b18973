"""Hugging Face's T5 on torch: SHAPE ROWS WORK STEPS [eager] [static] [no_dropout].

Weights are float32 under `torch.autocast` in a training, since `wo` stays float32 otherwise, and
bfloat16 in decoding.
"""

import accelerator_shapes as shared
import numpy as np
import torch
import training_shapes
from transformers import T5Config, T5ForConditionalGeneration

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def main() -> None:
    """Measure what the command line names."""
    job = shared.job()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    training = job.work == "train"
    config = T5Config(
        vocab_size=job.shape.ids,
        d_model=job.shape.d_model,
        d_kv=64,
        d_ff=job.shape.d_ff,
        num_layers=job.shape.layers,
        num_heads=job.shape.num_heads,
        dropout_rate=training_shapes.DROPOUT
        if training and "no_dropout" not in job.options
        else 0.0,
        decoder_start_token_id=0,
    )
    config._attn_implementation = "eager" if "eager" in job.options else "sdpa"
    network = T5ForConditionalGeneration(config).to(DEVICE)
    result = train(job, network) if training else decode(job, network)
    peak = torch.cuda.max_memory_allocated() if DEVICE == "cuda" else 0
    shared.tell({**result, "gigabytes": peak / 1e9})


def train(job: shared.Job, network: T5ForConditionalGeneration) -> dict[str, float]:
    """Measure a step with its update."""
    network.train()
    optimizer = torch.optim.Adafactor(network.parameters(), lr=training_shapes.RATE)
    # A rehearsal without a GPU has no compiler either.
    compiled = torch.compile(network) if DEVICE == "cuda" else network
    batches = shared.batches(job.shape)

    def step(number: int) -> torch.Tensor:
        inputs, targets = (on_device(array) for array in batches[number % len(batches)])
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = compiled(input_ids=inputs, labels=targets, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return shared.train(job.shape, job.steps, step, float)


def on_device(array: np.ndarray) -> torch.Tensor:
    """Return ids on the card."""
    return torch.from_numpy(array).to(DEVICE).long()


def decode(job: shared.Job, network: T5ForConditionalGeneration) -> dict[str, float]:
    """Measure the decoding of a batch; no answer ends early."""
    network.eval().to(torch.bfloat16)
    inputs = on_device(shared.batches(job.shape)[0][0])
    options = {"max_new_tokens": shared.ANSWER, "min_new_tokens": shared.ANSWER, "do_sample": False}
    if job.work == "beam":
        options |= {"num_beams": shared.WIDTH, "length_penalty": shared.LENGTH_PENALTY}
    if "static" in job.options:
        options["cache_implementation"] = "static"
    with torch.inference_mode():
        return shared.decode(job.shape, lambda: network.generate(inputs, **options).cpu())


if __name__ == "__main__":
    main()
