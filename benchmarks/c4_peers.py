"""C4 against its peers on one WET file, one process each, in one run.

    python -m venv PEERS && PEERS/bin/pip install -r benchmarks/peers/requirements.txt
    python benchmarks/c4_peers.py --peers PEERS/bin/python \
        --wet FILE --punkt FOLDER/punkt_tab/english --bad-words FOLDER/en.25e679f

Peers run in a separate environment. Imports and the loading of word and language tables are not
counted for any of them. TFDS's functions are called as its own pipeline calls them.
"""

import argparse
import sys
from pathlib import Path

import interleaved_runs as runs

PEERS = Path(__file__).parent / "peers"
# step -> program, and whether it runs in the environment of the peers
STEPS = {
    "read": {
        "t5repro": "c4_ours",
        "FastWARC": "c4_fastwarc",
        "igzip alone": "c4_decompress",
        "TFDS": "c4_tfds",
    },
    "clean": {"t5repro": "c4_ours", "TFDS": "c4_tfds", "datatrove": "c4_datatrove"},
    "chain": {"t5repro": "c4_ours", "TFDS": "c4_tfds", "datatrove": "c4_datatrove"},
}


def main() -> None:
    """Run the selected steps and print a table for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peers", required=True, help="Python of the peers' environment")
    parser.add_argument("--wet", type=Path, required=True)
    parser.add_argument("--punkt", type=Path, required=True)
    parser.add_argument("--bad-words", type=Path, required=True)
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    files = [str(options.wet), str(options.punkt), str(options.bad_words)]
    print(
        f"{options.wet.name}, one process, medians of {options.rounds} rounds; {runs.machine()}\n"
    )
    for step in options.steps:
        commands = {}
        for name, program in STEPS[step].items():
            python = sys.executable if name == "t5repro" else options.peers
            commands[name] = [python, str(PEERS / f"{program}.py"), step, *files]
        print(rows(step, runs.rounds(commands, options.rounds)), end="\n\n", flush=True)


def rows(step: str, results_by_name: dict[str, list[runs.Result]]) -> str:
    """Return the table of one step."""
    reference = results_by_name["t5repro"]
    cells = []
    for name, results in results_by_name.items():
        first = results[0]
        seconds = runs.seconds(results)
        speed = f"{first['pages'] / seconds:,.0f}" if "pages" in first else "-"
        kept_pages = str(first.get("kept", "-"))
        times = f"{runs.ratio(results, reference):.2f}"
        cells.append([name, f"{seconds:.3f}", speed, kept_pages, times])
    return runs.table([step, "seconds", "pages/s", "kept", "times ours"], cells)


if __name__ == "__main__":
    main()
