"""Execute a notebook and write it with its outputs: execute.py NOTEBOOK OUTPUT.

The kernel is the running interpreter, and its folder is that of the notebook.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def main(source: Path, output: Path) -> None:
    """Execute a notebook; a cell that fails ends it."""
    notebook = nbformat.read(source, as_version=nbformat.NO_CONVERT)
    resources = {"metadata": {"path": str(source.parent)}}
    NotebookClient(notebook, kernel_name="python3", resources=resources).execute()
    output.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, output)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
