"""Training steps of each family on TensorFlow or on JAX, as a program.

python engine_steps.py tensorflow FOLDER; python engine_steps.py jax FOLDER

TensorFlow writes its state before and after each step of each case. JAX starts from these states,
if it is free only from the first, and writes the distances from them; see `train.repeated_steps`.
"""

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import tiny_training as tiny

STEPS = 20
STRUCTURE = {"pair_task": "sentence_structure", "shuffle_share": 0.05}


@dataclass(frozen=True)
class Mode:
    """How the steps of all cases are repeated.

    Attributes:
        precision: of everything.
        is_free: whether only the first step starts from the reference's state.
        rate: learning rate; 0.05 makes updates that are far above the rounding of their weights.
    """

    precision: str
    is_free: bool
    rate: float


MODES = {
    "float32": Mode("float32", is_free=False, rate=0.05),
    "float32, free": Mode("float32", is_free=True, rate=0.001),
    "float64, free": Mode("float64", is_free=True, rate=0.05),
}


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


def structured_batch(step: int) -> Any:
    """Return rows of StructBERT: pairs of three kinds, and two pieces that changed places."""
    features, targets = tiny.masked_batch(step)
    ids = features["encoder_ids"]
    ids[:, 4:6] = np.where(targets[:, 2:0:-1] > 0, targets[:, 2:0:-1], ids[:, 4:6])
    kinds = np.random.default_rng(step).integers(0, 3, tiny.ROWS)
    return {**features, "pair_label": kinds.astype(np.int32)}, targets


def answer_columns() -> Any:
    """Return the columns of labels, numbers and spans."""
    from t5repro.model.labels import LabelColumns, TaskAnswer

    return LabelColumns(
        {
            "cola": TaskAnswer("label", ("no", "yes")),
            "mnli": TaskAnswer("label", ("a", "b", "c")),
            "stsb": TaskAnswer("number"),
            "squad": TaskAnswer("span"),
            "pairs": TaskAnswer("label", ("a", "b", "c"), 2, head="san"),
        }
    )


def chosen_columns(*tasks: str) -> Any:
    """Return the columns of some of the tasks."""
    from t5repro.model.labels import LabelColumns

    every = answer_columns().answers
    return LabelColumns({name: every[name] for name in tasks})


def pair_batch(step: int) -> Any:
    """Return rows of labels of single texts and of pairs, and of numbers."""
    features, _ = label_batch(step)
    columns = list(chosen_columns("cola", "pairs", "stsb").columns.values())
    draw = np.random.default_rng(step)
    kinds = draw.integers(0, 3, tiny.ROWS)
    features.pop("answer_span")
    features["label_columns"] = np.array([columns[kind] for kind in kinds], np.int32)
    return features, draw.integers(0, 2, (tiny.ROWS, 1)).astype(np.float32)


def label_batch(step: int) -> Any:
    """Return rows of several tasks for an encoder: labels, numbers, spans."""
    features, _ = tiny.masked_batch(step)
    draw = np.random.default_rng(step)
    columns = list(chosen_columns("cola", "mnli", "stsb", "squad").columns.values())
    kinds = draw.integers(0, len(columns), tiny.ROWS)
    answers = np.array([draw.random() * 5 if kind == 3 else draw.integers(0, 2) for kind in kinds])
    first = draw.integers(0, 4, tiny.ROWS)
    span = np.stack([first, first + draw.integers(0, 2, tiny.ROWS)], axis=1)
    kept = {name: features[name] for name in ("encoder_ids", "encoder_segments", "encoder_types")}
    kept["label_columns"] = np.array([columns[kind] for kind in kinds], np.int32)
    kept["answer_span"] = span.astype(np.int32)
    return kept, answers.astype(np.float32)[:, None]


def summary_batch(step: int) -> Any:
    """Return rows of labels and numbers, padded on the left."""
    features, targets = label_batch(step)
    columns = list(chosen_columns("cola", "mnli", "stsb").columns.values())
    kinds = np.random.default_rng(step).integers(0, 3, tiny.ROWS)
    names = ("encoder_ids", "encoder_segments", "encoder_types")
    left = {name: np.ascontiguousarray(features[name][:, ::-1]) for name in names}
    left["label_columns"] = np.array([columns[kind] for kind in kinds], np.int32)
    return left, np.where(kinds[:, None] == 2, targets, targets > 0.5).astype(np.float32)


