"""The training loop of both stages: `keras.Model.fit`, resumed after an interruption.

The result of a training is a function of its settings, its inputs and the seed. Checkpoints in the
work folder contain weights, optimizer, step, dropout noise and the unfinished row of the history;
batches are functions of the step. So an interrupted training ends with the same bytes as one that
was not, and no batch is read twice or skipped.
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.artifacts import HISTORY, OPTIMIZER, WEIGHTS
from t5repro.config.flops import step_flops
from t5repro.config.row_shapes import row_shape
from t5repro.config.sections.training import TrainingSettings
from t5repro.engines.devices import Devices
from t5repro.engines.engine import engine
from t5repro.errors import ArtifactError, CheckpointError
from t5repro.files import write_manifest, write_text
from t5repro.inputs.batches import Batches
from t5repro.model.checkpoints import (
    load_state,
    noise_variables,
    save_optimizer,
    save_weights,
    weight_variables,
)
from t5repro.model.labels import NO_COLUMNS, LabelColumns
from t5repro.progress import Progress, announce, name_of_work
from t5repro.systems.training import Training
from t5repro.train.callback import Samples, TrainingCallback, steps_of
from t5repro.train.checkpoint_manager import CheckpointManager
from t5repro.train.cloud import CloudCopy, cloud_address
from t5repro.train.compiled_model import check_rows, compiled_model
from t5repro.train.fingerprint import fingerprint_of
from t5repro.train.history import CHANGED, History, LoopState
from t5repro.train.loggers import Loggers
from t5repro.train.monitor import Monitor
from t5repro.train.schedules import schedule
from t5repro.train.trainable import unfreeze_steps
from t5repro.train.validation import Validation

REPLICA_STRIDE = 1_000_003  # between the noise seeds of replicas; a prime


@dataclass(frozen=True)
class TrainingJob:
    """One training: its settings, inputs and folders.

    Attributes:
        rule: the stage, ``pretrain`` or ``finetune``.
        system: how the family of the network is trained in the stage.
        settings: all settings of the stage.
        training: its own section: steps, batch, learning rate and intervals.
        seed: of this stage's weights and noise.
        initialize: sets the fresh model to other weights, returns a line for the log; if absent,
            training starts from fresh weights.
        inputs: files that decide the result, for the manifest.
        identity: small files that change whenever an input does, such as its manifest.
        batches: takes the first step and the number of steps, returns the batches.
        counters: takes the number of steps, returns counts of the inputs for the manifest; called
            only if there are steps.
        folder: receives the results.
        work: receives the checkpoints.
        manifest: manifest to write.
        code: source file -> hash, for every file that the training runs; part of the fingerprint.
        monitor: folder of the speeds and the TensorBoard files; if absent, they are not written.
        resume_changed: resume from checkpoints of another fingerprint too.
        loggers: class and arguments of the loggers of other projects, see `run.loggers`.
        validation: makes the measurement of the loss on held-out text; optional.
        samples: makes the decoder of examples, given the folder `monitor` and the log; optional.
        columns: returns the columns of the head of a network that writes no text.
        texts: returns the number of texts that the network reads of a row.
        layer_decay: factor of the learning rate of a layer; 1 means none.
        decays_gradients: whether it is the factor of gradients instead.
    """

    rule: str
    system: Training[Any]
    settings: Any
    training: TrainingSettings
    seed: int
    initialize: Callable[[Any], str] | None
    inputs: tuple[Path, ...]
    identity: tuple[Path, ...]
    batches: Callable[[int, int], Batches]
    counters: Callable[[int], Mapping[str, Any]]
    folder: Path
    work: Path
    manifest: Path
    code: Mapping[str, str]
    monitor: Path | None = None
    resume_changed: bool = False
    loggers: Sequence[Mapping[str, Any]] = ()
    validation: Callable[[], Validation] | None = None
    samples: Callable[[Path, Callable[[str], None]], Samples] | None = None
    columns: Callable[[], LabelColumns] = lambda: NO_COLUMNS
    texts: Callable[[], int] = lambda: 1
    layer_decay: float = 1.0
    decays_gradients: bool = False

    @property
    def recorded_settings(self) -> dict[str, Any]:
        """All settings as the manifest records them."""
        recorded: dict[str, Any] = self.settings.model_dump(mode="json")
        return recorded

    def log(self, text: str) -> None:
        """Print a line to the log."""
        print(f"{self.rule}: {text}", file=sys.stderr, flush=True)


def run(job: TrainingJob, devices: Devices) -> None:
    """Train to the last step, from the newest checkpoint if there is one; write the results.

    Raises:
        SettingsError: the rows of a batch cannot be split evenly.
        CheckpointError: with `resume_changed`, the newest checkpoint has other shapes.
    """
    # 1. The model with its initial weights, before anything is read from the work folder.
    check_rows(job.training, devices)
    with devices.scope():
        model = make_model(job)
    # 2. Resume, or start with the optimizer's count: fine-tuning may continue an earlier one.
    cloud = job.settings.devices.cloud_folder
    checkpoint_manager = CheckpointManager(
        job.work,
        fingerprint_of(job.rule, job.recorded_settings, job.identity, job.code),
        log=job.log,
        kept_steps=job.training.kept_steps,
        cloud=CloudCopy(cloud_address(cloud, job.work)) if cloud else None,
    )
    state = resume(job, model, checkpoint_manager) or LoopState(offset=steps_of(model))
    # 3. Schedules count from the first step of this training, also after an interruption.
    set_schedules(job, model, offset=state.offset)
    # 4. Train and write. The checkpoints go last: until then a failed write can be repeated.
    if steps_of(model) - state.offset < job.training.steps:
        separate_noise(model)
        fit(job, model, checkpoint_manager, state)
    write_results(job, model, checkpoint_manager, state)
    checkpoint_manager.remove()


def make_model(job: TrainingJob) -> Any:
    """Return the compiled model with the weights and the optimizer state of the first step."""
    model = compiled_model(
        job.system,
        job.settings,
        job.training,
        seed=job.seed,
        columns=job.columns(),
        layer_decay=job.layer_decay,
        decays_gradients=job.decays_gradients,
    )
    if job.initialize is not None:
        job.log(job.initialize(model))
    return model


def resume(job: TrainingJob, model: Any, checkpoint_manager: CheckpointManager) -> LoopState | None:
    """Load the newest usable checkpoint; return the loop's state, or nothing without one."""
    for checkpoint in checkpoint_manager.resumable(changed=job.resume_changed):
        differing = checkpoint_manager.differing_parts(checkpoint)
        # Only a changed setting can make a training shorter than its checkpoint.
        if differing and checkpoint.step > job.training.steps:
            job.log(f"{checkpoint.path} is beyond the last step {job.training.steps}; skipped")
            continue
        try:
            state = LoopState.from_arrays(
                load_state(checkpoint.path, model.network, model.optimizer)
            )
        except ArtifactError as error:
            job.log(f"{error}; trying the checkpoint before it")
            continue
        except CheckpointError as error:
            if not differing:
                raise
            raise CheckpointError(
                f"{error}; the checkpoint was written with other {', '.join(differing)} and cannot "
                "be resumed: undo the change, or run without --resume-changed"
            ) from error
        # After loading: a checkpoint that cannot be loaded must not replace the work folder.
        checkpoint_manager.adopt(checkpoint)
        if differing:
            state.changed = {
                "step": checkpoint.step,
                "parts": list(differing),
                "fingerprint": checkpoint.fingerprint.value,
                **({"earlier": state.changed} if state.changed else {}),
            }
        difference = f", written with other {', '.join(differing)}" if differing else ""
        job.log(f"resuming from {checkpoint.path}{difference}")
        return state
    return None


