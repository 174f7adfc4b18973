"""Whether the training step of a run file compiles for a TPU slice and fits, without a TPU.

TensorFlow writes the very step that training runs (`step.TrainedT5.train_step`: forward, backward,
Adafactor, dropout) for the rows of one core; the TPU compiler inside `libtpu` compiles it in a
process of its own (`tpu_compiler.py`) and says what memory and arithmetic it takes.

What it does not show: `TPUStrategy`'s own runtime, how fast the host feeds the step, and the sum of
gradients between cores, which needs buffers of its own.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.finetune import FinetuneStage
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.config.sections.training import TrainingSettings
from t5repro.errors import DeviceError
from t5repro.files import write_json
from t5repro.progress import announce
from t5repro.randomness import single_seed
from t5repro.train import tpu_compiler
from t5repro.train.devices import prepare

GIB = 2**30
# Memory of one core by the compiler's name of its chip. The pages of the chips, such as
# docs.cloud.google.com/tpu/docs/v4, state the HBM capacity of a chip: v3 and v4 32 GiB, v5e 16 GB,
# v5p 95 GB, v6e 32 GB (read 2026-11-22; that of v2 was not found). What the compiler lists as
# devices are two to a chip up to v4, as described here, and one to a chip from v5 on.
HBM_BYTES = {
    "TPU v2": 8 * GIB,
    "TPU v3": 16 * GIB,
    "TPU v4": 16 * GIB,
    "TPU v5 lite": 16 * GIB,
    "TPU v5": 95 * GIB,
    "TPU v6 lite": 32 * GIB,
}
SHOWN = "v5e:4x4, v4:2x2x1, v3:2x2, v5p:2x2x1, v6e:4x4"
LEFT_OUT = (
    "not shown: TPUStrategy's own runtime, host input speed, and the sum of gradients between cores"
)


class PreflightError(DeviceError):
    """A step cannot be compiled for the slice: packages, the slice or the batch are wrong."""


class DoesNotFitError(DeviceError):
    """A step needs more memory than a core has."""

    exit_code = 3


def preflight(
    settings: PretrainStage | FinetuneStage, *, slice_name: str, python: str, report: Path | None
) -> None:
    """Compile a stage's training step for a slice, print what it takes and whether it fits.

    Args:
        settings: settings of the stage.
        slice_name: such as ``v5e:4x4``; empty: `devices.slice`.
        python: interpreter with the packages of the extra ``preflight``.
        report: JSON file to write when it fits; absent: none.

    Raises:
        PreflightError: it cannot be compiled; the reason is said.
        DoesNotFitError: it needs more memory than a core has.
    """
    plan = settings.pretrain if isinstance(settings, PretrainStage) else settings.finetune
    slice_name = slice_name or settings.devices.slice
    if not slice_name:
        raise PreflightError(
            f"no slice is named: set devices.slice or --slice, such as one of {SHOWN}"
        )
    slice_facts = ask(python, "describe", slice_name)
    rows = rows_per_core(plan, slice_facts["cores"])
    with tempfile.TemporaryDirectory(prefix="preflight-") as folder:
        step = Path(folder) / "step.mlir"
        step.write_bytes(lowered_step(settings, plan, rows=rows))
        announce(
            f"preflight: compiling {rows} rows for one core of {slice_name}; this takes minutes"
        )
        found = ask(python, "compile", slice_name, str(step))
    facts = facts_of(slice_name, slice_facts, rows, found)
    announce(table(facts))
    announce(f"preflight: compiled in {found['seconds']:.0f} s; {LEFT_OUT}")
    if not facts["fits"]:
        raise DoesNotFitError(
            f"the step needs {facts['needed_bytes'] / GIB:.2f} GiB of a core's "
            f"{facts['hbm_bytes'] / GIB:.0f} GiB on {slice_name}; {cure(plan, rows)}"
        )
    if report is not None:
        write_json(report, facts)


def ask(python: str, *words: str) -> dict[str, Any]:
    """Run the compiler's half; return what it found.

    Raises:
        PreflightError: it cannot run, or the slice is unknown.
        DoesNotFitError: the compiler itself ran out of a core's memory.
    """
    environment = {**os.environ, **tpu_compiler.ENVIRONMENT}
    try:
        done = subprocess.run(
            [python, tpu_compiler.__file__, *words],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise PreflightError(
            f"the interpreter {python!r} cannot be started ({error.strerror}); see --python"
        ) from error
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise PreflightError(
            f"the TPU compiler ended with {done.returncode} for {words[1]}: {last[0]}"
        )
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    if "fault" in found:
        raise refusal(found, python, words[1])
    return found


def refusal(found: dict[str, Any], python: str, slice_name: str) -> DeviceError:
    """Return the error for what the compiler's half refused."""
    if found["fault"] == "memory":
        return DoesNotFitError(
            f"the TPU compiler ran out of a core's memory on {slice_name}: {found['text']}; "
            "raise micro_batches, lower batch_rows or take a larger slice"
        )
    if found["fault"] == "slice":
        return PreflightError(
            f"slice {slice_name!r} is unknown ({found['text']}); name it as chip:topology, such "
            f"as one of {SHOWN}"
        )
    pinned = ", ".join(f"{name} {version}" for name, version in tpu_compiler.PINNED.items())
    return PreflightError(
        f"{python}: {found['text']}; preflight needs {pinned}: pip install 't5repro[preflight]' "
        "there, or name another interpreter with --python"
    )


