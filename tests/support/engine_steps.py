"""Training steps on TensorFlow or on JAX, as a program: both start each step from the same state.

python engine_steps.py tensorflow FOLDER; python engine_steps.py jax FOLDER

TensorFlow writes its state before and after each step of each case; JAX starts from these states
and writes what it makes of them.
"""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tiny_training as tiny

STEPS = 20


@dataclass(frozen=True)
class Case:
    """A training of one family of networks.

    Attributes:
        model: shape of the network.
        batch: returns features and targets of a step.
        training: section of the stage.
        rule: the stage.
        answers: tasks of a network of labels, see `answer_columns`.
    """

    model: Any = tiny.SHAPE
    batch: Callable[[int], Any] = tiny.batch
    training: dict[str, Any] = field(default_factory=dict)
    rule: str = "pretrain"
    answers: tuple[str, ...] = ()


def joined_batch(step: int) -> Any:
    """Return inputs and targets in one row."""
    features, targets = tiny.batch(step)
    ids = np.concatenate([features["encoder_ids"], targets], axis=1)
    prefix = np.concatenate([features["encoder_segments"], np.zeros_like(targets)], axis=1)
    segments = (ids > 0).astype(np.int32)
    shifted = np.pad(ids, ((0, 0), (1, 0)))[:, :-1]
    features = {"decoder_ids": shifted, "decoder_segments": segments, "decoder_prefix": prefix}
    return features, np.where(prefix, 0, ids)


def answer_columns() -> Any:
    """Return the columns of labels, numbers and spans."""
    from t5repro.model.labels import LabelColumns, TaskAnswer

    return LabelColumns(
        {
            "cola": TaskAnswer("label", ("no", "yes")),
            "mnli": TaskAnswer("label", ("a", "b", "c")),
            "stsb": TaskAnswer("number"),
            "squad": TaskAnswer("span"),
        }
    )


def label_batch(step: int) -> Any:
    """Return rows of several tasks for an encoder: labels, numbers, spans."""
    features, _ = tiny.masked_batch(step)
    draw = np.random.default_rng(step)
    columns = list(answer_columns().columns.values())
    kinds = draw.integers(0, len(columns), tiny.ROWS)
    answers = np.array([draw.random() * 5 if kind == 3 else draw.integers(0, 2) for kind in kinds])
    first = draw.integers(0, 4, tiny.ROWS)
    span = np.stack([first, first + draw.integers(0, 2, tiny.ROWS)], axis=1)
    kept = {name: features[name] for name in ("encoder_ids", "encoder_segments", "encoder_types")}
    kept["label_columns"] = np.array([columns[kind] for kind in kinds], np.int32)
    kept["answer_span"] = span.astype(np.int32)
    return kept, answers.astype(np.float32)[:, None]


def gpt_batch(step: int) -> Any:
    """Return rows of a task for a decoder that classifies."""
    features, targets = label_batch(step)
    segments = features["encoder_segments"]
    columns = list(answer_columns().columns.values())[:2]
    kinds = np.random.default_rng(step).integers(0, 2, tiny.ROWS)
    return {
        "decoder_ids": features["encoder_ids"],
        "decoder_segments": segments,
        "last_positions": segments.sum(axis=1, keepdims=True).astype(np.int32) - 1,
        "label_columns": np.array([columns[kind] for kind in kinds], np.int32),
    }, (targets > 0.5).astype(np.float32)


def cases() -> dict[str, Case]:
    """Return all cases by name."""
    parts = {"micro_batches": 2}
    tokens = {"loss_normaliser": "target_tokens"}
    gpt = tiny.SIZES["gpt_tiny"].model_copy(
        update={"d_model": 32, "d_ff": 64, "d_kv": 8, "num_heads": 4, "max_positions": 24}
    )
    t5_1_1 = {"feed_forward": "gated_gelu", "tie_embeddings": False}
    return {
        "T5": Case(training=tokens),
        "T5 in parts, padded size": Case(training=parts),
        "T5 with clipped gradients": Case(training={**tokens, "max_grad_norm": 0.05}),
        "T5 1.1 with AdamW": Case(
            model=tiny.SHAPE.model_copy(update=t5_1_1),
            training={**tokens, "optimizer": "adamw", "weight_decay": 0.01},
        ),
        "prefix language model": Case(
            model=tiny.SHAPE.model_copy(update={"architecture": "prefix_language_model"}),
            batch=joined_batch,
            training={**tokens, "objective": "prefix_lm", "targets_length": tiny.INPUTS},
        ),
        "masked pieces, pairs and borders in parts": Case(
            model=tiny.ENCODER,
            batch=tiny.masked_batch,
            training={**tiny.MASKED_LM, **parts, "targets_length": 4},
        ),
        "answers of an encoder": Case(
            model=tiny.ENCODER,
            batch=label_batch,
            rule="finetune",
            training=tokens,
            answers=("cola", "mnli", "stsb", "squad"),
        ),
        "answers of a decoder with its language model": Case(
            model=gpt,
            batch=gpt_batch,
            rule="finetune",
            training={**tokens, "answers": "labels", "lm_weight": 0.5},
            answers=("cola", "mnli"),
        ),
    }


