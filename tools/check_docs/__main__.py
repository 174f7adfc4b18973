"""Print every name that does not exist; fail if there is one."""

import difflib
import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from .names import missing
from .snippets import commented_snippets, document_snippets, python_snippets
from .tree import Tree

ROOT = Path(__file__).parents[2]

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "examples/*.md")
CODE = ("src/*.py", "tests/*.py", "benchmarks/*.py", "examples/*.py", "tools/*.py")
COMMENTED = ("configs/*.yaml", "Snakefile", "workflow/*.smk", "pyproject.toml", "local/*", "tpu/*")
GENERATED = ("configs/base.yaml",)  # its comments are the help texts of the settings

# Name -> why it is right although nothing in the tree has it.
ALLOWED = {
    "configs/my_text.yaml": "the run file that the reader of own_text.md writes",
    "OUT/settings.yaml": "written by `weights import` into the folder OUT",
    "workflow/profiles/": "pitfalls.md says why profiles are not there",
    ".dvc/config.local": "DVC's file for settings of one machine, which git ignores",
    "dvc/stage/cache.py": "module of DVC",
    "for_each": "key of a run file, expanded when it is loaded",
    "--local": "option of `dvc remote`",
    "--no-deps": "option of pip",
    "--slurm-status-command": "option of Snakemake's plugin for SLURM, an extra",
    "--slurm-array-jobs": "option of Snakemake's plugin for SLURM, an extra",
    "withdrawn/receipts/ID.intoto.jsonl": "written by `withdraw --list`; its name has the ID",
}


class Fault(NamedTuple):
    """A name that does not exist, and the text that uses it."""

    path: str
    line: int
    kind: str
    name: str
    nearest: str = ""

    def __str__(self) -> str:
        """Print as compilers do: file, line, fault, cure."""
        cure = f"; nearest: {self.nearest!r}" if self.nearest else ""
        return f"{self.path}:{self.line}: no {self.kind} {self.name!r}{cure}"


def check(tree: Tree, path: str, text: str) -> Iterator[Fault]:
    """Yield the faults of the text of one file."""
    if path == "CHANGELOG.md":  # released sections are history
        text = re.split(r"^## \[\d", text, maxsplit=1, flags=re.M)[0]
    if path.endswith(".md"):
        snippets = document_snippets(text)
    elif path.endswith(".py"):
        snippets = python_snippets(text, messages=path.startswith("src/"))
    else:
        snippets = commented_snippets(text)
    for snippet in snippets:
        for kind, name, existing in missing(tree, path, snippet):
            # A command on continued lines is one line of text.
            offset = 0 if snippet.kind == "command" else max(snippet.text.find(name), 0)
            line = snippet.line + snippet.text.count("\n", 0, offset)
            nearest = difflib.get_close_matches(name, sorted(existing), n=1, cutoff=0.5)
            yield Fault(path, line, kind, name, nearest[0] if nearest else "")


def faults(tree: Tree) -> list[str]:
    """Return one line for each name that does not exist, and for each needless allowance."""
    paths = [
        path
        for path in sorted(tree.files)
        if any(fnmatchcase(path, pattern) for pattern in DOCUMENTS + CODE + COMMENTED)
        and path not in GENERATED
    ]
    missing_names = [fault for path in paths for fault in check(tree, path, tree.text(path))]
    used = {fault.name for fault in missing_names}
    return [str(fault) for fault in missing_names if fault.name not in ALLOWED] + [
        f"tools/check_docs/__main__.py: {name!r} is allowed, and no text needs it"
        for name in ALLOWED
        if name not in used
    ]


if __name__ == "__main__":
    lines = faults(Tree.of(ROOT))
    print("\n".join(lines) or "documents: every name exists")
    sys.exit(bool(lines))
