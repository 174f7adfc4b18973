"""Commands in forks of a process that has imported their libraries, and nothing of this package.

Tests run hundreds of commands, and Snakemake or DVC takes a second or more to import.
"""

import atexit
import importlib
import multiprocessing
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

MAINS = {"snakemake": "snakemake.cli", "dvc": "dvc.cli", "t5repro": "t5repro.cli.main"}
LIBRARIES = [
    "boto3",
    "dvc.cli",
    "dvc.repo",
    "numpy",
    "jinja2",
    "pydantic",
    "pyarrow.parquet",
    "rouge_score.rouge_scorer",
    "snakemake.api",
    "snakemake.cli",
    "snakemake_storage_plugin_s3",
    "yaml",
]


def run_warm(
    folder: Path, words: Sequence[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run one of `MAINS` in a folder; everything it printed is in `stdout`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    with tempfile.NamedTemporaryFile() as output:
        arguments = (str(folder), list(words), dict(environment), output.name)
        process = context.Process(target=_run, args=arguments)
        process.start()
        process.join()
        assert process.exitcode is not None
        code = process.exitcode
        process.close()
        printed = Path(output.name).read_text(encoding="utf-8")
    return subprocess.CompletedProcess(list(words), code, printed)


def _run(folder: str, words: list[str], environment: dict[str, str], output: str) -> None:
    """Become the command, as its script starts it."""
    descriptor = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for name in [name for name in sys.modules if name.partition(".")[0] == "t5repro"]:
        del sys.modules[name]  # multiprocessing imports the program that asks, and all it imports
    folders = [sysconfig.get_path(name) for name in ("scripts", "stdlib", "purelib")]
    scripts, standard, packages = folders
    own = environment["PYTHONPATH"].split(os.pathsep)
    sys.path[:] = [scripts, *own, standard, f"{standard}/lib-dynload", packages]
    sys.argv = [f"{scripts}/{words[0]}", *words[1:]]
    try:
        sys.exit(importlib.import_module(MAINS[words[0]]).main())
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
