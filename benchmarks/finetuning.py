"""Multi-task fine-tuning on real examples against Hugging Face, one process each, in one run.

    make parity && python benchmarks/finetuning.py --data FOLDER/tasks --shapes tiny small

Both train the same shape on the examples of `glue_data` mixed by their numbers, with Adafactor,
dropout 0.1, float32 and two threads, and are measured in examples a second. Ours packs them into
rows of 512 inputs and 114 targets; Hugging Face pads each batch of 64 random examples to its
longest inputs and targets, as its collator does. Text is tokenised before the clock starts. The
first steps, which compile, are not counted.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import glue_data
import interleaved_runs as runs

PEERS = Path(__file__).parent / "peers"
SHAPES = ("tiny", "small")
PROGRAMS = {
    "t5repro, packed": ("finetuning_ours", "native"),
    "t5repro, packed, AVX2": ("finetuning_ours", "avx2"),
    "Hugging Face, dynamic padding": ("finetuning_huggingface",),
}
STEPS = {"tiny": (8, 12), "small": (2, 1)}  # timed: ours, Hugging Face


def main() -> None:
    """Run the chosen shapes and print a table for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with glue/ and superglue/")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        glue_data.write_ids(glue_data.prepare(arguments.data, folder), folder)
        print(f"medians of {arguments.rounds} rounds; {runs.machine()}")
        print(f"real examples: {glue_data.describe(folder / 'examples.npz')}\n", flush=True)
        for shape in arguments.shapes:
            print(rows(shape, folder, arguments.rounds), end="\n\n", flush=True)


def rows(shape: str, folder: Path, rounds: int) -> str:
    """Measure one shape and return its table."""
    commands = {
        name: [
            sys.executable,
            str(PEERS / f"{file}.py"),
            shape,
            str(STEPS[shape]["huggingface" in file]),
            str(folder),
            *more,
        ]
        for name, (file, *more) in PROGRAMS.items()
    }
    results_by_program = runs.rounds(commands, rounds)
    reference = results_by_program["t5repro, packed"]
    head = [
        shape,
        "examples/s",
        "examples a step",
        "inputs filled",
        "time an example to ours",
        "cores others used at most",
    ]
    cells = [
        [
            name,
            f"{1 / runs.seconds(results):,.1f}",
            f"{results[0]['examples_a_step']:.0f}",
            f"{results[0]['fill']:.1%}",
            f"{runs.ratio(results, reference):.2f}",
            f"{max(result['others'] for result in results):.2f}",
        ]
        for name, results in results_by_program.items()
    ]
    return runs.table(head, cells)


if __name__ == "__main__":
    main()
