"""Runs a program as on another x86-64 CPU; `other_cpu.c` says how."""

import json
import os
import platform
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from other_cpu import find_sites

FOLDER = Path(__file__).parent
MODELS = ("rome", "genoa", "haswell", "skylake")
OWN = "own"  # imitates nothing, counts instructions
KINDS = {"cpuid": "c", "approximate": "a", "avx512": "x"}
COUNTS = struct.Struct("4Q")
NO_AVX512 = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD"


@dataclass(frozen=True)
class Run:
    """A finished process.

    Attributes:
        status: its exit status.
        output: printed to standard output.
        errors: printed to standard error.
        patched: instructions that were replaced.
        cpuids: executions of CPUID that were answered.
        approximations: executions of RSQRTPS, RCPPS and their scalar forms.
    """

    status: int
    output: str
    errors: str
    patched: int
    cpuids: int
    approximations: int


def obstacle() -> str:
    """Return why no CPU can be imitated on this machine; empty if one can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"needs Linux on x86-64; this is {sys.platform} on {platform.machine()}"
    missing = [program for program in ("gcc", "objdump") if shutil.which(program) is None]
    if missing:
        return f"needs {' and '.join(missing)}"
    if platform.libc_ver()[0] != "glibc":
        return "needs glibc, whose dynamic linker loads audit libraries"
    return ""


def build(folder: Path) -> Path:
    """Compile the audit library into a folder; return its path."""
    library = folder / "other_cpu.so"
    command = ["gcc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-fno-math-errno"]
    subprocess.run([*command, "-o", str(library), str(FOLDER / "other_cpu.c")], check=True)
    (folder / "sites.txt").write_text(_site_lines(), encoding="utf-8")
    return library


def run(
    library: Path,
    model: str,
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
) -> Run:
    """Run a command as on another CPU.

    Args:
        library: result of `build`.
        model: one of `MODELS`, or `OWN`.
        command: program and arguments.
        environment: of the process; if absent, the environment of this process.
    """
    counts = library.with_name(f"counts-{model}-{os.getpid()}")
    counts.write_bytes(bytes(COUNTS.size))
    process = subprocess.run(
        command,
        env={
            **(os.environ if environment is None else environment),
            "LD_AUDIT": str(library),
            "OTHER_CPU": model,
            "OTHER_CPU_SITES": str(library.with_name("sites.txt")),
            "OTHER_CPU_COUNTS": str(counts),
            **({} if model == OWN else {"GLIBC_TUNABLES": NO_AVX512}),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    patched, other_bytes, cpuids, approximations = COUNTS.unpack(counts.read_bytes())
    if other_bytes:
        raise RuntimeError(
            f"{other_bytes} instructions are not where sites.json has them; run find_sites.py"
        )
    return Run(process.returncode, process.stdout, process.stderr, patched, cpuids, approximations)


def _site_lines() -> str:
    listed = json.loads(find_sites.SITES.read_text(encoding="utf-8"))
    lines: list[str] = []
    for package in find_sites.PACKAGES:
        sites = listed.get(package, {})
        if sites.get("release") != find_sites.release_of(package):
            sites = find_sites.sites_of_package(package)
        files = find_sites.libraries_of(package)
        for name, kinds in sites["libraries"].items():
            status = Path(str(files[name].locate())).stat()
            lines.append(f"library {status.st_dev} {status.st_ino}")
            for kind, letter in KINDS.items():
                lines += [
                    f"{letter} {location} {raw}" for location, raw in kinds.get(kind, {}).items()
                ]
    return "".join(f"{line}\n" for line in lines)
