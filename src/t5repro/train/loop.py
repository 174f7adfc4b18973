"""Pre-training and fine-tuning: `keras.Model.fit`, resumed where an earlier try stopped.

A training is a function of its settings, its inputs and the seed. What is needed to go on after
an interruption is in the work folder: weights, optimizer, step, dropout noise and the unfinished
row of the history, so a training that was interrupted ends with the same bytes as one that was
not. Batches are functions of the step, so nothing is read twice or skipped.

Modules that import Keras are imported inside functions, after `devices.prepare`: TensorFlow reads
its environment when it starts.
"""

import dataclasses
import functools
import hashlib
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.finetune import FinetuneStage
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.config.sections.training import TrainingSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import ArtifactError, SettingsError
from t5repro.files import describe_file, write_manifest, write_text
from t5repro.lineage.sources import closure
from t5repro.progress import Progress
from t5repro.randomness import repeat_seed, single_seed
from t5repro.train.devices import Devices, prepare
from t5repro.vocab.token_files import split_files

if TYPE_CHECKING:
    from t5repro.train.callback import History
    from t5repro.train.checkpoint_manager import StateFiles
    from t5repro.train.monitor import Monitor

WEIGHTS = "weights.safetensors"
OPTIMIZER = "optimizer.safetensors"
HISTORY = "history.csv"
REPLICA_STRIDE = 1_000_003  # between the noise seeds of replicas; a prime


@dataclasses.dataclass(frozen=True)
class Training:
    """One training, and where its files are.

    Attributes:
        rule: the stage, ``pretrain`` or ``finetune``.
        settings: all settings of the stage, for its record.
        plan: steps, batch, learning rate and so on.
        model: shape of the network.
        vocab: for the rows of the embedding.
        devices: where it runs.
        seed: seed of this stage's weights and noise.
        start: folder of the weights and optimizer to go on from; absent: fresh weights.
        continue_optimizer: whether the optimizer goes on as well, or begins anew.
        inputs: files that decide the result.
        identity: small files that change whenever an input does, such as its manifest.
        batches: takes the first step and the number of steps, returns the batches.
        counters: returns counts of the inputs for the record; not asked without a step.
        folder: where results go.
        work: where states go.
        manifest: where the record goes.
        monitor: folder of the speeds and the TensorBoard files; absent: none.
        published: folder of a checkpoint of another library to begin with, instead of `start`.
    """

    rule: str
    settings: Mapping[str, Any]
    plan: TrainingSettings
    model: ModelSettings
    vocab: VocabSettings
    devices: DevicesSettings
    seed: int
    start: Path | None
    continue_optimizer: bool
    inputs: tuple[Path, ...]
    identity: tuple[Path, ...]
    batches: Callable[[int, int], Any]
    counters: Callable[[], Mapping[str, Any]]
    folder: Path
    work: Path
    manifest: Path
    monitor: Path | None = None
    published: Path | None = None


def pretrain(
    settings: PretrainStage,
    *,
    tokens: Path,
    folder: Path,
    work: Path,
    manifest: Path,
    monitor: Path | None = None,
    start_from: Path | None = None,
) -> None:
    """Pre-train on the corpus.

    Args:
        settings: settings of the stage.
        tokens: manifest of the token files, which are beside it.
        folder: where weights, optimizer and history go.
        work: where the state of an unfinished training is.
        manifest: where the record goes.
        monitor: folder of the speeds and the TensorBoard files; absent: none.
        start_from: folder of a published checkpoint to begin with; absent: fresh weights.
    """
    devices = prepare(settings.devices)
    from t5repro.inputs.pretraining import load_corpus_inputs

    ids, offsets = split_files(tokens.parent, "train")
    steps = settings.pretrain.steps
    checkpoint = files_of(start_from)
    seed = repeat_seed(settings.seed, settings.pretrain.repeat)

    @functools.cache  # batches and counters share the layout
    def inputs() -> Any:
        return load_corpus_inputs(
            settings.pretrain,
            ids=ids,
            offsets=offsets,
            vocab=settings.vocab,
            seed=seed,
            decoder_only=settings.model.decoder_only,
        )

    run(
        Training(
            rule="pretrain",
            settings=settings.model_dump(mode="json"),
            plan=settings.pretrain,
            model=settings.model,
            vocab=settings.vocab,
            devices=settings.devices,
            seed=single_seed(seed, "pretrain"),
            start=None,
            continue_optimizer=False,
            published=start_from,
            inputs=(tokens, ids, offsets, *checkpoint),
            identity=(tokens, *checkpoint),
            batches=lambda first, count: inputs().batches(first_step=first, steps=count),
            counters=lambda: inputs().counters(steps=steps),
            folder=folder,
            work=work,
            manifest=manifest,
            monitor=monitor,
        ),
        devices,
    )


