"""Make the bundled mini crawl and mini tasks, byte for byte the same on every machine.

Run ``python examples/mini/generate.py``; ``--output`` names another folder. Standard library only.
"""

import argparse
import hashlib
from pathlib import Path

from crawl import crawl_files
from dice import Dice
from tasks_choice import choice_files
from tasks_text import text_files

ORIGIN = "written for t5repro by examples/mini/generate.py; synthetic"
LICENCE = "Apache-2.0"
INVENTORY = "inventory.yaml"
RAW = "raw"  # with nothing else in it: data.dvc is a copy of the folder


def raw_files() -> dict[str, bytes]:
    """Return path -> bytes of every raw file, in the order of their paths."""
    texts = choice_files() | text_files()
    held_out = {
        line
        for path, text in texts.items()
        if path.startswith("tasks/wmt/") and "/validation." in path
        for line in text.splitlines()
    }
    files = {path: text.encode() for path, text in texts.items()}
    files |= crawl_files(frozenset(held_out))
    return dict(sorted(files.items()))


def inventory(files: dict[str, bytes]) -> str:
    """Return the list that a run file holds under `data.sources`."""
    lines = [f"- origin: '{ORIGIN}'", f"  licence: {LICENCE}", "  files:"]
    lines += [f"    {path}: {hashlib.sha256(data).hexdigest()}" for path, data in files.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write everything below the output folder."""
    parser = argparse.ArgumentParser(description="make the bundled mini crawl and mini tasks")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, metavar="FOLDER")
    parser.add_argument("--seed", default=Dice.seed, help="name of another draw of all files")
    arguments = parser.parse_args()
    folder, Dice.seed = arguments.output, arguments.seed
    files = raw_files()
    for path, data in files.items():
        target = folder / RAW / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    (folder / INVENTORY).write_text(inventory(files), encoding="utf-8", newline="\n")
    print(f"{len(files)} files, {sum(map(len, files.values())):,} bytes, below {folder}")


if __name__ == "__main__":
    main()
