"""Training steps and decoding on one NVIDIA GPU, on JAX, against Hugging Face on the same card.

    python benchmarks/accelerator.py

Needs JAX with CUDA, Keras, PyTorch and transformers; no TensorFlow, data or vocabulary. Every part
is a process of its own. The parts of a group compile at the same time, and share the card's memory;
then each measures alone, in turn. A part that fails or is not ready in time is a row that says so.
Rows are full of made-up ids; batches change from step to step. `--rehearse` runs every part with a
tiny network, on whatever device there is.
"""

import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PEERS = Path(__file__).parent / "peers"
SOURCE = Path(__file__).parents[1] / "src"  # need not be installed
PEAK = 989e12  # dense bfloat16 operations a second of an H100, by its data sheet
OURS, THEIRS = "accelerator_ours", "accelerator_huggingface"


@dataclass
class Part:
    """One row of the table.

    Attributes:
        name: of the row.
        program: in `peers`, without its suffix.
        work: what is measured: ``train``, ``greedy``, ``beam`` or ``product``.
        shape: of the network, see `accelerator_shapes`.
        rows: of a batch.
        options: further arguments of the program, such as ``fused`` or ``eager``.
        against: name of the part whose speed this one's is divided by.
    """

    name: str
    program: str
    work: str
    shape: str = "base"
    rows: int = 64
    options: tuple[str, ...] = ()
    against: str = ""
    result: dict[str, Any] = field(default_factory=dict)


# The memory of a group fits 80 GB.
GROUPS = (
    (
        Part("matrix product 8192", "accelerator_product", "product"),
        Part("base, compiled, SDPA", THEIRS, "train", rows=64),
        Part("base, greedy", THEIRS, "greedy"),
        Part("base, greedy, static cache", THEIRS, "greedy", options=("static",)),
        Part("base, beam of 4", THEIRS, "beam", rows=16),
        Part("base, greedy, ours", OURS, "greedy", against="base, greedy"),
        Part("base, beam of 4, ours", OURS, "beam", rows=16, against="base, beam of 4"),
    ),
    (
        Part("base, ours, fused", OURS, "train", "base", 128, ("fused",), "base, compiled, SDPA"),
        Part("base, ours, fused, no dropout", OURS, "train", "base", 64, ("fused", "no_dropout")),
    ),
    (
        Part("base, ours, plain", OURS, "train", "base", 64, (), "base, compiled, SDPA"),
        Part("large, ours, fused", OURS, "train", "large", 32, ("fused",)),
    ),
    (
        Part("small, compiled, SDPA", THEIRS, "train", "small", 64),
        Part("small, ours, fused", OURS, "train", "small", 64, ("fused",), "small, compiled, SDPA"),
    ),
)


def main() -> None:
    """Run all groups and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=20, help="timed steps of a training")
    parser.add_argument("--seconds", type=float, default=150, help="a group's time to get ready")
    parser.add_argument(
        "--logs",
        type=Path,
        help="folder for what the programs print to stderr; default: a temporary one",
    )
    parser.add_argument("--parts", nargs="+", metavar="NAME", help="only these rows of the table")
    parser.add_argument("--rehearse", action="store_true", help="tiny networks, a few steps")
    arguments = parser.parse_args()
    logs = arguments.logs or Path(tempfile.mkdtemp(prefix="accelerator-"))
    print(f"{arguments.steps} steps after 3 of warm-up; {card()}\n", flush=True)
    groups = chosen(arguments.parts)
    parts = [part for group in groups for part in group]
    for group in groups:
        if arguments.rehearse:
            for part in group:
                part.shape, part.rows = "tiny", 4
        run_group(group, arguments.steps, arguments.seconds, logs)
        print(table(parts), end="\n\n", flush=True)  # what is measured is safe


def chosen(names: list[str] | None) -> list[tuple[Part, ...]]:
    """Return the groups with parts of these names, or all; refuse a name that no part has."""
    known = {part.name for group in GROUPS for part in group}
    if wrong := sorted(set(names or ()) - known):
        sys.exit(f"--parts: no part is named {wrong}; there are {sorted(known)}")
    groups = [tuple(part for part in group if not names or part.name in names) for group in GROUPS]
    return [group for group in groups if group]


def run_group(group: tuple[Part, ...], steps: int, seconds: float, logs: Path) -> None:
    """Start all parts, wait until they are ready, and let one after the other measure."""
    deadline = time.monotonic() + seconds
    processes = [(part, Process(part, steps, logs)) for part in group]
    ready = []
    for part, process in processes:
        line = process.line(max(0.1, deadline - time.monotonic()))
        if line == "ready":
            ready.append((part, process))
        else:
            part.result = {"failed": "not ready in time" if line is None else process.why()}
            process.stop()
    for part, process in ready:
        process.go()
        line = process.line(120)
        part.result = json.loads(line) if line else {"failed": process.why()}
        print(f"{part.name}: {json.dumps(part.result)}", file=sys.stderr, flush=True)
        process.stop()


class Process:
    """A program that says ``ready``, waits for a line, and prints its result."""

    def __init__(self, part: Part, steps: int, logs: Path) -> None:
        name = part.name.replace(", ", "_").replace(" ", "_")
        self.log = logs / f"accelerator_{name}.log"
        command = [sys.executable, str(PEERS / f"{part.program}.py")]
        command += [part.shape, str(part.rows), part.work, str(steps), *part.options]
        paths = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
            )
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            if line.startswith(("ready", "{")):
                self.lines.put(line.strip())
        self.lines.put("")

    def line(self, seconds: float) -> str | None:
        """Return the next line, "" at the end of the output, nothing after so many seconds."""
        try:
            return self.lines.get(timeout=seconds)
        except queue.Empty:
            return None

    def go(self) -> None:
        """Let it measure."""
        if self.process.stdin:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()

    def why(self) -> str:
        """Return the last line that it printed about its end."""
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines()]
        return next((line[:160] for line in reversed(lines) if "rror" in line), "no reason given")

    def stop(self) -> None:
        """End it and free its memory."""
        self.process.kill()
        self.process.wait()


def card() -> str:
    """Return the card, its driver and its clock."""
    query = "--query-gpu=name,driver_version,clocks.sm,clocks.max.sm"
    try:
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True
        )
    except FileNotFoundError:
        return f"no GPU, {os.cpu_count()} cores"
    return done.stdout.strip() or "no GPU"


def table(parts: list[Part]) -> str:
    """Return the rows measured so far, as Markdown."""
    by_name = {part.name: part.result for part in parts}
    lines = [
        "| part | rows | s | positions/s | TFLOP/s | of 989 | peak GB | compiled in s | speed to |",
        "|---" * 9 + "|",
    ]
    for part in parts:
        result = part.result
        if not result:
            continue
        if "failed" in result:
            lines.append(f"| {part.name} | {part.rows} | failed: {result['failed']} |||||||")
            continue
        rate = result.get("positions", 0) / result["seconds"]
        flops = result.get("flops", 0) / result["seconds"]
        other = by_name.get(part.against, {})
        ratio = (
            f"{rate / (other['positions'] / other['seconds']):.2f} x {part.against}"
            if "positions" in other
            else ""
        )
        lines.append(
            f"| {part.name} | {part.rows} | {result['seconds']:.4f} | {rate:,.0f} "
            f"| {flops / 1e12:.1f} | {flops / PEAK:.1%} | {result.get('gigabytes', 0):.1f} "
            f"| {result['ready']:.0f} | {ratio} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