def files_of(folder: Path | None) -> tuple[Path, ...]:
    """Return all files below a folder, in the order of their names."""
    if folder is None:
        return ()
    return tuple(sorted(path for path in folder.rglob("*") if path.is_file()))


def finetune(
    settings: FinetuneStage,
    *,
    weights: Path,
    examples: dict[str, Path],
    vocabulary: Path,
    folder: Path,
    work: Path,
    manifest: Path,
    monitor: Path | None = None,
    tokens: Path | None = None,
) -> None:
    """Fine-tune on a mixture of tasks, going on from pre-training.

    Args:
        settings: settings of the stage.
        weights: manifest of pre-training; weights and optimizer are beside it.
        examples: task -> its training examples, JSON lines.
        vocabulary: SentencePiece model.
        folder: where weights, optimizer and history go.
        work: where the state of an unfinished training is.
        manifest: where the record goes.
        monitor: folder of the speeds and the TensorBoard files; absent: none.
        tokens: manifest of the token files, which are beside it, where the corpus is drawn too.
    """
    devices = prepare(settings.devices)
    from t5repro.inputs.corpus_mixture import load_finetuning_inputs

    @functools.cache  # batches and counters share the tokenised examples
    def rows() -> Any:
        return load_finetuning_inputs(
            settings, examples=examples, vocabulary=vocabulary, seed=seed, tokens=tokens
        )

    steps = settings.finetune.steps
    seed = repeat_seed(settings.seed, settings.finetune.repeat)
    start = weights.parent
    continues = settings.finetune.optimizer_state == "continue"
    texts = (vocabulary, *(examples[task] for task in sorted(examples)))
    corpus = split_files(tokens.parent, "train") if tokens else ()
    named = (tokens,) if tokens else ()
    run(
        Training(
            rule="finetune",
            settings=settings.model_dump(mode="json"),
            plan=settings.finetune,
            model=settings.model,
            vocab=settings.vocab,
            devices=settings.devices,
            seed=single_seed(seed, "finetune"),
            start=start,
            continue_optimizer=continues,
            inputs=(
                start / WEIGHTS,
                *([start / OPTIMIZER] if continues else []),
                *texts,
                *named,
                *corpus,
            ),
            identity=(weights, *texts, *named),
            batches=lambda first, count: rows().batches(first_step=first, steps=count),
            counters=lambda: rows().counters(first_step=0, steps=steps),
            folder=folder,
            work=work,
            manifest=manifest,
            monitor=monitor,
        ),
        devices,
    )


def run(training: Training, devices: Devices) -> None:
    """Train to the end, or from where an earlier try stopped, and write the results.

    Raises:
        SettingsError: the rows of a batch cannot be split evenly.
    """
    from t5repro.train.callback import History, steps_of
    from t5repro.train.checkpoint_manager import CloudCopy, StateFiles, cloud_address

    check_rows(training.plan, devices)
    with devices.scope():
        model = make_model(training)
    offset = steps_of(model)
    mark = fingerprint(training)
    cloud = training.devices.cloud_folder
    states = StateFiles(
        training.work,
        {"fingerprint": mark, "offset": np.asarray(offset)},
        kept_steps=training.plan.kept_steps,
        cloud=CloudCopy(cloud_address(cloud, training.work)) if cloud else None,
    )
    states.fetch()
    history = resume(training, model, states, mark) or History()
    done = steps_of(model) - offset
    if done < training.plan.steps:
        separate_noise(model)
        fit(training, model, states, history, offset=offset, done=done)
    write_results(training, model, history, states)
    states.remove()


