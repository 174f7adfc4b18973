"""Peak memory of short trainings on a CPU, compared with `t5repro estimate`, one process each.

    python benchmarks/training_memory.py

A process makes the model of a shape, trains it for some steps on rows of padding, and prints the
peak of its resident memory. A training of a run also has its libraries of inputs and checkpoints.
"""

import argparse
import json
import resource
import sys
from typing import Any

import interleaved_runs as runs

from t5repro.config.load import load_settings
from t5repro.config.stage_settings import stage_model, stage_settings

MEGA = 1e6


def training(batch_size: int, inputs: int, targets: int, **pretrain: Any) -> dict[str, Any]:
    """Return settings of a pre-training."""
    row = {"batch_size": batch_size, "inputs_length": inputs, "targets_length": targets}
    return {"vocab": {"vocab_size": 32_000}, "pretrain": row | pretrain}


def t5(d_model: int, layers: int, **model: Any) -> dict[str, Any]:
    """Return the settings of a small shape of T5 and of a small vocabulary."""
    heads = {"d_kv": 32, "num_heads": d_model // 32}
    blocks = {"num_decoder_layers": layers}
    if "architecture" not in model:
        blocks["num_encoder_layers"] = layers
    return {
        "vocab": {"vocab_size": 2_400},
        "model": {"d_model": d_model, "d_ff": 4 * d_model, **heads, **blocks, **model},
    }


SMALL = {"use": ["sizes/small"]}
SHAPES = {
    "T5, width 64, 2 blocks": training(64, 64, 64) | t5(64, 2),
    "T5, width 128, 2 blocks": training(12, 128, 48) | t5(128, 2),
    "T5, width 256, 4 blocks, long rows": training(8, 512, 512) | t5(256, 4),
    "T5, width 256, 4 blocks": t5(256, 4) | training(32, 256, 64),
    "T5-small": training(8, 512, 114) | SMALL,
    "T5-small, 4 micro-batches": training(8, 512, 114, micro_batches=4) | SMALL,
    "T5-small, AdamW": training(4, 256, 64, optimizer="adamw")
    | SMALL
    | {"finetune": {"optimizer_state": "fresh"}},
    "BERT, width 128, 2 blocks": training(32, 128, 20)
    | {
        "use": ["systems/bert", "sizes/bert_tiny"],
        "tasks": {"names": ["glue_sst2"], "segments": True},
    },
    "language model, width 256, 4 blocks": training(16, 64, 192, objective="lm")
    | t5(256, 4, architecture="language_model"),
}


def measure(name: str) -> None:
    """Train in this process and print the peak of its memory."""
    from t5repro.train.probe import step_seconds

    settings = load_settings(SHAPES[name])
    stage = stage_model("pretrain").model_validate(stage_settings(settings, "pretrain"))
    seconds = step_seconds(stage, rows=settings.pretrain.batch_size, steps=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "bytes": peak}))


def main() -> None:
    """Measure the shapes and print the table of docs/estimate.md."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--measure", choices=SHAPES, help="one shape, in this process")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    commands = {name: [sys.executable, __file__, "--measure", name] for name in arguments.shapes}
    print("| training | batch | lengths | measured |")
    for name, (result,) in runs.rounds(commands, 1).items():
        pretrain = load_settings(SHAPES[name]).pretrain
        print(
            f"| {name} | {pretrain.batch_size} | {pretrain.inputs_length}/{pretrain.targets_length}"
            f" | {result['bytes'] / MEGA:,.0f} MB |"
        )


if __name__ == "__main__":
    main()