def compiled(case: Case) -> Any:
    """Return the network with its loss and optimizer."""
    from t5repro.model.labels import NO_COLUMNS, LabelColumns
    from t5repro.systems.finetuning import finetuning_of
    from t5repro.systems.pretraining import pretraining_of
    from t5repro.train.compiled_model import compiled_model

    settings = tiny.stage_settings(
        case.rule,
        0,
        model=case.model,
        devices={},
        training={
            "dropout_rate": 0.0,
            # Updates far above the rounding of the weights that they are added to.
            "learning_rate": {"schedule": "constant", "factor": 0.05},
            **case.training,
        },
    )
    section: Any = getattr(settings, case.rule)
    tuned = case.rule == "finetune"
    columns = NO_COLUMNS
    if case.answers:
        every = answer_columns().answers
        columns = LabelColumns({name: every[name] for name in case.answers})
    return compiled_model(
        finetuning_of(settings.model, section) if tuned else pretraining_of(settings.model),
        settings,
        section,
        seed=0,
        columns=columns,
    )


def variables_of(model: Any) -> list[Any]:
    """Return all that a step without dropout changes."""
    return [*model.trainable_variables, *model.optimizer.variables]


def on_tensorflow(folder: Path) -> None:
    """Write loss and states of each step."""
    import tensorflow as tf

    for number, case in enumerate(cases().values()):
        model = compiled(case)

        @tf.function
        def step(features: Any, targets: Any, model: Any = model) -> Any:
            loss, gradients = model.loss_and_gradients(features, targets)
            model.optimizer.apply(gradients, model.trainable_variables)
            return loss

        losses, states = [], [[variable.numpy() for variable in variables_of(model)]]
        for features, targets in map(case.batch, range(STEPS)):
            tensors = {name: tf.constant(array) for name, array in features.items()}
            losses.append(float(step(tensors, tf.constant(targets))))
            states.append([variable.numpy() for variable in variables_of(model)])
        write(folder / f"tensorflow-{number}.npz", model, losses, states)


def on_jax(folder: Path) -> None:
    """Write loss and state after each step that starts from TensorFlow's state."""
    from t5repro.train.jax_step import JaxStep

    for number, case in enumerate(cases().values()):
        model = compiled(case)
        step = JaxStep(
            model.network,
            model.objective,
            model.optimizer,
            normaliser=model.normaliser,
            micro_batches=model.micro_batches,
        )
        losses, states = [], []
        for index, before in enumerate(states_of(folder / f"tensorflow-{number}.npz")):
            for variable, value in zip(variables_of(model), before, strict=True):
                variable.assign(value)
            if index == STEPS:
                break
            after, loss = step(step.state(), *case.batch(index))
            step.write(after)
            losses.append(float(loss))
            states.append([np.asarray(variable.value) for variable in variables_of(model)])
        write(folder / f"jax-{number}.npz", model, losses, states)


def write(path: Path, model: Any, losses: list[float], states: list[list[np.ndarray]]) -> None:
    """Write losses and states; the first names are those of weights."""
    arrays = {
        f"state {index} {number}": array
        for index, state in enumerate(states)
        for number, array in enumerate(state)
    }
    names = [variable.path for variable in variables_of(model)]
    trained = len(model.trainable_variables)
    np.savez(path, losses=losses, names=names, trained=trained, count=len(states), **arrays)


def states_of(path: Path) -> Iterator[list[np.ndarray]]:
    """Return the states of a file, in order."""
    with np.load(path) as file:
        for index in range(int(file["count"])):
            yield [file[f"state {index} {number}"] for number in range(len(file["names"]))]


if __name__ == "__main__":
    os.environ["KERAS_BACKEND"] = sys.argv[1]
    {"tensorflow": on_tensorflow, "jax": on_jax}[sys.argv[1]](Path(sys.argv[2]))