def check_rows(plan: TrainingSettings, devices: Devices) -> None:
    """Refuse a batch that replicas and micro-batches cannot share evenly.

    Raises:
        SettingsError: they cannot; it says what would do.
    """
    parts = devices.replicas * plan.micro_batches
    if plan.batch_rows % parts:
        raise SettingsError(
            f"batch_rows {plan.batch_rows} is no multiple of {parts}: {devices.replicas} devices "
            f"times micro_batches {plan.micro_batches}; static shapes need parts of one size"
        )


def make_model(training: Training) -> Any:
    """Return the compiled model with the weights and the optimizer that training starts from."""
    from t5repro.model.adapters import PLACE
    from t5repro.model.checkpoints import load_optimizer, load_weights, weight_variables
    from t5repro.train.trainable import first_steps, trains

    model = compiled_model(
        training.model,
        training.plan,
        vocab=training.vocab,
        devices=training.devices,
        seed=training.seed,
    )
    if training.start is not None:
        places = weight_variables(model)
        new = [place for place in places if PLACE in place]
        frozen = [place for place in places if not trains(place, training.plan)]
        load_weights(training.start / WEIGHTS, model, fresh=new)
        if training.continue_optimizer:
            load_optimizer(training.start / OPTIMIZER, model.optimizer, fresh=new, frozen=frozen)
    if training.published is not None:
        from t5repro.train.initialize import load_start

        say(training, load_start(training.published, model, model.optimizer))
    done, places = int(model.optimizer.iterations.numpy()), weight_variables(model)
    waits = first_steps(places, training.plan, training.model)
    model.optimizer.starts = {place: done + step for place, step in waits.items()}
    return model


def compiled_model(
    shape: ModelSettings,
    plan: TrainingSettings,
    *,
    vocab: VocabSettings,
    devices: DevicesSettings,
    seed: int,
) -> Any:
    """Return a fresh network with its training step and optimizer."""
    from t5repro.train.loss import PaddedMeanLoss
    from t5repro.train.optimizer import Adafactor, schedule
    from t5repro.train.step import TrainedT5
    from t5repro.train.trainable import adapter_width, freeze

    model = TrainedT5(
        shape,
        embedding_rows=vocab.embedding_rows,
        dropout_rate=plan.dropout_rate,
        seed=seed,
        dtype=devices.precision,
        adapter_width=adapter_width(plan),
        z_loss=plan.z_loss,
        normaliser=plan.loss_normaliser,
        micro_batches=plan.micro_batches,
    )
    freeze(model, plan)
    optimizer = Adafactor(schedule(plan.learning_rate))
    optimizer.build(model.trainable_variables)
    model.compile(
        optimizer=optimizer,
        loss=PaddedMeanLoss(plan.z_loss),
        jit_compile=False,
        steps_per_execution=devices.steps_per_execution,
    )
    return model


def fit(
    training: Training,
    model: Any,
    states: "StateFiles",
    history: "History",
    *,
    offset: int,
    done: int,
) -> None:
    """Run the steps that are left."""
    from t5repro.train.callback import KeepHistory
    from t5repro.train.optimizer import schedule

    plan = training.plan
    monitor = make_monitor(training, done=done)
    started = time.monotonic()
    with Progress(training.rule, total=plan.steps, unit="steps", done=done) as progress:
        keeper = KeepHistory(
            history=history,
            states=states,
            progress=progress,
            monitor=monitor,
            step_offset=offset,
            last_step=plan.steps,
            log_every_steps=plan.log_every_steps,
            checkpoint_every_steps=plan.checkpoint_every_steps,
            batch_rows=plan.batch_rows,
            learning_rate=schedule(plan.learning_rate),
        )
        left = plan.steps - done
        try:
            model.fit(
                training.batches(done, left).take(left),
                epochs=1,
                callbacks=[keeper],
                verbose=0,
                shuffle=False,  # the order is the batches' own
            )
        finally:
            keeper.stop_listening()
            monitor.close()
        keeper.obey()
    seconds = time.monotonic() - started
    positions = left * plan.batch_rows * (plan.packed_inputs_length + plan.targets_length)
    say(
        training,
        f"{left} steps in {seconds:.1f} s with compilation: {left / seconds:.2f} steps/s, "
        f"{left * plan.batch_rows / seconds:.1f} rows/s, {positions / seconds:.0f} positions/s",
    )


