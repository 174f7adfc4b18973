"""A training of seconds on synthetic rows; also a program, to run it in a separate process.

python tiny_training.py FOLDER '{"steps": 10, "seed": 0}'
"""

import functools
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from t5repro.config.presets.sizes import SIZES
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.finetune import FinetuneStage
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.config.sections.vocab import VocabSettings
from t5repro.engines.devices import Devices, prepare, set_environment
from t5repro.inputs.batches import Batches
from t5repro.randomness import DRAW_BITS

SHAPE = ModelSettings(
    d_model=32, d_ff=64, d_kv=8, num_heads=4, num_encoder_layers=1, num_decoder_layers=1
)
ENCODER = SIZES["albert_tiny"].model_copy(
    update={
        "d_model": 32, "d_ff": 64, "d_kv": 8, "num_heads": 4, "embedding_width": 16,
        "max_positions": 16,
    }
)  # fmt: skip
MASKED_LM = {
    "objective": "masked_lm",
    "masked_lm": {"pair_task": "sentence_order", "boundary_weight": 0.5},
    "loss_normaliser": "target_tokens",
}
ELECTRA = SIZES["electra_tiny"].model_copy(  # each network with a projection
    update={
        "num_encoder_layers": 1, "d_model": 32, "d_ff": 64, "d_kv": 8, "num_heads": 4,
        "embedding_width": 24, "max_positions": 16,
    }
)  # fmt: skip
REPLACED_TOKENS = {
    "objective": "masked_lm",
    "masked_lm": {"rows": "electra_segments", "pair_task": "none", "random_share": 0},
    "loss_normaliser": "target_tokens",
}
TWO_STREAM = SIZES["xlnet_tiny"].model_copy(
    update={"d_model": 32, "d_ff": 64, "d_kv": 8, "num_heads": 4}
)
PERMUTATION_LM = {
    "objective": "permutation_lm",
    "loss_normaliser": "target_tokens",
    "targets_length": 4,
}
VOCAB = VocabSettings(vocab_size=100, extra_ids=28)
ROWS, INPUTS, TARGETS = 8, 12, 8


