"""A training of seconds on made-up rows; also a program, to run it in a process of its own.

python tiny_training.py FOLDER '{"steps": 10, "seed": 0}'
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.finetune import FinetuneSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.model.devices import set_environment
from t5repro.train.devices import Devices, prepare
from t5repro.train.loop import Training, run

SHAPE = ModelSettings(
    d_model=32, d_ff=64, d_kv=8, num_heads=4, num_encoder_layers=1, num_decoder_layers=1
)
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


def batches(first_step: int, steps: int) -> Any:
    """Return the batches of some steps; each is a function of its step."""
    import tensorflow as tf

    made = [batch(step) for step in range(first_step, first_step + steps)]
    features = {name: np.stack([item[0][name] for item in made]) for name in made[0][0]}
    return tf.data.Dataset.from_tensor_slices((features, np.stack([item[1] for item in made])))


def make_training(
    folder: Path,
    *,
    seed: int = 0,
    start: str | None = None,
    steps_per_execution: int = 1,
    continue_optimizer: bool = True,
    rule: str = "pretrain",
    cloud_folder: str = "",
    monitor: bool = False,
    blocks: int = 1,
    **plan: Any,
) -> Training:
    """Return a training below `folder`, with results in `results` and states in `work`."""
    devices = DevicesSettings(steps_per_execution=steps_per_execution, cloud_folder=cloud_folder)
    kind = FinetuneSettings if rule == "finetune" else PretrainSettings
    settings = kind.model_validate(
        {
            "steps": 10,
            "batch_rows": ROWS,
            "inputs_length": INPUTS,
            "targets_length": TARGETS,
            "checkpoint_every_steps": 4,
            "log_every_steps": 3,
            "learning_rate": {"schedule": "constant", "factor": 0.05},
            **plan,
        }
    )
    corpus = folder / "corpus"
    if not corpus.exists():
        corpus.parent.mkdir(parents=True, exist_ok=True)
        corpus.write_text("ids")
    return Training(
        rule=rule,
        settings={"seed": seed, "plan": settings.model_dump(mode="json")},
        plan=settings,
        model=SHAPE.model_copy(update={"num_encoder_layers": blocks, "num_decoder_layers": blocks}),
        vocab=VOCAB,
        devices=devices,
        seed=seed,
        start=None if start is None else Path(start),
        continue_optimizer=continue_optimizer,
        inputs=(corpus,),
        identity=(corpus,),
        batches=batches,
        counters=lambda: {"made_up": True},
        folder=folder / "results",
        work=folder / "work",
        manifest=folder / "results" / "manifest.json",
        monitor=folder / "logs" if monitor else None,
    )


def main(
    folder: Path,
    runs: dict[str, dict[str, Any]],
    *,
    replicas: int = 1,
    signal_at: tuple[int, int] | None = None,
    kill_at: Sequence[int] = (),
) -> None:
    """Run trainings on this machine's CPU, or on `replicas` logical devices of it.

    With `kill_at` they are first begun and killed by SIGKILL at each of these steps, by turns, and
    at last run to the end: every time in a process of its own, which takes over the imports, and
    nothing that TensorFlow does. It prints how each process ended.
    """
    if kill_at:
        import_everything()
        kills = [(int(signal.SIGKILL), step) for step in kill_at]
        ends = [in_a_copy(main, folder, runs, signal_at=kill) for kill in (*kills, None)]
        print(json.dumps(ends))
        return
    settings = DevicesSettings(kind="mirrored" if replicas > 1 else "cpu")
    set_environment(settings)
    if replicas > 1:
        import tensorflow as tf

        cpu = tf.config.list_physical_devices("CPU")[0]
        parts = [tf.config.LogicalDeviceConfiguration()] * replicas
        tf.config.set_logical_device_configuration(cpu, parts)
    devices = prepare(settings)
    if signal_at is not None:
        send_signal_at(*signal_at)
    for name, options in runs.items():
        run(make_training(folder / name, **options), devices)


def import_everything() -> None:
    """Import what a training needs; TensorFlow starts no thread before its first operation."""
    set_environment(DevicesSettings())
    from t5repro.inputs import batches  # noqa: F401
    from t5repro.train import callback, checkpoint_manager, flops, loss, monitor, step, trainable  # noqa: F401


def in_a_copy(function: Callable[..., None], *arguments: Any, **named: Any) -> int:
    """Run a function in a copy of this process; return how it ended, below 0 by a signal."""
    copy = os.fork()
    if copy == 0:
        try:
            function(*arguments, **named)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])


def send_signal_at(number: int, step: int) -> None:
    """Send this process a signal while step `step` of the training is being taken note of."""
    from t5repro.train import callback

    show = callback.KeepHistory._show

    def show_and_signal(self: Any, *arguments: Any) -> None:
        show(self, *arguments)
        if self._step == step:
            os.kill(os.getpid(), number)

    callback.KeepHistory._show = show_and_signal


def on_this_process() -> Devices:
    """Return the CPU as TensorFlow already runs it."""
    return Devices("cpu", ("CPU:0",))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]), **json.loads(sys.argv[3]))
