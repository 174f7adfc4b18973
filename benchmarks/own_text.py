"""From rows of own text to ids, against Hugging Face's datasets and tokenizers.

    python benchmarks/own_text.py --wet FILE --peers VENV/bin/python [--megabytes 2000]

The text is one file of JSON lines: the pages of a WET file again and again, with their lines in
another order each time. Ours are the stages of a run, each job a process with its start: `corpus`,
`c4_dedup` and `c4` write the training and validation split, `tokens` their ids. The peer loads the
file and maps it to ids by a fast tokenizer of the same vocabulary, with as many processes.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import interleaved_runs as runs
import numpy as np

from t5repro.c4.wet.pages import read_pages
from t5repro.files import write_text

PEER = Path(__file__).parent / "peers/own_text_datasets.py"
RUN = "own_text"
IDS = 8000
# Stages that turn the file into both splits; then those that turn these into ids.
TEXT_STAGES, ID_STAGES = ("corpus", "c4_dedup", "c4"), ("tokens",)
RUN_FILE = f"""\
run: {{name: {RUN}}}
data: {{folder: text}}
corpus: {{files: ["*"], text: text, language: en}}
vocab: {{vocab_size: {IDS}, sample_chars: 5000000}}
use: [machines/laptop]
"""


def write_rows(wet: Path, megabytes: int, path: Path) -> int:
    """Write rows of text until the file has a size; return their number."""
    pages = [page.text.split("\n") for page in read_pages(wet) if page.fault is None]
    draw = np.random.default_rng(0)
    rows = 0
    with path.open("w", encoding="utf-8") as handle:
        while handle.tell() < 1e6 * megabytes:
            for lines in pages:
                text = "\n".join(lines[number] for number in draw.permutation(len(lines)))
                handle.write(json.dumps({"text": f"{rows} {text}"}, ensure_ascii=False) + "\n")
                rows += 1
    return rows


def ours(folder: Path) -> dict[str, list[float]]:
    """Run the stages in a new project; return seconds, processor seconds and MB of each."""
    program = ["snakemake", "--profile", "local", "--configfile", "configs/own_text.yaml"]
    command = [*program, "--until", "tokens"]
    subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)
    costs = {}
    for stage in (*TEXT_STAGES, *ID_STAGES):
        rows = [
            row
            for path in sorted((folder / "logs" / RUN / stage).rglob("*.tsv"))
            for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines(), delimiter="\t")
        ]
        costs[stage] = [
            sum(float(row["s"]) for row in rows),
            sum(float(row["cpu_time"]) for row in rows),
            max(float(row["max_rss"]) for row in rows),
        ]
    return costs


def row_of(name: str, rows: int, megabytes: int, cost: list[float]) -> list[str]:
    """Return a row of the table."""
    seconds, processor, memory = cost
    rates = (f"{rows / seconds:,.0f}", f"{megabytes / seconds:.0f}")
    return [name, f"{seconds:.1f}", f"{processor:.1f}", *rates, f"{memory:,.0f}"]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wet", type=Path, required=True)
    parser.add_argument("--peers", required=True, help="Python with peers/requirements.txt")
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["t5repro", "init", name], check=True, stdout=sys.stderr)
        text = folder / "text/rows.jsonl"
        text.parent.mkdir()
        rows = write_rows(options.wet, options.megabytes, text)
        write_text(folder / "configs/own_text.yaml", RUN_FILE)
        costs = ours(folder)
        model = folder / f"results/{RUN}/vocab/baseline/sentencepiece.model"
        peer = [options.peers, str(PEER), str(text), str(model), str(options.processes)]
        ran = subprocess.run(peer, check=True, stdout=subprocess.PIPE, text=True)
    theirs = json.loads(ran.stdout.splitlines()[-1])
    together = {
        "text to splits: t5repro": [costs[stage] for stage in TEXT_STAGES],
        "text to a table: datasets": [theirs["load"]],
        "splits to ids: t5repro": [costs[stage] for stage in ID_STAGES],
        "table to ids: tokenizers": [theirs["map"]],
    }
    print(f"{rows:,} rows, {options.megabytes} MB; {runs.machine()}\n")
    titles = ["", "s", "processor s", "rows/s", "MB/s", "peak memory, MB"]
    table = []
    for part, parts in together.items():
        seconds, processor, memory = zip(*parts, strict=True)
        cost = [sum(seconds), sum(processor), max(memory)]
        table.append(row_of(part, rows, options.megabytes, cost))
    print(runs.table(titles, table))


if __name__ == "__main__":
    main()
