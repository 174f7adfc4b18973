"""Trains and decodes, and prints a hash of every result; a program, for a process of its own.

python exact_training.py FOLDER encoder_decoder [prefix_language_model ...]
python exact_training.py FOLDER demo [TOKENS]      the first steps of configs/demo.yaml

`--rsqrt` puts the approximate operation back into the norm, the optimizer and the learning rate.
"""

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import t5repro  # noqa: F401 (sets NumPy up: before NumPy)

import numpy as np  # isort: skip

from checkout import ROOT

from t5repro.config.load import load_run_file
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.config.stage_settings import stage_settings
from t5repro.jobs.pretrain import PretrainJob
from t5repro.train.pretrain import pretrain

# Wide enough for factored moments, and for the promise of equal bytes (D-043).
WIDTHS = {"d_model": 128, "d_ff": 256, "d_kv": 32, "num_heads": 4}
SMALL = {
    "seed": 3,
    "vocab": {"vocab_size": 30, "extra_ids": 98},
    "devices": {},
    "pretrain": {
        "steps": 3,
        "batch_size": 4,
        "inputs_length": 32,
        "targets_length": 24,
        "log_every_steps": 1,
        # Small: a network that is close to its random weights predicts many different ids.
        "learning_rate": {"factor": 0.01, "warmup_steps": 10},
    },
}
NETWORKS = {
    # With a tied embedding, as in the demo, an untrained network repeats its last id.
    "encoder_decoder": {"tie_embeddings": False, "num_encoder_layers": 1, "num_decoder_layers": 1},
    "prefix_language_model": {
        "architecture": "prefix_language_model",
        "feed_forward": "gated_gelu",
        "tie_embeddings": False,
        "num_decoder_layers": 2,
    },
}
DEMO_STEPS = 4
ROWS, MAX_DECODE_LENGTH, BEAM_WIDTH = 4, 8, 3


def settings_of(name: str) -> PretrainStage:
    """Return the settings of the demo's pre-training, or of a small one."""
    if name == "demo":
        demo = load_run_file(
            ROOT / "configs" / "demo.yaml",
            {
                "pretrain.steps": DEMO_STEPS,
                "pretrain.log_every_steps": 1,
                "pretrain.validation_every_steps": 0,
            },
        )
        return PretrainStage.model_validate(stage_settings(demo, "pretrain"))
    return PretrainStage.model_validate({**SMALL, "model": {**WIDTHS, **NETWORKS[name]}})


def made_tokens(folder: Path, ids: int) -> Path:
    """Write a corpus of random ids; return its manifest."""
    folder.mkdir(parents=True)
    count, length = 40_000, 200
    np.random.default_rng(0).integers(3, ids, count).astype("<u2").tofile(folder / "train.ids")
    np.arange(0, count + 1, length).astype("<i8").tofile(folder / "train.offsets")
    (folder / "manifest.json").write_text("{}")
    return folder / "manifest.json"


def hashes_of(name: str, folder: Path, tokens: Path | None) -> dict[str, str]:
    """Train and decode; return name of a result -> SHA-256."""
    settings = settings_of(name)
    manifest = folder / "results" / "manifest.json"
    pretrain(
        PretrainJob(
            settings,
            tokens=tokens or made_tokens(folder / "tokens", settings.vocab.vocab_size),
            folder=manifest.parent,
            work=folder / "work",
            manifest=manifest,
        ),
        code={},
    )
    weights = manifest.parent / "weights.safetensors"
    files = (weights, manifest.parent / "optimizer.safetensors", manifest.parent / "history.csv")
    hashes = {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    for decoding, ids in decoded(settings, weights).items():
        print(f"{name}, {decoding}: {ids.tolist()}", file=sys.stderr)
        hashes[decoding] = hashlib.sha256(ids.tobytes()).hexdigest()
    return hashes


def decoded(settings: PretrainStage, weights: Path) -> dict[str, np.ndarray]:
    """Return the ids that the trained network predicts: greedy, from one row, by beam search."""
    from networks import text_network

    from t5repro.model.beam import beam_search
    from t5repro.model.checkpoints import load_weights
    from t5repro.model.decode import greedy

    model = text_network(
        settings.model, embedding_rows=settings.vocab.embedding_rows, dropout_rate=0, seed=0
    )
    load_weights(weights, model)
    shape = (ROWS, settings.pretrain.inputs_length)
    ids = np.random.default_rng(1).integers(3, settings.vocab.vocab_size, shape).astype(np.int32)
    return {
        "greedy": greedy(model, ids, max_decode_length=MAX_DECODE_LENGTH),
        "one_row": greedy(model, ids[:1], max_decode_length=MAX_DECODE_LENGTH),
        "beam": beam_search(
            model, ids, max_decode_length=MAX_DECODE_LENGTH, width=BEAM_WIDTH, length_penalty=0.6
        ),
    }


def put_rsqrt_back() -> None:
    """Let the network and the optimizer compute inverse roots as `ops.rsqrt` does."""
    from keras import ops

    from t5repro.model import layers
    from t5repro.train import optimizer

    modules: Sequence[Any] = (layers, optimizer)
    for module in modules:
        module.inverse_root = ops.rsqrt


def main(folder: Path, names: list[str], *, rsqrt: bool) -> None:
    """Print a JSON object: name of a training -> name of a result -> SHA-256."""
    from t5repro.config.sections.devices import DevicesSettings
    from t5repro.engines.devices import set_environment

    set_environment(DevicesSettings())
    if rsqrt:
        put_rsqrt_back()
    tokens = Path(names.pop()) if len(names) > 1 and names[0] == "demo" else None
    print(json.dumps({name: hashes_of(name, folder / name, tokens) for name in names}))


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if word != "--rsqrt"]
    main(Path(arguments[0]), arguments[1:], rsqrt="--rsqrt" in sys.argv)
