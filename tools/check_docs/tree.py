"""The names that exist in a checkout."""

import argparse
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from t5repro.cli import main
from t5repro.config.presets.table import names
from t5repro.config.setting_names import leaves

PLACEHOLDER = re.compile(
    r"<[^<>]*>|\{[^{}]*\}|…|\.\.\.|\*+|\b[A-Z][A-Z_]*\b(?!\.md)"
)  # PATH, {run}

Missing = tuple[str, str, Iterable[str]]  # kind of name, name, existing names of this kind


@dataclass(frozen=True)
class Tree:
    """The names that exist."""

    root: Path
    files: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, root: Path) -> "Tree":
        """Read the names of a checkout: tracked files, and new ones that git does not ignore."""
        listing = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
        names = (name for name in listing.stdout.split("\0") if name)
        return cls(root, frozenset(name for name in names if (root / name).exists()))

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder with a file."""
        return frozenset(str(parent) for name in self.files for parent in Path(name).parents)

    @cached_property
    def top(self) -> frozenset[str]:
        """Folders of the root."""
        return frozenset(name.partition("/")[0] for name in self.files if "/" in name)

    @cached_property
    def packages(self) -> frozenset[str]:
        """Folders of `src/t5repro`."""
        names = (name.split("/") for name in self.files if name.startswith("src/t5repro/"))
        return frozenset(parts[2] for parts in names if len(parts) > 3)

    @cached_property
    def presets(self) -> frozenset[str]:
        """Every preset as `group/name`."""
        return frozenset(names())

    @cached_property
    def modules(self) -> frozenset[str]:
        """Every module as `package.module`."""
        names = (name.removeprefix("src/t5repro/") for name in self.files if name[:3] == "src")
        return frozenset(
            name.removesuffix(".py").replace("/", ".") for name in names if name.endswith(".py")
        )

    @cached_property
    def base_names(self) -> frozenset[str]:
        """Every file without its folder."""
        return frozenset(Path(name).name for name in self.files)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Every setting and section, with the field of a setting."""
        fields: dict[str, Any] = dict(leaves())
        for name in tuple(fields):
            while "." in name:
                name = name.rpartition(".")[0]
                fields.setdefault(name, None)
        return fields

    @cached_property
    def rules(self) -> frozenset[str]:
        """Rules of the graph, with the stages of `stage_<rule>`."""
        texts = [self.text(name) for name in self.files if name.endswith((".smk", "Snakefile"))]
        pattern = r"^(?: *rule |.* in forms_of\(\")(\w+)"
        names = {name for text in texts for name in re.findall(pattern, text, re.M)}
        return frozenset(names | {f"stage_{name}" for name in names} | {"tasks"})

    @cached_property
    def experiments(self) -> frozenset[str]:
        """Experiments of the run files: they name nodes."""
        names = {"baseline"}
        for path in self.files:
            if fnmatchcase(path, "configs/*.yaml"):
                names |= set(re.findall(r"\bname: (\w+)", self.text(path)))
        return frozenset(names)

    @cached_property
    def make(self) -> tuple[frozenset[str], frozenset[str]]:
        """Targets and variables of the Makefile."""
        text = self.text("Makefile")
        targets = frozenset(re.findall(r"^([a-z][\w-]*):(?!=)", text, re.M))
        return targets, frozenset(re.findall(r"^(?:export )?(\w+) *[?:]?=", text, re.M))

    @cached_property
    def parser(self) -> argparse.ArgumentParser:
        """The command line of `t5repro`."""
        return main.parser()

    @cached_property
    def snakemake_options(self) -> frozenset[str]:
        """Options of `snakemake`."""
        from snakemake.cli import get_argument_parser  # takes a second to import

        return frozenset(get_argument_parser()._option_string_actions)

    @cached_property
    def tests(self) -> frozenset[str]:
        """Every test function."""
        texts = [self.text(name) for name in self.files if fnmatchcase(name, "tests/*.py")]
        return frozenset(name for text in texts for name in re.findall(r"\bdef (test_\w+)", text))

    def text(self, path: str) -> str:
        """Read a file of the tree."""
        return (self.root / path).read_text(encoding="utf-8")

    def module(self, dotted: str) -> bool:
        """Tell whether a dotted name is a module, or a top-level name of one."""
        *folders, last = dotted.split(".")
        path = f"src/{'/'.join([*folders, last])}"
        if f"{path}.py" in self.files or path in self.folders:
            return True
        parent = f"src/{'/'.join(folders)}"
        candidates = (f"{parent}.py", f"{parent}/__init__.py", f"{parent}/__init__.pyi")
        sources = [path for path in candidates if path in self.files]
        if not sources:  # a method: its class is a name of the module
            return len(folders) > 2 and self.module(".".join(folders))
        name = re.escape(last)
        # A stub offers names with `import NAME as NAME`.
        bound = rf"^(?:async )?(?:def|class) {name}\b|^{name}\b *[:=]|import {name} as {name}$"
        return any(re.search(bound, self.text(path), re.M) for path in sources)


def matches(names: Iterable[str], pattern: str) -> bool:
    """Tell whether a name matches a pattern with `*` and placeholders."""
    glob = PLACEHOLDER.sub("*", pattern)
    return any(fnmatchcase(name, glob) for name in names)
