"""What a file imports is what pyproject.toml declares: the package, an extra of it, or `dev`."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from checkout import ROOT
from packaging.requirements import Requirement

from t5repro.errors import PackageError, packages_of

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
    ("src/t5repro/inference/run.py", ("tables",)),
    ("src/t5repro/model/keras_hub_presets.py", ("exchange",)),
    ("src/t5repro/publish/keras_hub.py", ("exchange",)),
    ("src/t5repro/publish/saved_model.py", ("cpu", "serve")),
    ("src/t5repro/hub/signature.py", ("signing",)),
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
    ("tests/**/*.py", ("cpu", "dev", "parity", "jax", "signing", "t5x")),
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


def guarded_imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (extra, module) of the imports below `packages_of(extra)`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        call = node.items[0].context_expr if isinstance(node, ast.With) else None
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "packages_of":
            (extra,) = map(ast.literal_eval, call.args)
            for inner in ast.walk(node):
                if isinstance(inner, ast.Import):
                    yield from ((extra, module.name) for module in inner.names)


def test_an_absent_package_is_named_with_the_extra_that_has_it() -> None:
    guarded = {pair for path in ROOT.glob("src/**/*.py") for pair in guarded_imports(path)}
    assert {extra for extra, _ in guarded} == {"cpu", "exchange", "serve", "t5x", "tables"}
    for extra, module in guarded:
        assert distributions_of(module) & declared(extra), module
    message = r"no_such_package is not installed; .* pip install 't5repro\[tables\]'"
    with pytest.raises(PackageError, match=message), packages_of("tables"):
        import_module("no_such_package")


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
    packages = {name for name, _ in run}
    assert declared("") | declared("runtime") <= packages
    # One package apart: the same release of TensorFlow, without the kernels of GPUs.
    (without_cuda,) = [entry for entry in run if entry[0] == "tensorflow-cpu"]
    assert ("tensorflow", without_cuda[1]) in whole
    del run[without_cuda]
    assert all(whole[entry] == hashes for entry, hashes in run.items())
    assert run.items() <= locked("cuda").items()
    optional = declared("exchange") | declared("serve") | declared("tables")
    assert optional <= {name for name, _ in whole} - packages
    tools = {"pyspark", "ruff", "mypy", "pytest", "moto", "mlcroissant", "cyclonedx-python-lib"}
    assert tools <= {name for name, _ in whole} - packages