def set_schedules(job: TrainingJob, model: Any, *, offset: int) -> None:
    """Tell the optimizer its learning rates, and from which of its updates on each weight trains.

    Args:
        job: the training.
        model: its compiled model.
        offset: updates before the training.
    """
    steps = unfreeze_steps(weight_variables(model.network), job.training, job.settings.model)
    model.optimizer.starts = {path: offset + step for path, step in steps.items()}
    model.optimizer.learning_rate = schedule(
        job.training.learning_rate, steps=job.training.steps, offset=offset
    )


def separate_noise(model: Any) -> None:
    """Give every replica its own dropout noise; Keras starts all of them from one seed.

    A checkpoint contains only the first replica's state; the rest follows from it.
    """
    for variable in noise_variables(model.network).values():
        replicas = getattr(variable.value, "values", ())  # absent on a single device
        for number, replica in enumerate(replicas[1:], start=1):
            seed, draws = variable.numpy()  # the first replica's
            replica.assign([(int(seed) + number * REPLICA_STRIDE) % 2**31, draws])


def fit(
    job: TrainingJob, model: Any, checkpoint_manager: CheckpointManager, state: LoopState
) -> None:
    """Run the remaining steps."""
    training = job.training
    first_step = steps_of(model) - state.offset
    steps = training.steps - first_step
    monitor = make_monitor(job, model, first_step=first_step)
    samples = job.samples(job.monitor, job.log) if job.samples and job.monitor else None
    if samples:
        samples.resume(first_step)
    if first_step:
        announce(f"{name_of_work(job.rule)}: resumed at step {first_step} of {training.steps}")
    started = time.monotonic()
    with Progress(
        job.rule, total=training.steps, unit="steps", done=first_step, begins="compiling"
    ) as progress:
        callback = TrainingCallback(
            training=training,
            state=state,
            checkpoint_manager=checkpoint_manager,
            progress=progress,
            monitor=monitor,
            validation=job.validation() if job.validation else None,
            samples=samples,
        )
        try:
            model.fit(
                engine().feed(job.batches(first_step, steps)),
                epochs=1,
                steps_per_epoch=steps,
                callbacks=[callback],
                verbose=0,
                shuffle=False,  # the batches come in their own order
            )
        finally:
            callback.stop_listening()
            monitor.close()
        callback.raise_if_interrupted()
    seconds = time.monotonic() - started
    job.log(
        f"{steps} steps in {seconds:.1f} s with compilation: {steps / seconds:.2f} steps/s, "
        f"{steps * training.batch_size / seconds:.1f} rows/s, "
        f"{steps * monitor.positions / seconds:.0f} positions/s"
    )