def rows_per_core(plan: TrainingSettings, cores: int) -> int:
    """Return the rows of a batch that one core computes.

    Raises:
        PreflightError: they cannot be split evenly.
    """
    parts = cores * plan.micro_batches
    if plan.batch_rows % parts:
        raise PreflightError(
            f"batch_rows {plan.batch_rows} is no multiple of {parts}: {cores} cores times "
            f"micro_batches {plan.micro_batches}"
        )
    return plan.batch_rows // cores


def lowered_step(
    settings: PretrainStage | FinetuneStage, plan: TrainingSettings, *, rows: int
) -> bytes:
    """Return the training step on `rows` rows as StableHLO."""
    # A CPU builds the step; precision is the run's, the device is the compiler's matter.
    devices = DevicesSettings(kind="cpu", precision=settings.devices.precision)
    prepare(devices)
    import tensorflow as tf

    from t5repro.train.loop import compiled_model

    model = compiled_model(
        settings.model,
        plan,
        vocab=settings.vocab,
        devices=devices,
        seed=single_seed(settings.seed, "preflight"),
    )
    tf.random.set_seed(0)  # ordered operations ask for it; no drawn number enters the program
    step = tf.function(model.train_step, jit_compile=True, autograph=False)
    batch = example_batch(plan, rows, decoder_only=settings.model.decoder_only)
    written = step.experimental_get_compiler_ir(batch)
    return bytes(written(stage="stablehlo_serialized"))


def example_batch(
    plan: TrainingSettings, rows: int, *, decoder_only: bool = False
) -> tuple[dict[str, Any], Any]:
    """Return a batch of padding: its shapes are what is compiled."""
    import tensorflow as tf

    def ids(length: int) -> Any:
        return tf.zeros((rows, length), tf.int32)

    if decoder_only:
        joined = ids(plan.packed_inputs_length + plan.targets_length)
        names = ("decoder_ids", "decoder_segments", "decoder_prefix")
        return dict.fromkeys(names, joined), joined
    inputs, targets = ids(plan.packed_inputs_length), ids(plan.targets_length)
    features = {
        "encoder_ids": inputs,
        "encoder_segments": inputs,
        "decoder_ids": targets,
        "decoder_segments": targets,
    }
    return features, targets


def facts_of(
    slice_name: str, slice_facts: dict[str, Any], rows: int, found: dict[str, Any]
) -> dict[str, Any]:
    """Return what is known of a step on a slice; no time is part of it.

    Raises:
        PreflightError: the memory of the chip is not known.
    """
    kind = slice_facts["kind"]
    if kind not in HBM_BYTES:
        raise PreflightError(f"the memory of {kind!r} is not known; known: {sorted(HBM_BYTES)}")
    parts = ("argument_bytes", "output_bytes", "temporary_bytes", "code_bytes")
    needed = sum(found[name] for name in parts)
    return {
        "slice": slice_name,
        "chip": kind,
        "cores": slice_facts["cores"],
        "rows_per_core": rows,
        **{name: found[name] for name in parts},
        "needed_bytes": needed,
        "hbm_bytes": HBM_BYTES[kind],
        "fits": needed <= HBM_BYTES[kind],
        "flops_per_core": found["flops"],
        "versions": tpu_compiler.PINNED,
    }


def table(facts: dict[str, Any]) -> str:
    """Return the facts as lines for a person."""
    share = facts["needed_bytes"] / facts["hbm_bytes"]
    lines = [
        ("slice", f"{facts['slice']}: {facts['cores']} cores of {facts['chip']}"),
        ("rows per core", str(facts["rows_per_core"])),
        ("arguments", _gib(facts["argument_bytes"])),
        ("outputs beside them", _gib(facts["output_bytes"])),
        ("temporaries", _gib(facts["temporary_bytes"])),
        ("program", _gib(facts["code_bytes"])),
        ("in all", f"{_gib(facts['needed_bytes'])}, {share:.0%} of {_gib(facts['hbm_bytes'])}"),
        ("FLOPs per step", f"{facts['flops_per_core']:.4g} a core"),
        ("verdict", "fits" if facts["fits"] else "does not fit"),
    ]
    return "\n".join(f"{name:<20} {value}" for name, value in lines)


def cure(plan: TrainingSettings, rows: int) -> str:
    """Return what to do about a step that does not fit."""
    if rows > plan.micro_batches:
        return f"raise micro_batches, now {plan.micro_batches}, up to {rows}"
    return "take a larger slice or a smaller model: a single row at a time does not fit"


def default_python() -> str:
    """Return the interpreter of `make preflight` if it is there, else this one."""
    own = Path(".venv-preflight/bin/python")
    return str(own) if own.is_file() else sys.executable


def _gib(count: float) -> str:
    return f"{count / GIB:.2f} GiB"
