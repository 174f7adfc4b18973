"""The rule `preflight`: compiles a training step for a TPU slice, without a TPU.

The step is that of training itself: forward, backward, Adafactor, dropout. The TPU compiler inside
`libtpu` reports its memory and arithmetic. TensorFlow lowers the step for the rows of one core, and
a separate process compiles it (`tpu_compiler.py`). JAX compiles the step of the whole mesh
(`slice_step.py`), exchanges between cores included.

Not covered: the input speed of the host; with TensorFlow the runtime of `TPUStrategy` and the sum
of gradients between cores, which needs further buffers.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.finetune import FinetuneStage
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.config.sections.training import TrainingSettings
from t5repro.engines.devices import prepare
from t5repro.errors import DeviceError
from t5repro.files import write_json
from t5repro.progress import announce
from t5repro.randomness import single_seed
from t5repro.train import tpu_compiler
from t5repro.train.slice_step import costs_on_slice, training_of

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
EXAMPLES = "v5e:4x4, v4:2x2x1, v3:2x2, v5p:2x2x1, v6e:4x4"
NOT_COVERED = {
    "tensorflow": "TPUStrategy's runtime, host input speed, and the sum of gradients between cores",
    "jax": "host input speed",
}


class PreflightError(DeviceError):
    """A step cannot be compiled for the slice: wrong packages, slice or batch."""


class DoesNotFitError(DeviceError):
    """A step needs more memory than a core has."""

    exit_code = 3


def preflight(
    settings: PretrainStage | FinetuneStage, *, slice_name: str, python: str, report: Path | None
) -> None:
    """Compile a stage's training step for a slice, print its memory and whether it fits.

    Args:
        settings: settings of the stage.
        slice_name: such as ``v5e:4x4``; if empty, `devices.slice`.
        python: interpreter with the packages of the extra ``preflight``.
        report: JSON file to write if the step fits; optional.

    Raises:
        PreflightError: it cannot be compiled; the message names the reason.
        DoesNotFitError: it needs more memory than a core has.
    """
    training = training_of(settings)
    slice_name = slice_name or settings.devices.slice
    if not slice_name:
        raise PreflightError(
            f"no slice given: set devices.slice or --slice, such as one of {EXAMPLES}"
        )
    engine = settings.devices.engine
    # 1. The slice, asked from the compiler itself: its names of chips and their cores.
    slice_facts = ask(python, "describe", slice_name)
    rows = rows_per_core(training, shares_of_rows(settings, slice_facts["cores"], slice_name))
    announce(f"preflight: compiling {rows} rows for a core of {slice_name}; this takes minutes")
    # 2. The step.
    started = time.monotonic()
    if engine == "jax":
        library = slice_facts["library"]
        costs = costs_on_slice(settings, slice_name=slice_name, library=library)
        if "fault" in costs:
            raise refusal(costs, python, slice_name)
    else:
        costs = costs_of_a_core(settings, rows=rows, slice_name=slice_name, python=python)
    # 3. The verdict. The report has no times, so equal versions write equal bytes.
    facts = facts_of(slice_name, slice_facts, rows, costs)
    announce(table(facts))
    seconds = time.monotonic() - started
    announce(f"preflight: compiled in {seconds:.0f} s; not covered: {NOT_COVERED[engine]}")
    if not facts["fits"]:
        raise DoesNotFitError(
            f"the step needs {facts['needed_bytes'] / GIB:.2f} GiB of a core's "
            f"{facts['hbm_bytes'] / GIB:.0f} GiB on {slice_name}; {cure(training, rows)}"
        )
    if report is not None:
        write_json(report, facts)


def shares_of_rows(settings: PretrainStage | FinetuneStage, cores: int, slice_name: str) -> int:
    """Return the number of cores, or on JAX groups of cores, that share the rows of a batch.

    Raises:
        PreflightError: `devices.mesh` has not as many devices as the slice has cores.
    """
    if settings.devices.engine == "tensorflow":
        return cores
    mesh = settings.devices.mesh
    if mesh.devices != cores:
        raise PreflightError(
            f"devices.mesh is {mesh.data} x {mesh.model}, {mesh.devices} devices, but {slice_name} "
            f"has {cores} cores; set devices.mesh.data and devices.mesh.model to sizes with this "
            "product"
        )
    return mesh.data


def costs_of_a_core(
    settings: PretrainStage | FinetuneStage, *, rows: int, slice_name: str, python: str
) -> dict[str, Any]:
    """Return memory and arithmetic of the step of one core, lowered by TensorFlow."""
    with tempfile.TemporaryDirectory(prefix="preflight-") as folder:
        step = Path(folder) / "step.mlir"
        step.write_bytes(lowered_step(settings, rows=rows))
        return ask(python, "compile", slice_name, str(step))


def ask(python: str, *arguments: str) -> dict[str, Any]:
    """Run `tpu_compiler.py` in another interpreter; return its answer.

    Args:
        python: the interpreter.
        arguments: ``describe SLICE`` or ``compile SLICE STEP``.

    Raises:
        PreflightError: it cannot run, or the slice is unknown.
        DoesNotFitError: the compiler itself ran out of a core's memory.
    """
    environment = {**os.environ, **tpu_compiler.ENVIRONMENT}
    try:
        process = subprocess.run(
            [python, tpu_compiler.__file__, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise PreflightError(
            f"the interpreter {python!r} cannot be started ({error.strerror}); see --python"
        ) from error
    if process.returncode != 0:
        last_line = process.stderr.strip().splitlines()[-1:] or ["without a message"]
        raise PreflightError(
            f"the TPU compiler ended with {process.returncode} for {arguments[1]}: {last_line[0]}"
        )
    # Libraries may print before the answer, which is the last line.
    answer: dict[str, Any] = json.loads(process.stdout.strip().splitlines()[-1])
    if "fault" in answer:
        raise refusal(answer, python, arguments[1])
    return answer


def refusal(answer: dict[str, Any], python: str, slice_name: str) -> DeviceError:
    """Return the error for a fault that `tpu_compiler.py` reports."""
    if answer["fault"] == "memory":
        return DoesNotFitError(
            f"the TPU compiler ran out of a core's memory on {slice_name}: {answer['text']}; "
            "raise micro_batches, lower batch_size or take a larger slice"
        )
    if answer["fault"] == "slice":
        return PreflightError(
            f"slice {slice_name!r} is unknown ({answer['text']}); name it as chip:topology, such "
            f"as one of {EXAMPLES}"
        )
    pinned = ", ".join(f"{name} {version}" for name, version in tpu_compiler.PINNED.items())
    return PreflightError(
        f"{python}: {answer['text']}; preflight needs {pinned}: pip install 't5repro[preflight]' "
        "there, or name another interpreter with --python"
    )


def rows_per_core(training: TrainingSettings, shares: int) -> int:
    """Return the number of a batch's rows on one core.

    Raises:
        PreflightError: they cannot be split evenly.
    """
    divisor = shares * training.micro_batches
    if training.batch_size % divisor:
        raise PreflightError(
            f"batch_size {training.batch_size} is not a multiple of {divisor}: {shares} shares of "
            f"a batch times micro_batches {training.micro_batches}"
        )
    return training.batch_size // shares  # all micro-batches of a core together


def lowered_step(settings: PretrainStage | FinetuneStage, *, rows: int) -> bytes:
    """Return the training step on `rows` rows as StableHLO."""
    # A CPU builds the step in the run's precision; the compiler alone needs the TPU's name.
    devices = DevicesSettings(kind="cpu", precision=settings.devices.precision)
    prepare(devices)
    import tensorflow as tf

    from t5repro.train.fresh_model import fresh_model, padding_batch

    settings = settings.model_copy(update={"devices": devices})
    model = fresh_model(settings, seed=single_seed(settings.seed, "preflight"), rows=rows)
    tf.random.set_seed(0)  # deterministic operations require it; the program contains no draws
    step = tf.function(model.train_step, jit_compile=True, autograph=False)
    batch = padding_batch(settings, rows)
    lower = step.experimental_get_compiler_ir(batch)
    return bytes(lower(stage="stablehlo_serialized"))


def facts_of(
    slice_name: str, slice_facts: dict[str, Any], rows: int, costs: dict[str, Any]
) -> dict[str, Any]:
    """Return the report on a step, without times.

    Args:
        slice_name: such as ``v5e:4x4``.
        slice_facts: number of cores and kind of chip.
        rows: rows of a batch on one core.
        costs: memory and arithmetic of the compiled step.

    Raises:
        PreflightError: the memory of the chip is unknown.
    """
    kind = slice_facts["kind"]
    if kind not in HBM_BYTES:
        raise PreflightError(f"the memory of {kind!r} is unknown; known chips: {sorted(HBM_BYTES)}")
    memory_names = ("argument_bytes", "output_bytes", "temporary_bytes", "code_bytes")
    needed = sum(costs[name] for name in memory_names)
    return {
        "slice": slice_name,
        "chip": kind,
        "cores": slice_facts["cores"],
        "rows_per_core": rows,
        **{name: costs[name] for name in memory_names},
        "needed_bytes": needed,
        "hbm_bytes": HBM_BYTES[kind],
        "fits": needed <= HBM_BYTES[kind],
        "flops_per_core": costs["flops"],
        **({"exchanges": costs["exchanges"]} if "exchanges" in costs else {}),
        "versions": tpu_compiler.PINNED,
    }


def table(facts: dict[str, Any]) -> str:
    """Return the report as human-readable lines."""
    share = facts["needed_bytes"] / facts["hbm_bytes"]
    lines = [
        ("slice", f"{facts['slice']}: {facts['cores']} cores of {facts['chip']}"),
        ("rows per core", str(facts["rows_per_core"])),
        ("arguments", _gib(facts["argument_bytes"])),
        ("further outputs", _gib(facts["output_bytes"])),
        ("temporaries", _gib(facts["temporary_bytes"])),
        ("program", _gib(facts["code_bytes"])),
        ("total", f"{_gib(facts['needed_bytes'])}, {share:.0%} of {_gib(facts['hbm_bytes'])}"),
        ("FLOPs per step", f"{facts['flops_per_core']:.4g} a core"),
        *_exchanges(facts.get("exchanges")),
        ("verdict", "fits" if facts["fits"] else "does not fit"),
    ]
    return "\n".join(f"{name:<20} {value}" for name, value in lines)


def _exchanges(exchanges: dict[str, int] | None) -> list[tuple[str, str]]:
    """Return the line of the exchanges between cores, which TensorFlow's step does not show."""
    if exchanges is None:
        return []
    counts = ", ".join(f"{count} {kind}" for kind, count in exchanges.items())
    return [("between cores", counts or "nothing")]


def cure(training: TrainingSettings, rows: int) -> str:
    """Return the cure for a step that does not fit."""
    if rows > training.micro_batches:
        return f"raise micro_batches, now {training.micro_batches}, up to {rows}"
    return "take a larger slice or a smaller model: a single row at a time does not fit"


def default_python() -> str:
    """Return the interpreter of `make preflight` if it exists, else this one."""
    python = Path(".venv-preflight/bin/python")
    return str(python) if python.is_file() else sys.executable


def _gib(count: float) -> str:
    return f"{count / GIB:.2f} GiB"
