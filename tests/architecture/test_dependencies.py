"""What a file imports is what pyproject.toml declares: the package, an extra of it, or `dev`."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

from checkout import ROOT
from packaging.requirements import Requirement

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
SIGNING = ("envelopes", "keys", "signers")
# Files -> extras that their imports may come from, besides the dependencies of the package. The
# first pattern that a file matches counts.
ALLOWED = (
    ("src/t5repro/c4/spark/*.py", ("spark",)),
    ("src/t5repro/export/*.py", ("export",)),
    *((f"src/t5repro/lineage/{name}.py", ("export",)) for name in SIGNING),
    ("src/t5repro/audit/suffix_build.py", ("trace",)),
    ("src/t5repro/model/t5x_checkpoint.py", ("cpu", "t5x")),
    ("src/t5repro/train/tpu_compiler.py", ("cpu", "preflight")),
    ("src/t5repro/engines/jax_engine.py", ("cpu", "jax")),
    ("src/t5repro/engines/mesh.py", ("cpu", "jax")),
    ("src/t5repro/model/fused_attention.py", ("cpu", "jax")),
    ("src/t5repro/model/recomputation.py", ("cpu", "jax")),
    ("src/t5repro/train/event_file.py", ("cpu", "jax")),  # TensorFlow brings TensorBoard
    ("src/t5repro/train/jax_step.py", ("cpu", "jax")),
    ("src/t5repro/train/slice_step.py", ("cpu", "jax")),
    ("src/t5repro/**/*.py", ("cpu",)),
    ("workflow/rules/*.smk", ()),
    ("Snakefile", ()),
    ("tools/site_pages.py", ("docs",)),
    ("tools/**/*.py", ()),
    ("setup.py", ()),
    ("tests/browser/*.py", ("cpu", "dev", "browser")),
    ("tests/**/*.py", ("cpu", "dev", "parity", "jax", "t5x")),
)
OWN = {"t5repro"}
INSTALLED = packages_distributions()  # takes half a second


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def declared(extra: str) -> frozenset[str]:
    """Return the distributions of an extra; those of the package if it is empty."""
    names: set[str] = set()
    for line in EXTRAS[extra] if extra else PROJECT["dependencies"]:
        requirement = Requirement(line)
        if requirement.name in OWN:
            names.update(*(declared(own) for own in requirement.extras))
        names.add(normalized(requirement.name))
    return frozenset(names)


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(python_of(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def python_of(path: Path) -> str:
    """Return the Python of a file: all of it, or the import lines of a rule file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text
    return "\n".join(re.findall(r"^(?:import|from \S+ import) [\w., ]+$", text, re.MULTILINE))


@cache
def distributions_of(module: str) -> frozenset[str]:
    """Return the distributions that have a module; its own name if none is installed."""
    top = module.partition(".")[0]
    names = set(INSTALLED.get(top, [top]))
    if len(names) > 1:  # a namespace: `google.protobuf` is not in all of them
        folder = module.replace(".", "/")
        names = {name for name in names if has_file_in(name, folder)}
    return frozenset(map(normalized, names))


def has_file_in(name: str, folder: str) -> bool:
    files = map(str, distribution(name).files or ())
    return any(file == f"{folder}.py" or file.startswith(f"{folder}/") for file in files)


def is_foreign(module: str, path: Path) -> bool:
    """Return whether a module is neither Python's, nor of this repository."""
    top = module.partition(".")[0]
    helpers = {path.parent, ROOT / "tests/support", ROOT / "tools", ROOT / "benchmarks"}
    helpers |= {ROOT / "benchmarks/peers", ROOT / "examples/mini"}
    is_own = any((folder / f"{top}.py").exists() or (folder / top).is_dir() for folder in helpers)
    return top not in sys.stdlib_module_names and top not in OWN and not is_own


def undeclared(path: Path, extras: tuple[str, ...]) -> list[str]:
    names = declared("").union(*map(declared, extras))
    return [
        module
        for module in sorted(set(imported_modules(path)))
        if is_foreign(module, path) and not distributions_of(module) & names
    ]


def test_every_import_is_declared() -> None:
    seen: dict[Path, tuple[str, ...]] = {}
    for pattern, extras in ALLOWED:
        for path in ROOT.glob(pattern):
            seen.setdefault(path, extras)
    assert len(seen) > 400
    faults = {
        path.relative_to(ROOT).as_posix(): modules
        for path, extras in seen.items()
        if (modules := undeclared(path, extras))
    }
    assert not faults, "\n".join(f"{path}: {names}" for path, names in faults.items())


def locked(name: str) -> dict[tuple[str, str], set[str]]:
    """Return (package, version) -> hashes of a lock."""
    text = (ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8")
    entries = re.findall(r"^([\w.-]+)==(\S+).*\\\n((?:    --hash=.+\n)+)", text, re.MULTILINE)
    return {
        (package, version): set(re.findall(r"sha256:\w+", hashes))
        for package, version, hashes in entries
    }


def test_the_lock_of_a_run_has_the_versions_of_the_whole_lock() -> None:
    run, whole = locked("runtime"), locked("cpu-gpu")
    assert all(whole[entry] == hashes for entry, hashes in run.items())
    packages = {name for name, _ in run}
    assert declared("") | declared("cpu") <= packages
    assert run.items() <= locked("cuda").items()
    tools = {"pyspark", "ruff", "mypy", "pytest", "moto", "mlcroissant", "cyclonedx-python-lib"}
    assert tools <= {name for name, _ in whole} - packages
