"""Obstacles to a documented run of a checkout on this machine: a line each, with its cure.

`AT_START` has the checks of every run before it plans, in a few milliseconds; `t5repro doctor` asks
`CHECKS`. A check is a function of a checkout and a run file's settings that yields lines. Memory,
disk and devices depend on the jobs of a run: `estimate.start` asks about them.
"""

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from pathlib import Path

from t5repro.config.schema import Settings
from t5repro.config.task_files import raw_files
from t5repro.cpu_dispatch import REQUIRED_FLAGS, cpu_flags, has_required_instructions
from t5repro.data.fetch import check_date
from t5repro.data.paths import raw_path
from t5repro.errors import RawDataError
from t5repro.files import refuse_other_form
from t5repro.lineage.git import is_shallow, try_git, untrusted_owner
from t5repro.lineage.verify_environment import nearest_lock
from t5repro.versions.seal import linked_results

Check = Callable[[Path, Settings], Iterator[str]]
# Folders that a run writes to.
WRITTEN = (".", ".dvc", ".snakemake", "configs/resolved", "logs", "records", "results", "work")


def git_trust(root: Path, settings: Settings) -> Iterator[str]:
    """Git answers questions about a folder of another user only if it is told so."""
    if cure := untrusted_owner(root):
        yield f"records of this run will name no commit: {cure}"


def linked_folders(root: Path, settings: Settings) -> Iterator[str]:
    """DVC versions nothing behind a link out of the checkout."""
    if fault := linked_results(settings.run.name, root):
        yield fault


def history(root: Path, settings: Settings) -> Iterator[str]:
    """Records name commits that a shallow clone does not have."""
    if is_shallow(root):
        yield (
            f"{root.resolve()} is a shallow clone: commits that records name cannot be looked up; "
            "git fetch --unshallow"
        )


def dates(root: Path, settings: Settings) -> Iterator[str]:
    """Snakemake deletes outputs of a file that a clock of the future has dated."""
    yield from _of_files(check_date, [*_tracked(root), *_raw(root, settings)])


def pointers(root: Path, settings: Settings) -> Iterator[str]:
    """A clone without git LFS has small texts in place of files."""
    yield from _of_files(refuse_other_form, [*_tracked(root), *_raw(root, settings)])


def line_ends(root: Path, settings: Settings) -> Iterator[str]:
    """Hashes are of bytes, so another line end is another file."""
    output = try_git(root, "ls-files", "--eol", "-z") or b""
    changed = []
    for entry in filter(None, output.decode(errors="replace").split("\0")):
        facts, _, path = entry.partition("\t")
        in_git, in_folder = (fact.partition("/")[2] for fact in facts.split()[:2])
        if in_git == "lf" and in_folder in ("crlf", "mixed"):
            changed.append(path)
    if changed:
        yield (
            f"{changed[0]} has line ends of Windows (CRLF), and git has LF{_more(changed)}: hashes "
            f"of bytes differ; git checkout -- {shlex.quote(changed[0])}"
        )


def permissions(root: Path, settings: Settings) -> Iterator[str]:
    """A run writes below the checkout."""
    for folder in (root / name for name in WRITTEN):
        if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            yield (
                f"{folder.resolve()} cannot be written by this user: run as the owner of the "
                f"checkout, or have them allow it: chmod -R u+w,a+w {shlex.quote(str(folder))}"
            )


def instructions(root: Path, settings: Settings) -> Iterator[str]:
    """Equal bytes need the kernels that NumPy, OpenBLAS and oneDNN choose on x86-64-v3."""
    if not has_required_instructions():
        lacks = ", ".join(sorted(REQUIRED_FLAGS - cpu_flags())) or "x86-64"
        yield (
            f"this CPU lacks {lacks}: numbers agree with those of other machines within rounding, "
            "not to the byte; run on an x86-64 CPU with AVX2 and FMA, or compare with t5repro "
            "certificate, which knows the tolerance"
        )


def encoding(root: Path, settings: Settings) -> Iterator[str]:
    """Names of files may have any character."""
    if (name := sys.getfilesystemencoding()) != "utf-8":
        yield f"the locale's encoding is {name}, not utf-8: set PYTHONUTF8=1, or a UTF-8 locale"


def packages(root: Path, settings: Settings) -> Iterator[str]:
    """Numbers are of the versions in the lock."""
    _, findings = nearest_lock(root)
    if findings:
        yield f"{findings[0].path} {findings[0].message}{_more(findings)}"


AT_START: tuple[Check, ...] = (git_trust, linked_folders, encoding)
CHECKS: tuple[Check, ...] = (
    *AT_START,
    history,
    dates,
    line_ends,
    pointers,
    permissions,
    instructions,
    packages,
)


def _tracked(root: Path) -> list[Path]:
    names = (try_git(root, "ls-files", "-z") or b"").decode(errors="surrogateescape").split("\0")
    return [root / name for name in names if name]


def _raw(root: Path, settings: Settings) -> list[Path]:
    return [root / raw_path(settings.data, name) for name in raw_files(settings)]


def _of_files(refuse: Callable[[Path], None], paths: Iterable[Path]) -> Iterator[str]:
    """Yield the first refusal of a file, and how many follow."""
    faults = []
    for path in paths:
        if path.is_file():  # a link without a target and a submodule are none
            try:
                refuse(path)
            except RawDataError as error:
                faults.append(str(error))
    if faults:
        yield f"{faults[0]}{_more(faults)}"


def _more(faults: Sized) -> str:
    count = len(faults) - 1
    return f" (and {count} more)" if count else ""
