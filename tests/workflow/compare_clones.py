"""Run the demo in two fresh clones, on one core and on two, and compare every artifact.

``python tests/workflow/compare_clones.py [--small] [--keep FOLDER]`` prints each file that
differs and exits 1, or the number of equal files and exits 0. ``make compare`` calls it.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from clones import artifact_hashes, clone, environment, shrink


def main() -> int:
    """Compare two clones; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a few steps instead of the demo")
    parser.add_argument("--keep", type=Path, help="folder for the clones, kept afterwards")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="t5repro-compare-") as temporary:
        base = arguments.keep or Path(temporary)
        folders = [clone(base / "one"), clone(base / "elsewhere/two")]
        for cores, folder in enumerate(folders, start=1):
            if arguments.small:
                shrink(folder)
            run(folder, cores)
        first, second = (artifact_hashes(folder) for folder in folders)
    return report(first, second)


def run(folder: Path, cores: int) -> None:
    """Run the chain in a clone, its output on this terminal."""
    print(f"--- {folder} on {cores} core(s)", flush=True)
    command = ["snakemake", "--profile", "local", "--cores", str(cores), "--quiet", "rules"]
    subprocess.run(command, cwd=folder, env=environment(folder), check=True)


def report(first: dict[str, str], second: dict[str, str]) -> int:
    """Print what differs; return the exit code."""
    differing = sorted(
        path for path in first.keys() | second.keys() if first.get(path) != second.get(path)
    )
    for path in differing:
        print(f"differs: {path} {first.get(path, 'absent')[:12]} {second.get(path, 'absent')[:12]}")
    if not first or differing:
        print(f"{len(differing)} of {len(first)} artifacts differ")
        return 1
    weights = sum(path.endswith(".safetensors") for path in first)
    print(f"all {len(first)} artifacts are byte-identical, {weights} files of weights among them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
