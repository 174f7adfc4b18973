"""What Python reads before and beside the code of a job, and can change every number.

These are environment variables of a fixed list, the folders that modules are imported from, the
files that Python runs at its start, and the modules and shared libraries that belong neither to
this package nor to an installed one. Nothing personal is kept: a value that contains a path is
replaced by a hash, as is a folder outside of the checkout, the environment and the interpreter.
"""

import os
import re
import site
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from t5repro.files import sha256_of
from t5repro.lineage.byte_code import is_forged
from t5repro.lineage.packages import Installed, interpreter_files
from t5repro.lineage.redaction import hidden, redact
from t5repro.lineage.sources import PACKAGE, source_name

VARIABLE_PREFIXES = (
    "ARROW_",
    "BLIS_",
    "CUBLAS_",
    "CUDA_",
    "CUDNN_",
    "DNNL_",
    "GOTO_",
    "KERAS_",
    "KMP_",
    "LC_",
    "LD_",
    "MALLOC_",
    "MKL_",
    "NCCL_",
    "NPY_",
    "NUMPY_",
    "NVIDIA_",
    "OMP_",
    "ONEDNN_",
    "OPENBLAS_",
    "PYTHON",
    "TF_",
    "TPU_",
    "VECLIB_",
    "XLA_",
)
VARIABLES = {"GLIBC_TUNABLES", "LANG", "LANGUAGE", "TZ"}
FOLDER_LISTS = {"LD_LIBRARY_PATH", "PYTHONPATH"}  # their folders are named one by one
SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|KEY$|KEY_", re.IGNORECASE)
# TensorFlow translates functions into files of random names and imports these.
GENERATED_MODULES = "__autograph_generated_file"
START_MODULES = ("sitecustomize", "usercustomize")
SYSTEM_FOLDERS = ("/lib", "/usr/")  # a library in one of them is named by its file name
MAPS = Path("/proc/self/maps")


def variables(values: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that can decide a number or which code runs, redacted."""
    return {
        name: _value(name, values[name])
        for name in sorted(values)
        if name.startswith(VARIABLE_PREFIXES) or name in VARIABLES
    }


def _value(name: str, value: str) -> str:
    if name in FOLDER_LISTS:
        return os.pathsep.join(place(folder) for folder in value.split(os.pathsep))
    if SECRET.search(name) or any(sign in value for sign in "/\\~@{"):
        return hidden(value)
    return str(redact(value))


def place(path: str) -> str:
    """Return a path relative to the checkout, environment or interpreter; a hash for others."""
    absolute = os.path.abspath(path or ".")
    roots = {
        "checkout": os.getcwd(),
        "package": str(PACKAGE.parents[1]),
        "environment": sys.prefix,
        "python": sys.base_prefix,
    }
    # The environment is usually inside of the checkout: the longest root that fits counts.
    for name, root in sorted(roots.items(), key=lambda item: -len(item[1])):
        if absolute == root or absolute.startswith(f"{root}{os.sep}"):
            return f"({name}){absolute.removeprefix(root)}"
    return hidden(absolute)


def search_path() -> list[str]:
    """Return the folders that Python imports from, in order."""
    return [place(folder) for folder in sys.path]


def start_files(installed: Installed) -> dict[str, str]:
    """Return file -> SHA-256 of what Python runs at its start and no package has.

    These are `sitecustomize` and `usercustomize`, and ``.pth`` files with a line of code. Other
    lines of such files only add folders, which are in `search_path`.
    """
    modules = (getattr(sys.modules.get(name), "__file__", None) for name in START_MODULES)
    paths = [os.path.abspath(path) for path in modules if path]
    for folder in dict.fromkeys([*installed.folders, *_site_folders()]):
        for path in sorted(Path(folder).glob("*.pth")):
            if re.search(rb"^import[ \t]", _bytes(path), flags=re.MULTILINE):
                paths.append(str(path))
    standard = set(interpreter_files().values())
    return {
        name_of(path): _sha256(path)
        for path in paths
        if not (path in standard or installed.has(path))
    }


def _site_folders() -> list[str]:
    folders = site.getsitepackages()
    return [*folders, site.getusersitepackages()] if site.ENABLE_USER_SITE else folders


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _sha256(path: str) -> str:
    try:
        return sha256_of(Path(path))
    except OSError:
        return "unreadable"


def name_of(path: str) -> str:
    """Return the place of a file; its name is kept even if its folder is replaced by a hash."""
    return f"{place(os.path.dirname(path))}/{os.path.basename(path)}"


def loaded_modules() -> list[str]:
    """Return the path of every module that this process has imported from a file."""
    files = (
        getattr(module, "__file__", None)
        for name, module in list(sys.modules.items())
        if not name.startswith(GENERATED_MODULES)
    )
    return sorted({os.path.abspath(path) for path in files if isinstance(path, str)})


def forged_byte_code() -> list[str]:
    """Return the imported files of this package with byte code of another source."""
    own = (path for path in loaded_modules() if path.startswith(f"{PACKAGE}{os.sep}"))
    return [source_name(Path(path)) for path in own if is_forged(Path(path))]


def own_modules(closure: Iterable[str]) -> dict[str, str]:
    """Return file -> SHA-256 of the imported files of this package outside of a closure."""
    own_files = set(closure)
    own = (path for path in loaded_modules() if path.startswith(f"{PACKAGE}{os.sep}"))
    names = {source_name(Path(path)): path for path in own}
    return {name: _sha256(path) for name, path in names.items() if name not in own_files}


def foreign_modules(installed: Installed) -> dict[str, str]:
    """Return file -> SHA-256 of the imported modules that no package and no interpreter has."""
    standard = set(interpreter_files().values())
    return {
        name_of(path): _sha256(path)
        for path in loaded_modules()
        if not (path in standard or installed.has(path) or path.startswith(f"{PACKAGE}{os.sep}"))
    }


def shared_libraries(installed: Installed) -> dict[str, str]:
    """Return file -> SHA-256 of the loaded libraries of the system, such as ``libm.so.6``.

    The list is empty where the system does not say which libraries a process has loaded.
    """
    standard = {os.path.realpath(p) for p in interpreter_files().values() if _is_library(p)}
    libraries = {}
    for path in _mapped_files():
        if not (path in standard or installed.has(path)):
            is_of_system = path.startswith(SYSTEM_FOLDERS)
            libraries[os.path.basename(path) if is_of_system else name_of(path)] = _sha256(path)
    return libraries


def _mapped_files() -> list[str]:
    try:
        lines = MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    words = (line.split(maxsplit=5) for line in lines)
    return sorted({row[5] for row in words if len(row) == 6 and _is_library(row[5])})


def _is_library(path: str) -> bool:
    return path.startswith("/") and re.search(r"\.so($|\.)", path) is not None