def make_monitor(training: Training, *, done: int) -> "Monitor":
    """Return what writes down how fast the training runs."""
    from t5repro.train.checkpoint_manager import cloud_address
    from t5repro.train.flops import step_flops
    from t5repro.train.monitor import Monitor

    plan, folder, cloud = training.plan, training.monitor, training.devices.cloud_folder
    return Monitor(
        folder,
        events=cloud_address(cloud, folder) if cloud and folder else str(folder),
        positions=plan.batch_rows * (plan.packed_inputs_length + plan.targets_length),
        flops=step_flops(training.model, plan, embedding_rows=training.vocab.embedding_rows),
        done=done,
    )


def resume(
    training: Training, model: Any, states: "StateFiles", mark: np.ndarray
) -> "History | None":
    """Load the newest usable state of an earlier try; return its history, or nothing."""
    from t5repro.model.checkpoints import load_state, read_arrays
    from t5repro.train.callback import History

    for path in states.newest_first():
        try:
            found = read_arrays(path).get("others/fingerprint")
        except ArtifactError as error:
            say(training, f"{error}; trying the state before it")
            continue
        if found is None or not np.array_equal(found, mark):
            say(
                training,
                f"{path} is of other settings, inputs or code; starting anew and removing old "
                "states",
            )
            states.remove()
            return None
        history = History.from_arrays(load_state(path, model, model.optimizer))
        say(training, f"going on from {path}")
        return history
    return None


def separate_noise(model: Any) -> None:
    """Give every replica dropout noise of its own; Keras starts them all from one seed.

    A state file keeps the first replica's, from which the others follow.
    """
    from t5repro.model.checkpoints import noise_variables

    for variable in noise_variables(model).values():
        replicas = getattr(variable.value, "values", ())  # absent on a single device
        for number, replica in enumerate(replicas[1:], start=1):
            seed, drawn = variable.numpy()
            replica.assign([(int(seed) + number * REPLICA_STRIDE) % 2**31, drawn])


def fingerprint(training: Training) -> np.ndarray:
    """Return the SHA-256 of what decides the result: settings, inputs, code and libraries."""
    import keras
    import tensorflow as tf

    parts = {
        "rule": training.rule,
        "settings": training.settings,
        "code": closure(training.rule),
        "libraries": {"keras": keras.__version__, "tensorflow": tf.__version__},
        "inputs": [describe_file(path)["sha256"] for path in training.identity],
    }
    text = json.dumps(parts, sort_keys=True)
    return np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)


def write_results(training: Training, model: Any, history: "History", states: "StateFiles") -> None:
    """Write weights, those of kept checkpoints too, optimizer, history and the record."""
    from t5repro.model.checkpoints import save_optimizer, save_weights
    from t5repro.train.callback import steps_of

    plan = training.plan
    outputs = [training.folder / name for name in (WEIGHTS, OPTIMIZER, HISTORY)]
    save_weights(outputs[0], model)
    save_optimizer(outputs[1], model.optimizer)
    write_text(outputs[2], history.as_csv())
    outputs += states.hand_on(training.folder)
    positions = plan.steps * plan.batch_rows * plan.targets_length
    counters = {
        "steps": plan.steps,
        "optimizer_step": steps_of(model),
        "parameters": sum(int(np.prod(item.shape)) for item in model.weights),
        "trained_parameters": sum(int(np.prod(item.shape)) for item in model.trainable_variables),
        "final_loss": history.rows[-1][1] if history.rows else None,
        "target_tokens": history.all_tokens,
        "target_padding_share": 1 - history.all_tokens / positions if positions else None,
        **(training.counters() if plan.steps else {}),
    }
    write_manifest(
        training.manifest,
        rule=training.rule,
        settings=training.settings,
        inputs=training.inputs,
        outputs=outputs,
        counters=counters,
    )


def say(training: Training, text: str) -> None:
    """Print a line to the log."""
    print(f"{training.rule}: {text}", file=sys.stderr, flush=True)
