"""Which TPU slices hold a training step of T5 on JAX, without a TPU.

    python benchmarks/slices.py --formula
    python benchmarks/slices.py --output slices.json
    python benchmarks/slices.py --only small --whole --output small.json

With `--formula` the memory is that of `t5repro estimate`, in a second.

Each row is compiled for its slice with one and with two blocks in encoder and decoder by
`t5repro stage preflight`, and what a further block adds is multiplied: a bound, since the compiler
saves memory only where it is short. `--whole` compiles all blocks, to compare. Needs `make
preflight`, and an interpreter with JAX. Finished rows are kept: the same command goes on.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.config.presets.sizes import SIZES
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.estimate.machines import KINDS
from t5repro.model.sizes import PUBLISHED_EMBEDDING_ROWS
from t5repro.plan.memory import Memory, training_memory
from t5repro.train.preflight import GIB

PARTS = ("argument_bytes", "output_bytes", "temporary_bytes", "code_bytes")
ROWS = 128  # the paper's batch of pre-training, of 512 and 114 tokens


@dataclass(frozen=True)
class Case:
    """A network on a slice.

    Attributes:
        size: preset of the network.
        slice_name: the slice.
        data: groups of cores that share the rows.
        model: cores that share each weight.
        micro_batches: parts of a batch.
    """

    size: str
    slice_name: str
    data: int
    model: int
    micro_batches: int = 1

    @property
    def name(self) -> str:
        """All that makes the case another one."""
        return f"{self.size} {self.slice_name} {self.data}x{self.model} /{self.micro_batches}"


CASES = (
    Case("small", "v5e:2x2", 4, 1),
    Case("base", "v5e:2x2", 4, 1),
    Case("base", "v4:2x2x1", 8, 1),
    Case("base", "v5p:2x2x1", 4, 1),
    Case("large", "v5e:2x2", 4, 1, 4),
    Case("3b", "v5e:4x4", 1, 16, 16),
    Case("3b", "v4:2x2x2", 1, 16, 16),
    Case("3b", "v5p:2x2x1", 4, 1, 4),
    Case("11b", "v5e:4x4", 1, 16, 16),
    Case("11b", "v5e:8x8", 4, 16, 8),
    Case("11b", "v4:2x2x4", 1, 32, 32),
    Case("11b", "v5p:2x2x1", 1, 4, 8),
    Case("11b", "v5p:2x2x4", 4, 4, 4),
)


def formula_of(case: Case) -> Memory:
    """Return the memory of a core by the formula of `t5repro estimate`."""
    kind = KINDS[case.slice_name.partition(":")[0]]
    return training_memory(
        SIZES[case.size],
        PretrainSettings(batch_size=ROWS, micro_batches=case.micro_batches),
        embedding_rows=PUBLISHED_EMBEDDING_ROWS,
        precision="bfloat16",
        chips=case.data,
        shares=case.model,
        remat="block",
        available=kind.memory / kind.replicas,
    )


def formula_row(case: Case) -> str:
    """Return a line of the table of the formula."""
    memory = formula_of(case)
    verdict = f"yes, with micro_batches {memory.micro_batches}" if memory.micro_batches else "no"
    parts = f"{case.slice_name} | {case.data} x {case.model} | {case.micro_batches}"
    size = f"{memory.needed / GIB:.1f} of {memory.available / GIB:.0f}"
    return f"| {case.size} | {parts} | {size} | {verdict} |"


def report_of(case: Case, blocks: int) -> dict[str, Any]:
    """Return the report of a step with so many blocks in encoder and decoder."""
    model = SIZES[case.size].model_dump()
    settings = {
        "model": {**model, "num_encoder_layers": blocks, "num_decoder_layers": blocks},
        "pretrain": {"batch_size": ROWS, "micro_batches": case.micro_batches},
        "devices": {
            "engine": "jax",
            "kind": "tpu",
            "precision": "bfloat16",
            "remat": "block",
            "mesh": {"data": case.data, "model": case.model},
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        run_file, report = Path(folder, "run.yaml"), Path(folder, "report.json")
        run_file.write_text(json.dumps(settings))
        words = ["stage", "preflight", "--settings", str(run_file), "--slice", case.slice_name]
        command = [sys.executable, "-m", "t5repro", *words, "--report", str(report)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if not report.exists():
            return {"failed": ran.stderr.strip().splitlines()[-1]}
        return json.loads(report.read_text())


def extrapolated(one: dict[str, Any], two: dict[str, Any], blocks: int) -> dict[str, Any]:
    """Return the report of a network from those of one and two blocks."""
    if fault := one.get("failed") or two.get("failed"):
        return {"failed": fault}

    def at(first: float, second: float) -> float:
        return first + (blocks - 1) * (second - first)

    found = {part: at(one[part], two[part]) for part in (*PARTS, "flops_per_core")}
    exchanges = {
        kind: int(at(one["exchanges"].get(kind, 0), two["exchanges"].get(kind, 0)))
        for kind in {**one["exchanges"], **two["exchanges"]}
    }
    return {**found, "exchanges": exchanges, "hbm_bytes": one["hbm_bytes"], "cores": one["cores"]}


def row(name: str, report: dict[str, Any]) -> str:
    """Return a line of the table."""
    if "failed" in report:
        return f"| {name} | failed: {report['failed']} |"
    needed = sum(report[part] for part in PARTS)
    sizes = " | ".join(f"{report[part] / GIB:.2f}" for part in PARTS)
    share = needed / report["hbm_bytes"]
    exchanges = ", ".join(f"{count} {kind}" for kind, count in report["exchanges"].items())
    return (
        f"| {name} | {sizes} | {needed / GIB:.2f} of {report['hbm_bytes'] / GIB:.0f} "
        f"({share:.0%}) | {report['flops_per_core']:.3g} | {exchanges} |"
    )


def main() -> None:
    """Compile what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--formula", action="store_true", help="compile nothing")
    parser.add_argument(
        "--output", type=Path, default=Path("slices.json"), help="JSON file of finished rows"
    )
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--whole", action="store_true", help="compile all blocks too, to compare")
    arguments = parser.parse_args()
    if arguments.formula:
        print("| size | slice | data x model | micro-batches | GiB of a core | fits |")
        print("|---|---|---|---|---|---|")
        print("\n".join(map(formula_row, CASES)))
        return
    done: dict[str, Any] = (
        json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    )
    lines = []
    for case in CASES:
        if arguments.only not in case.name:
            continue
        blocks = SIZES[case.size].num_encoder_layers
        for number in (1, 2, *([blocks] if arguments.whole else [])):
            key = f"{case.name}, {number} blocks"
            if key not in done:
                print(f"compiling {key}", file=sys.stderr, flush=True)
                done[key] = report_of(case, number)
                arguments.output.write_text(json.dumps(done, indent=1))
        one, two = (done[f"{case.name}, {number} blocks"] for number in (1, 2))
        lines.append(row(case.name, extrapolated(one, two, blocks)))
        if arguments.whole:
            lines.append(row(f"{case.name}, compiled whole", done[f"{case.name}, {blocks} blocks"]))
    heads = ("size, slice, data x model", "arguments", "outputs", "temporaries", "program")
    columns = [*heads, "GiB of a core", "FLOPs of a core", "exchanges"]
    print("\n".join([f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *lines]))


if __name__ == "__main__":
    main()
