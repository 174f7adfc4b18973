"""Sizes of a run that fit a kind of machine: network, batches, lengths, steps and vocabulary.

They are starting points for own text, experiments and recent recipes, and are not published.
"""

from typing import Any

from t5repro.config.presets.preset import Preset


def _sizes(
    *,
    vocabulary: tuple[int, int],
    pretrain: dict[str, Any],
    finetune: dict[str, Any],
    evaluate: dict[str, Any],
    **sections: Any,
) -> dict[str, Any]:
    vocab_size, sample_chars = vocabulary
    return {
        "vocab": {"vocab_size": vocab_size, "sample_chars": sample_chars},
        "pretrain": {"noise_mask": "random_spans", **pretrain},
        "finetune": finetune,
        "evaluate": evaluate,
        **sections,
    }


def _network(d_model: int, layers: int) -> dict[str, Any]:
    return {
        "d_model": d_model,
        "d_ff": 4 * d_model,
        "d_kv": 32,
        "num_heads": d_model // 32,
        "num_encoder_layers": layers,
        "num_decoder_layers": layers,
    }


def _lengths(batch_size: int, inputs: int, targets: int) -> dict[str, int]:
    return {"batch_size": batch_size, "inputs_length": inputs, "targets_length": targets}


PRESETS = {
    "laptop": Preset(
        _sizes(
            model=_network(128, 2),
            vocabulary=(2400, 2_000_000),
            pretrain={
                "steps": 400,
                **_lengths(12, 128, 48),
                "learning_rate": {"factor": 3.0},  # constant 0.03: few steps
                "checkpoint_every_steps": 200,
                "log_every_steps": 20,
            },
            finetune={
                "steps": 200,
                **_lengths(16, 128, 32),
                "learning_rate": {"factor": 0.01},
                "checkpoint_every_steps": 200,
                "log_every_steps": 10,
            },
            evaluate={"batch_size": 64, "inputs_length": 128, "max_decode_length": 32},
        ),
        "not published: two cores, 2 GB, minutes; the sizes of the demo",
    ),
    "workstation": Preset(
        _sizes(
            model=_network(256, 4),
            vocabulary=(16_000, 20_000_000),
            pretrain={"steps": 20_000, **_lengths(64, 256, 80), "checkpoint_every_steps": 1000},
            finetune={
                "steps": 2000,
                **_lengths(32, 256, 64),
                "checkpoint_every_steps": 500,
                "learning_rate": {"factor": 0.003},
            },
            evaluate={"batch_size": 64, "inputs_length": 256, "max_decode_length": 64},
            devices={"intra_op_threads": 8},
        ),
        "not published: eight cores, 16 GB, a night or two",
    ),
    "gpu": Preset(
        _sizes(
            vocabulary=(32_000, 100_000_000),
            pretrain={"steps": 100_000, **_lengths(128, 512, 114), "micro_batches": 4},
            finetune={"steps": 20_000, **_lengths(128, 512, 84), "micro_batches": 4},
            evaluate={"batch_size": 128, "inputs_length": 512, "max_decode_length": 84},
            devices={"kind": "gpu", "precision": "bfloat16"},
        ),
        "not published, not run: one GPU of 16 GB, T5-small, hours to a day",
        uses=("sizes/small",),
    ),
}
