"""Decoding against Hugging Face and keras-hub on one CPU, one process each, in one run.

    make parity
    .venv/bin/python benchmarks/decoding.py --shapes tiny small --searches greedy beam

Batch 32 (`--rows`), inputs of 128 ids without padding, 64 new ids (`--steps`), random weights,
float32; the end is made impossible, so nobody stops early. The peers use the processor's widest
instructions, and so do we unless told otherwise. The first call compiles and is not counted; of the
calls after it the fastest is, since what disturbs a process only ever makes it slower. keras-hub's
beam search is left out unless named: it takes minutes to compile and run.
"""

import argparse
import json
import sys
from pathlib import Path
from statistics import median

import interleaved_runs as runs

PEERS = Path(__file__).parent / "peers"
PROGRAMS = {
    "t5repro": "decode_ours",
    "Hugging Face": "decode_huggingface",
    "keras-hub": "decode_hub",
}
SHAPES = {
    "tiny": {"layers": 3, "d_model": 192, "d_ff": 768, "num_heads": 3, "d_kv": 64, "ids": 4096},
    "small": {"layers": 6, "d_model": 512, "d_ff": 2048, "num_heads": 8, "d_kv": 64, "ids": 32128},
}
SEARCHES = {"greedy": 1, "beam": 4}
ROWS = 32
TASK = {"inputs": 128}


def main() -> None:
    """Run the chosen shapes and searches and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    parser.add_argument("--peers", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=3, help="calls in a process, after the first")
    parser.add_argument("--rows", type=int, default=ROWS, help="of a batch")
    parser.add_argument("--steps", type=int, default=64, help="ids that each row gets")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--instruction-set", choices=("native", "avx2"), default="native")
    parser.add_argument("--hub-beam", action="store_true", help="keras-hub's beam search as well")
    arguments = parser.parse_args()
    rows = []
    for search in arguments.searches:
        for shape in arguments.shapes:
            task = {
                **TASK,
                "rows": arguments.rows,
                **SHAPES[shape],
                "width": SEARCHES[search],
                "steps": arguments.steps,
                "calls": arguments.calls,
                "threads": arguments.threads,
                "instruction_set": arguments.instruction_set,
            }
            commands = {
                peer: [sys.executable, str(PEERS / f"{PROGRAMS[peer]}.py"), json.dumps(task)]
                for peer in arguments.peers
                if peer != "keras-hub" or search == "greedy" or arguments.hub_beam
            }
            rounds_by_peer = runs.rounds(commands, arguments.rounds)
            for peer, results in rounds_by_peer.items():
                times = runs.ratio(results, rounds_by_peer["t5repro"])
                new = arguments.rows * arguments.steps / runs.seconds(results)
                rows.append(
                    [
                        f"{search}, {shape}",
                        peer,
                        f"{runs.seconds(results):.3f}",
                        f"{new:,.0f}",
                        f"{times:.2f}",
                        f"{median(result['processor'] for result in results):.2f}",
                        f"{max(result['others'] for result in results):.2f}",
                    ]
                )
    print(runs.machine(), end="\n\n")
    head = [
        "task",
        "library",
        "seconds",
        "ids/s",
        "time / t5repro's",
        "processor seconds",
        "most cores used by other processes",
    ]
    print(runs.table(head, rows))


if __name__ == "__main__":
    main()