def make_monitor(job: TrainingJob, model: Any, *, first_step: int) -> Monitor:
    """Return the monitor of the training speed, which passes its rows on to the loggers."""
    settings, training = job.settings, job.training
    cloud = settings.devices.cloud_folder
    texts = job.texts()
    row = row_shape(settings.model, training, texts=texts)
    return Monitor(
        job.monitor,
        events=cloud_address(cloud, job.monitor) if cloud and job.monitor else str(job.monitor),
        positions=training.batch_size * row.texts * row.positions,
        flops=step_flops(
            settings.model, training, embedding_rows=settings.vocab.embedding_rows, texts=texts
        ),
        first_step=first_step,
        loggers=Loggers(job.loggers, model, folder=job.monitor, announce=job.log),
    )


def write_results(
    job: TrainingJob, model: Any, checkpoint_manager: CheckpointManager, state: LoopState
) -> None:
    """Write weights, also of kept checkpoints, optimizer, history and manifest."""
    # The manifest is written last: with it the results are complete.
    outputs = [job.folder / name for name in (WEIGHTS, OPTIMIZER, HISTORY)]
    save_weights(outputs[0], model.network, model.objective.columns)
    save_optimizer(outputs[1], model.optimizer)
    write_text(outputs[2], state.history.as_csv())
    outputs += checkpoint_manager.export_kept(job.folder)
    write_manifest(
        job.manifest,
        rule=job.rule,
        settings=job.recorded_settings,
        inputs=job.inputs,
        outputs=outputs,
        counters=counters_of(job, model, state),
    )


def counters_of(job: TrainingJob, model: Any, state: LoopState) -> dict[str, Any]:
    """Return the counters of the manifest."""
    training, history = job.training, state.history
    targets_length = row_shape(job.settings.model, training).targets_length
    # Padding of the targets is exact: the history counts the ids of every step.
    targets = training.steps * training.batch_size * targets_length  # none of a network of labels
    return {
        "steps": training.steps,
        "optimizer_step": steps_of(model),
        "parameters": _numbers_in(model.weights),
        "trained_parameters": _numbers_in(model.trainable_variables),
        "final_loss": history.rows[-1][1] if history.rows else None,
        "loss_of_step": {str(step): loss for step, loss in history.early_losses.items()},
        "target_tokens": history.all_tokens,
        **_validation_counters(job, model, history),
        "target_padding_share": 1 - history.all_tokens / targets if targets else None,
        **(job.counters(training.steps) if training.steps else {}),
        **({CHANGED: state.changed} if state.changed else {}),
    }


def _validation_counters(job: TrainingJob, model: Any, history: History) -> dict[str, Any]:
    """Return the last loss on held-out text, and the accuracies there after the last step."""
    losses = list(history.validation_losses.values())
    if not losses or not job.validation:
        return {}
    # Measured from the weights that are written, so also after a resumption at the last step.
    accuracies = job.validation().accuracies(model)
    named = {"final_validation_accuracies": accuracies} if accuracies else {}
    return {"final_validation_loss": losses[-1], **named}


def _numbers_in(variables: Iterable[Any]) -> int:
    return sum(int(np.prod(variable.shape)) for variable in variables)
