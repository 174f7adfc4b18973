"""What a job ran on: revision, interpreter, libraries, processor, devices.

Nothing personal is asked for: no environment variable, user, host or folder of the machine. What
cannot be known stays absent.
"""

import hashlib
import os
import platform
import re
import subprocess
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any

from t5repro.files import sha256_of

LOCKS = Path("requirements")
# What a run itself writes does not make the tree it ran from another one.
WRITTEN_BY_RUNS = ("records", "dvc.lock", "dvc.yaml", "configs/resolved")
TENSORFLOW_FAMILY = ("tensorflow", "tensorflow-tpu", "tensorflow-text", "libtpu", "jax")
CPU_FACTS = Path("/proc/cpuinfo")


def git(*words: str) -> bytes | None:
    """Return what a git command prints in this folder; None without git or a repository."""
    try:
        ran = subprocess.run(["git", *words], capture_output=True, check=False)
    except OSError:
        return None
    return ran.stdout if ran.returncode == 0 else None


def commit() -> str | None:
    """Return the checked-out commit."""
    found = git("rev-parse", "HEAD")
    return found.decode().strip() if found else None


def uncommitted() -> str | None:
    """Return a hash of everything that differs from the commit; None for a clean tree.

    What runs write (records, `dvc.lock`) does not count; new files that git does not ignore do.
    """
    besides = [f":(exclude){name}" for name in WRITTEN_BY_RUNS]
    changed = git("diff", "--binary", "--no-ext-diff", "HEAD", "--", ".", *besides)
    new = git("ls-files", "--others", "--exclude-standard", "-z", "--", ".", *besides)
    if not changed and not new:
        return None
    digest = hashlib.sha256(changed or b"")
    for name in sorted(filter(None, (new or b"").decode().split("\0"))):
        path = Path(name)
        digest.update(f"\0{name}\0{sha256_of(path) if path.is_file() else ''}".encode())
    return digest.hexdigest()


def lock_hashes() -> dict[str, str]:
    """Return the SHA-256 of each committed list of packages."""
    return {path.as_posix(): sha256_of(path) for path in sorted(LOCKS.glob("*.txt"))}


def installed_hash() -> str:
    """Return a hash of the names and versions of every installed package."""
    names = {
        path.name.removesuffix(".dist-info")
        for folder in sys.path
        for path in Path(folder or ".").glob("*.dist-info")
    }
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()


def library_versions() -> dict[str, str]:
    """Return name -> version of the libraries that this project asks for and that are here."""
    found = {}
    for name in (*_required(), *TENSORFLOW_FAMILY):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _required() -> list[str]:
    try:
        wanted = metadata.requires("t5repro") or []
    except metadata.PackageNotFoundError:
        return []
    names = [re.match(r"[\w.-]+", line) for line in wanted if "extra ==" not in line]
    return sorted({match[0] for match in names if match})


def python_version() -> str:
    """Return the interpreter, such as ``CPython 3.11.9``."""
    return f"{platform.python_implementation()} {platform.python_version()}"


def system() -> str:
    """Return the operating system and processor family, such as ``Linux x86_64``."""
    return f"{platform.system()} {platform.machine()}"


def processor() -> str | None:
    """Return the model of the CPU, where the system tells it."""
    try:
        text = CPU_FACTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or None
    match = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.MULTILINE)
    return match[1] if match else platform.processor() or None


def processors() -> int | None:
    """Return how many logical CPUs this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count()


def devices() -> dict[str, int] | None:
    """Return kind -> number of the devices TensorFlow used; None where it never ran."""
    loaded: Any = sys.modules.get("tensorflow")
    if loaded is None:
        return None
    return dict(Counter(device.device_type for device in loaded.config.list_physical_devices()))
