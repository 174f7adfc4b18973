"""A step of each system before T5 against Hugging Face, one process each.

    make parity && python benchmarks/encoders.py --size mini

Both train the same shape on the same made-up rows of 128 ids, 20 of them predicted, by GPT all,
dropout 0.1, float32, with AdamW and two threads: ours as the stage does
(`t5repro.train.fresh_model` under `fit`), Hugging Face eager. Its encoders compute the logits of
all positions; ours only of the predicted ones, as the released code of BERT does. It has no class
of SpanBERT's boundary objective, StructBERT's pairs and ELECTRA's joint step:
`peers/encoders_huggingface.py` adds them to its networks. XLNet has its memory in both. MT-DNN's
pre-training is BERT's. The first steps, which compile, are not counted.
"""

import argparse
import sys
from pathlib import Path
from statistics import median

import interleaved_runs as runs

PEERS = Path(__file__).parent / "peers"
SYSTEMS = ("bert", "roberta", "albert", "spanbert", "structbert", "electra", "xlnet", "gpt")
PROGRAMS = {
    "t5repro": ("encoders_ours", "native"),
    "t5repro, AVX2": ("encoders_ours", "avx2"),
    "Hugging Face eager": ("encoders_huggingface",),
}


def main() -> None:
    """Run the chosen systems and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--size", default="mini", help="tiny, mini or base")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12, help="timed steps of a process")
    arguments = parser.parse_args()
    print(f"medians of {arguments.rounds} rounds of {arguments.steps} steps; {runs.machine()}\n")
    print(
        "| system | program | s a step | tokens/s | GFLOP/s | time to ours |",
        "|---" * 6 + "|",
        sep="\n",
    )
    for system in arguments.systems:
        commands = {
            name: [sys.executable, str(PEERS / f"{file}.py"), system, arguments.size,
                   str(arguments.steps), *more]
            for name, (file, *more) in PROGRAMS.items()
        }  # fmt: skip
        print_rows(system, runs.rounds(commands, arguments.rounds))


def print_rows(system: str, results_by_program: dict[str, list[runs.Result]]) -> None:
    """Print the rows of one system."""
    for name, results in results_by_program.items():
        spent = median(result["seconds"] for result in results)
        print(
            f"| {system} | {name} | {spent:.3f} | {results[0]['tokens'] / spent:,.0f} "
            f"| {results[0]['flops'] / spent / 1e9:.0f} "
            f"| {runs.ratio(results, results_by_program['t5repro']):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
