"""Compares this CPU with the CPUs of the reference files by hashes of operations.

A reference is a JSON file next to this module, written on one machine by `write_reference`. The
hashes hold for `devices` with its default values and the versions of the lock file.
"""

import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

from t5repro.config.sections.devices import DevicesSettings
from t5repro.engines.devices import prepare
from t5repro.files import write_text
from t5repro.model.operations import functions, products
from t5repro.model.operations.operation import Operation

FOLDER = Path(__file__).parent
QUICK_MULTIPLY_ADDS = 30_000_000  # of the largest product that runs in milliseconds


@dataclass(frozen=True)
class Reference:
    """The hashes of another machine.

    Attributes:
        cpu: maker, model and cache.
        versions: library -> version.
        hashes: name of an operation -> hash of its result.
    """

    cpu: str
    versions: Mapping[str, str]
    hashes: Mapping[str, str]


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison with one reference.

    Attributes:
        cpu: the CPU of the reference.
        compared: number of operations that both have and that should be equal.
        differing: names of those with other hashes.
        other_versions: library -> version of the reference, where this machine's differs; then
            other hashes say nothing about the CPU.
    """

    cpu: str
    compared: int
    differing: tuple[str, ...]
    other_versions: Mapping[str, str]

    def __str__(self) -> str:
        equal = self.compared - len(self.differing)
        lines = [f"{equal} of {self.compared} operations equal those of {self.cpu}"]
        lines += [f"  differs: {name}" for name in self.differing]
        lines += [f"  its {name} is {version}" for name, version in self.other_versions.items()]
        return "\n".join(lines)


def operations(*, quick: bool = True) -> Iterator[Operation]:
    """Yield all operations, or those that take seconds together."""
    for group in (
        functions.elementwise,
        functions.rows_of_matrices,
        functions.gathers,
        functions.random_numbers,
        functions.arrays,
        products.einsums,
        products.attentions,
        products.products,
    ):
        for operation in group():
            if not quick or operation.multiply_adds <= QUICK_MULTIPLY_ADDS:
                yield operation


def operation_hashes(*, quick: bool = True) -> dict[str, str]:
    """Run the operations on this machine; return name -> hash of the result.

    Raises:
        DeviceError: TensorFlow already runs with other threads than `devices` has by default.
    """
    prepare(DevicesSettings())
    return {operation.name: operation.sha256() for operation in operations(quick=quick)}


def check_machine(*, quick: bool = True) -> list[Comparison]:
    """Run the operations on this machine and compare them with every reference."""
    hashes = operation_hashes(quick=quick)
    return [compare(hashes, reference) for reference in references()]


def references() -> list[Reference]:
    """Return the references, in order of their file names."""
    return [
        Reference(**json.loads(path.read_text(encoding="utf-8")))
        for path in sorted(FOLDER.glob("*.json"))
    ]


def compare(hashes: Mapping[str, str], reference: Reference) -> Comparison:
    """Compare hashes of this machine with a reference, without operations that vary."""
    varying = {operation.name for operation in operations(quick=False) if operation.varies_with}
    names = sorted((hashes.keys() & reference.hashes.keys()) - varying)
    local_versions = library_versions()
    return Comparison(
        cpu=reference.cpu,
        compared=len(names),
        differing=tuple(name for name in names if hashes[name] != reference.hashes[name]),
        other_versions={
            library: version
            for library, version in reference.versions.items()
            if local_versions[library] != version
        },
    )


def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that compute, glibc for its functions included."""
    return {"glibc": platform.libc_ver()[1], "numpy": np.__version__, "tensorflow": tf.__version__}


def write_reference(path: Path, *, cpu: str) -> None:
    """Run all operations and write them as a reference.

    Args:
        path: JSON file to write.
        cpu: maker, model and cache of this machine, for the reader of a comparison.
    """
    document = {
        "cpu": cpu,
        "versions": library_versions(),
        "hashes": dict(sorted(operation_hashes(quick=False).items())),
    }
    write_text(path, json.dumps(document, indent=1) + "\n")