def batch(step: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the batch of a step: targets repeat the inputs, the second half is padded."""
    generator = np.random.default_rng(step)
    ids = generator.integers(2, 40, (ROWS, INPUTS)).astype(np.int32)
    ids[ROWS // 2 :, INPUTS // 2 :] = 0
    targets = ids[:, :TARGETS].copy()
    shifted = np.pad(targets, ((0, 0), (1, 0)))[:, :-1]
    features = {
        "encoder_ids": ids,
        "encoder_segments": (ids > 0).astype(np.int32),
        "decoder_ids": shifted,
        "decoder_segments": (targets > 0).astype(np.int32),
    }
    return features, targets


def masked_batch(step: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the batch of a step of an encoder only: masked pieces, pairs, borders of spans."""
    generator = np.random.default_rng(step)
    ids = generator.integers(2, 40, (ROWS, INPUTS)).astype(np.int32)
    ids[ROWS // 2 :, INPUTS // 2 :] = 0
    positions = np.tile(np.array([2, 4, 5, 0], np.int32), (ROWS, 1))
    targets = np.take_along_axis(ids, positions, axis=1)
    targets[:, 3] = 0  # filled up
    masked = ids.copy()
    masked[:, 2:6:2] = 99  # no other id
    features = {
        "encoder_ids": masked,
        "encoder_segments": (ids > 0).astype(np.int32),
        "encoder_types": ((ids > 0) & (np.arange(INPUTS) > 3)).astype(np.int32),
        "target_positions": positions,
        "pair_label": generator.integers(0, 2, ROWS).astype(np.int32),
        "boundary_positions": np.stack([positions - 1, positions + 1], axis=-1).clip(0),
        "boundary_index": np.where(targets > 0, 0, -1).astype(np.int32),
    }
    return features, targets


def replaced_batch(step: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the batch of a step of ELECTRA: masked pieces, and numbers to draw others with."""
    features, targets = masked_batch(step)
    draws = np.random.default_rng(step + 1_000).integers(0, 1 << DRAW_BITS, targets.shape)
    return features | {"sample_draws": draws.astype(np.int32)}, targets


def permuted_batch(step: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the batch of a step of two streams: the second half of each row sees the first."""
    generator = np.random.default_rng(step)
    ids = generator.integers(2, 40, (ROWS, INPUTS)).astype(np.int32)
    positions = np.tile(np.array([2, 4, 9, 0], np.int32), (ROWS, 1))
    targets = np.take_along_axis(ids, positions, axis=1)
    targets[:, 3] = 0  # filled up
    order = np.tile(np.arange(INPUTS) // 6 * 20, (ROWS, 1))
    ranks = np.argsort(generator.random((ROWS, 3)), axis=1) + 1
    np.put_along_axis(order, positions[:, :3], order[:, positions[0, :3]] + ranks, axis=1)
    features = {
        "encoder_ids": ids,
        "encoder_segments": np.ones_like(ids),
        "encoder_types": np.tile(np.arange(INPUTS) // 5, (ROWS, 1)).astype(np.int32),
        "encoder_order": order.astype(np.int32),
        "target_positions": positions,
    }
    return features, targets


def batches(first_step: int, steps: int, *, make: Any = batch) -> Any:
    """Return the batches of some steps; each is a function of its step."""
    return Batches(make, first_step, steps)


def make_job(
    folder: Path,
    *,
    seed: int = 0,
    start: str | None = None,
    phase: str | None = None,
    published: Path | None = None,
    engine: str = "tensorflow",
    steps_per_execution: int = 1,
    rule: str = "pretrain",
    cloud_folder: str = "",
    devices: Mapping[str, Any] | None = None,
    monitor: bool = False,
    blocks: int = 1,
    encoder: bool = False,
    electra: bool = False,
    two_stream: bool = False,
    resume_changed: bool = False,
    loggers: Sequence[Mapping[str, Any]] = (),
    samples: Callable[[], Any] | None = None,
    **training: Any,
) -> Any:
    """Return a training job with results in `folder`/results and checkpoints in `folder`/work."""
    from t5repro.lineage import sources
    from t5repro.randomness import single_seed
    from t5repro.systems.finetuning import finetuning_of
    from t5repro.systems.pretraining import pretraining_of
    from t5repro.train.finetune import load_trained
    from t5repro.train.initialize import load_phase, load_published
    from t5repro.train.loop import TrainingJob
    from t5repro.train.validation import Validation

    model = SHAPE.model_copy(update={"num_encoder_layers": blocks, "num_decoder_layers": blocks})
    make: Any = batch
    if encoder:
        model, make, training = (
            ENCODER,
            masked_batch,
            {**MASKED_LM, "targets_length": 4, **training},
        )
    if electra:
        model, make = ELECTRA, replaced_batch
        training = {**REPLACED_TOKENS, "targets_length": 4, **training}
    if two_stream:
        model, make, training = TWO_STREAM, permuted_batch, {**PERMUTATION_LM, **training}
    settings = stage_settings(
        rule,
        seed,
        model=model,
        devices={
            "engine": engine,
            "steps_per_execution": steps_per_execution,
            "cloud_folder": cloud_folder,
            **(devices or {}),
        },
        training=training,
    )
    initialize = functools.partial(load_published, published) if published else None
    if phase is not None:
        initialize = functools.partial(load_phase, Path(phase), continues=True)
    if start is not None:
        assert isinstance(settings, FinetuneStage)
        initialize = functools.partial(load_trained, Path(start), settings, ())
    every_steps = training.get("validation_every_steps", 0)
    corpus = folder / "corpus"
    if not corpus.exists():
        corpus.parent.mkdir(parents=True, exist_ok=True)
        corpus.write_text("ids")
    if isinstance(settings, FinetuneStage):
        system: Any = finetuning_of(settings.model, settings.finetune)
        section: Any = settings.finetune
    else:
        system, section = pretraining_of(settings.model), settings.pretrain
    return TrainingJob(
        rule=rule,
        system=system,
        settings=settings,
        training=section,
        layer_decay=getattr(section, "layer_decay", 1.0),
        seed=single_seed(seed, rule),
        initialize=initialize,
        inputs=(corpus,),
        identity=(corpus,),
        batches=functools.partial(batches, make=make),
        counters=lambda steps: {"synthetic": True},
        folder=folder / "results",
        work=folder / "work",
        manifest=folder / "results" / "manifest.json",
        code=sources.closure(rule),
        monitor=folder / "logs" if monitor else None,
        resume_changed=resume_changed,
        loggers=loggers,
        validation=(
            (lambda: Validation(batches(1000, 2, make=make), every_steps=every_steps))
            if every_steps
            else None
        ),
        samples=samples,
    )


def stage_settings(
    rule: str, seed: int, *, model: ModelSettings, devices: dict[str, Any], training: dict[str, Any]
) -> PretrainStage | FinetuneStage:
    """Return the settings of a stage with the tiny network and batch."""
    section = {
        "steps": 10,
        "batch_size": ROWS,
        "inputs_length": INPUTS,
        "targets_length": TARGETS,
        "checkpoint_every_steps": 4,
        "log_every_steps": 3,
        "learning_rate": {"schedule": "constant", "factor": 0.05},
        **training,
    }
    shared = {"seed": seed, "vocab": VOCAB, "model": model, "devices": devices}
    if rule == "pretrain":
        return PretrainStage.model_validate({**shared, "pretrain": section})
    return FinetuneStage.model_validate(
        {**shared, "finetune": section, "tasks": {"names": ["synthetic"]}}
    )


def main(
    folder: Path,
    runs: dict[str, dict[str, Any]],
    *,
    engine: Literal["tensorflow", "jax"] = "tensorflow",
    replicas: int = 1,
    signal_at: tuple[int, int] | None = None,
    kill_at: Sequence[int] = (),
    unfinished: bool = False,
    places: Mapping[str, Any] | None = None,
) -> None:
    """Run trainings on this machine's CPU, or on `replicas` logical devices of it.

    `places` are further settings of the devices.

    With `kill_at` they are started and killed by SIGKILL at each of these steps, one after the
    other, and at last run to the end, unless they are to stay `unfinished`: each time in a fork
    that inherits the imports, but no state of the engine. Prints the exit status of each process.
    """
    if kill_at:
        import_everything(engine)
        kills = [(int(signal.SIGKILL), step) for step in kill_at]
        statuses = [
            in_a_fork(
                main, folder, runs, engine=engine, replicas=replicas, signal_at=kill, places=places
            )
            for kill in (*kills, *([] if unfinished else [None]))
        ]
        print(json.dumps(statuses))
        return
    settings = DevicesSettings.model_validate(
        {"engine": engine, "kind": "mirrored" if replicas > 1 else "cpu", **(places or {})}
    )
    set_environment(settings)
    if replicas > 1 and engine == "jax":
        os.environ["XLA_FLAGS"] += f" --xla_force_host_platform_device_count={replicas}"
    elif replicas > 1:
        import tensorflow as tf

        cpu = tf.config.list_physical_devices("CPU")[0]
        virtual_devices = [tf.config.LogicalDeviceConfiguration()] * replicas
        tf.config.set_logical_device_configuration(cpu, virtual_devices)
    devices = prepare(settings)
    from t5repro.train.loop import run

    if signal_at is not None:
        send_signal_at(*signal_at)
    for name, options in runs.items():
        run(make_job(folder / name, engine=engine, devices=places, **options), devices)


def import_everything(engine: Literal["tensorflow", "jax"]) -> None:
    """Import the modules of a training; TensorFlow starts no thread before its first operation."""
    set_environment(DevicesSettings(engine=engine))
    from t5repro.inputs import batches  # noqa: F401
    from t5repro.train import finetune, initialize, loop  # noqa: F401


def in_a_fork(function: Callable[..., None], *arguments: Any, **options: Any) -> int:
    """Run a function in a fork of this process; return its status, negative for a signal."""
    child = os.fork()
    if child == 0:
        try:
            function(*arguments, **options)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def send_signal_at(number: int, step: int) -> None:
    """Send this process a signal while the callback of step `step` runs."""
    from t5repro.train import callback

    show = callback.TrainingCallback._show

    def show_and_signal(self: Any, *arguments: Any) -> None:
        show(self, *arguments)
        if self._step == step:
            os.kill(os.getpid(), number)

    callback.TrainingCallback._show = show_and_signal


def on_this_process() -> Devices:
    """Return the CPU of the running TensorFlow."""
    return Devices("cpu", ("CPU:0",))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]), **json.loads(sys.argv[3]))