def gpt_batch(step: int) -> Any:
    """Return rows of a task for a decoder that classifies."""
    features, targets = label_batch(step)
    segments = features["encoder_segments"]
    columns = list(chosen_columns("cola", "mnli").columns.values())
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
    structbert = tiny.SIZES["structbert_tiny"].model_copy(
        update={"d_model": 32, "d_ff": 64, "d_kv": 8, "num_heads": 4, "max_positions": 16}
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
        "StructBERT's pieces and pairs": Case(
            model=structbert,
            batch=structured_batch,
            training={**tiny.MASKED_LM, "masked_lm": STRUCTURE, "targets_length": 4},
        ),
        "replaced pieces in parts": Case(
            model=tiny.ELECTRA,
            batch=tiny.replaced_batch,
            training={**tiny.REPLACED_TOKENS, **parts, "targets_length": 4},
        ),
        "predictions in any order with a memory": Case(
            model=tiny.TWO_STREAM, batch=tiny.permuted_batch, training=tiny.PERMUTATION_LM
        ),
        "summaries of two streams": Case(
            model=tiny.TWO_STREAM,
            batch=summary_batch,
            rule="finetune",
            training=tokens,
            answers=("cola", "mnli", "stsb"),
        ),
        "answers of an encoder": Case(
            model=tiny.ENCODER,
            batch=label_batch,
            rule="finetune",
            training=tokens,
            answers=("cola", "mnli", "stsb", "squad"),
        ),
        "MT-DNN's answers of pairs": Case(
            model=structbert,
            batch=pair_batch,
            rule="finetune",
            training={
                **tokens,
                "optimizer": "adamax_mt_dnn",
                # With 1e-6 the sign of a gradient of rounding size decides its update.
                "adam_epsilon": 1e-3,
                "turn_dropout": 0,
                "pair_head": "san",
            },
            answers=("cola", "pairs", "stsb"),
        ),
        "answers of a decoder with its language model": Case(
            model=gpt,
            batch=gpt_batch,
            rule="finetune",
            training={**tokens, "answers": "labels", "lm_weight": 0.5},
            answers=("cola", "mnli"),
        ),
    }


def compiled(case: Case, engine: str, mode: Mode, *, dropout_rate: float = 0.0) -> Any:
    """Return the network with its loss and optimizer.

    The rate is a variable of the optimizer, so modes that differ in it share a compiled step.
    """
    from t5repro.model.labels import NO_COLUMNS
    from t5repro.systems.finetuning import finetuning_of
    from t5repro.systems.pretraining import pretraining_of
    from t5repro.train import compiled_model
    from t5repro.train.repeated_steps import comparable

    settings = tiny.stage_settings(
        case.rule,
        0,
        model=case.model,
        devices={},
        training={"learning_rate": {"schedule": "constant", "factor": mode.rate}, **case.training},
    )
    settings = comparable(settings, case.rule, engine=engine, precision=mode.precision)
    section: Any = getattr(settings, case.rule)
    section = section.model_copy(update={"dropout_rate": dropout_rate})
    tuned = case.rule == "finetune"
    columns = chosen_columns(*case.answers) if case.answers else NO_COLUMNS
    with patch.object(compiled_model, "schedule", lambda rate, **_: rate.factor):
        return compiled_model.compiled_model(
            finetuning_of(settings.model, section) if tuned else pretraining_of(settings.model),
            settings,
            section,
            seed=0,
            columns=columns,
        )


def main(engine: Any, folder: Path) -> None:
    """Repeat the steps of all cases in all modes; those of one precision share a compiled step."""
    from t5repro.config.sections.devices import DevicesSettings
    from t5repro.engines.devices import prepare

    models: dict[str, Any] = {}
    for name, mode in MODES.items():
        prepare(DevicesSettings(engine=engine), floatx=mode.precision)
        if not models:
            compile_each_step_once()
        repeat_cases(engine, name, mode, folder, models)


def compile_each_step_once() -> None:
    """Give every repetition of a model the same compiled step."""
    from t5repro.engines.engine import engine

    module: Any = engine()
    module.single_step = functools.cache(module.single_step)


def repeat_cases(engine: str, name: str, mode: Mode, folder: Path, models: dict[str, Any]) -> None:
    """Repeat the steps of all cases in a mode, from freshly made weights."""
    from t5repro.model.checkpoints import load_state, save_state
    from t5repro.train.repeated_steps import repeat_steps

    for label, case in cases().items():
        place, of_precision = f"{name}/{label}", f"{mode.precision}/{label}"
        fresh = folder / engine / "fresh" / f"{of_precision}.safetensors"
        if of_precision not in models:
            models[of_precision] = model = compiled(case, engine, mode)
            save_state(fresh, model.network, model.optimizer)
        model = models[of_precision]
        load_state(fresh, model.network, model.optimizer)
        model.optimizer.learning_rate = mode.rate
        repeat_steps(
            model,
            map(case.batch, range(STEPS)),
            folder / engine / place,
            reference=folder / "tensorflow" / place if engine == "jax" else None,
            free=mode.is_free,
        )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
