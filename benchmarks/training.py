"""One training step against Hugging Face and keras-hub, one process each, in one run.

    make parity && python benchmarks/training.py --shapes tiny small

Everybody trains the same shape on the same made-up ids, full rows, dropout 0.1, float32, with
Adafactor and two threads: ours as the stage does (`t5repro.train.fresh_model` under `fit`),
Hugging Face eager with its Adafactor, keras-hub's backbone with Keras's Adafactor under `fit`. The
first steps, which compile, are not counted. The machine's matrix product is measured as well.
Everybody uses the processor's widest instructions; ours is measured with the default, AVX2, too,
and on JAX, in the environment that `make parity` makes for it.
"""

import argparse
import sys
from pathlib import Path
from statistics import median

import interleaved_runs as runs

PEERS = Path(__file__).parent / "peers"
ROOT = Path(__file__).resolve().parents[1]
SHAPES = ("tiny", "small")
PROGRAMS = {
    "t5repro": ("training_ours", "native", "tensorflow"),
    "t5repro, AVX2": ("training_ours", "avx2", "tensorflow"),
    "t5repro on JAX": ("training_ours", "native", "jax"),
    "t5repro on JAX, AVX2": ("training_ours", "avx2", "jax"),
    "Hugging Face eager": ("training_huggingface",),
    "keras-hub fit": ("training_keras_hub",),
    "matrix product": ("training_product",),
}


def main() -> None:
    """Run the chosen shapes and print a table for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12, help="timed steps of a process")
    parser.add_argument(
        "--before", type=Path, help="checkout of an earlier commit, measured in the same rounds"
    )
    arguments = parser.parse_args()
    print(f"medians of {arguments.rounds} rounds of {arguments.steps} steps; {runs.machine()}\n")
    for shape in arguments.shapes:
        commands = {
            name: [
                str(ROOT / ".venv-jax/bin/python") if "jax" in more else sys.executable,
                *(str(PEERS / f"{file}.py"), shape, str(arguments.steps), *more),
            ]
            for name, (file, *more) in PROGRAMS.items()
        }
        if arguments.before:
            code = f"PYTHONPATH={arguments.before.resolve() / 'src'}"
            commands["t5repro before, AVX2"] = ["env", code, *commands["t5repro, AVX2"]]
        print(rows(shape, runs.rounds(commands, arguments.rounds)), end="\n\n", flush=True)


def rows(shape: str, results_by_program: dict[str, list[runs.Result]]) -> str:
    """Return the table of one shape."""
    product = results_by_program.pop("matrix product")
    peak = product[0]["flops"] / runs.seconds(product)
    cells = []
    for name, results in results_by_program.items():
        spent = runs.seconds(results)
        speed = results[0]["flops"] / spent
        cells.append(
            f"| {name} | {spent:.3f} | {results[0]['tokens'] / spent:,.0f} | {speed / 1e9:.0f} "
            f"| {speed / peak:.0%} | {runs.ratio(results, results_by_program['t5repro']):.2f} "
            f"| {median(result['processor'] for result in results):.2f} "
            f"| {max(result['others'] for result in results):.2f} |"
        )
    head = (
        f"| {shape} | s a step | tokens/s | GFLOP/s | of {peak / 1e9:.0f} | time to ours "
        "| processor s a step | cores others used at most |"
    )
    return "\n".join([head, "|---" * 8 + "|", *cells])


if __name__ == "__main__":
    main()
