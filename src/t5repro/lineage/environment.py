"""The environment of a job: revision, interpreter, libraries, processor, devices.

Nothing personal is read: no user, host or folder of the machine. Unknown facts are left out. What
Python reads besides, such as environment variables, is in `lineage.startup`, the bytes of packages
are in `lineage.packages`.
"""

import hashlib
import os
import platform
import re
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path

from t5repro.files import sha256_of
from t5repro.lineage.git import try_git

REQUIREMENTS = Path("requirements")
# A run writes these itself; they do not change the code that it ran.
WRITTEN_BY_RUNS = ("records", "dvc.lock", "dvc.yaml", "configs/resolved")
ENGINES = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-tpu",
    "tensorflow-text",
    "libtpu",
    "jax",
    "jaxlib",
)
CPU_INFO = Path("/proc/cpuinfo")


def commit() -> str | None:
    """Return the checked-out commit; None outside of a git repository."""
    output = try_git(Path(), "rev-parse", "HEAD")
    return output.decode().strip() if output else None


def uncommitted() -> str | None:
    """Return a hash of all differences from the commit; None for a clean tree.

    New files that git does not ignore count; files that runs write (`WRITTEN_BY_RUNS`) do not.
    """
    paths = ["--", ".", *(f":(exclude){name}" for name in WRITTEN_BY_RUNS)]
    changes = try_git(Path(), "diff", "--binary", "--no-ext-diff", "HEAD", *paths) or b""
    new_files = try_git(Path(), "ls-files", "--others", "--exclude-standard", "-z", *paths) or b""
    if not changes and not new_files:
        return None
    digest = hashlib.sha256(changes)
    for name in sorted(filter(None, new_files.decode().split("\0"))):
        path = Path(name)
        digest.update(f"\0{name}\0{sha256_of(path) if path.is_file() else ''}".encode())
    return digest.hexdigest()


def requirement_hashes() -> dict[str, str]:
    """Return path -> SHA-256 of the committed lists of packages."""
    return {path.as_posix(): sha256_of(path) for path in sorted(REQUIREMENTS.glob("*.txt"))}


def installed_hash() -> str:
    """Return a hash of the names and versions of every installed package."""
    names = {
        path.name.removesuffix(".dist-info")
        for folder in sys.path
        for path in Path(folder or ".").glob("*.dist-info")
    }
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()


def library_versions() -> dict[str, str]:
    """Return name -> version of the installed libraries among the requirements of this project."""
    versions = {}
    for name in (*_required_libraries(), *ENGINES):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _required_libraries() -> list[str]:
    try:
        requirements = metadata.requires("t5repro") or []
    except metadata.PackageNotFoundError:
        return []
    names = [re.match(r"[\w.-]+", line) for line in requirements if "extra ==" not in line]
    return sorted({match[0] for match in names if match})


def python_version() -> str:
    """Return the interpreter, such as ``CPython 3.11.9``."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def system() -> str:
    """Return the operating system and processor family, such as ``Linux x86_64``."""
    return f"{platform.system()} {platform.machine()}"


def processor() -> str | None:
    """Return the model of the CPU; None if the system does not report it."""
    try:
        text = CPU_INFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or None
    match = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.MULTILINE)
    return match[1] if match else platform.processor() or None


def instruction_sets() -> str | None:
    """Return a hash of the features of the CPU, such as ``avx2``; None if they are not reported."""
    try:
        text = CPU_INFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, flags=re.MULTILINE)
    if match is None:
        return None
    return hashlib.sha256(" ".join(sorted(match[1].split())).encode()).hexdigest()


def processors() -> int | None:
    """Return the number of logical CPUs available to this process."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count()


def devices() -> dict[str, int] | None:
    """Return kind -> number of the devices that the engine used; None if it was not imported."""
    # Importing it for this would take seconds.
    tensorflow, jax = (sys.modules.get(name) for name in ("tensorflow", "jax"))
    if tensorflow is not None:
        kinds = [device.device_type for device in tensorflow.config.list_physical_devices()]
    elif jax is not None:
        kinds = [device.platform.upper() for device in jax.devices()]
    else:
        return None
    return dict(Counter(kinds))
