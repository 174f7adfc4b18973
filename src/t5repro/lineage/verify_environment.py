"""Checks of the environment that a job would run in now: packages, byte code, start files, lock.

Every file of every package is read and compared with the list that the installer wrote, and the
versions with the lock of the requirements. A consistent forgery of a file and of this list is found
by `diff` against records of another environment, and by ``rebuild --clean``.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from t5repro.lineage import startup
from t5repro.lineage.byte_code import is_forged
from t5repro.lineage.environment import REQUIREMENTS
from t5repro.lineage.facts import JobFacts, facts_of_record, unlike_packages
from t5repro.lineage.findings import ALTERED, CODE, FOREIGN, MISSING, SINCE, Finding
from t5repro.lineage.packages import Installed, installed, interpreter_files
from t5repro.lineage.record import read_records
from t5repro.lineage.sources import PACKAGE
from t5repro.lineage.store import Folder

LOCKED = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^]]*\])?==([^\s;\\]+)\s*(?:;\s*([^\\]+?))?\s*\\?$")
CODE_SUFFIXES = (".py", ".so", ".pth")
CURE = "install the packages again in a new environment"
# Variables that put other code in place of the installed one.
CODE_VARIABLES = ("LD_AUDIT", "LD_PRELOAD", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE")


@dataclass(frozen=True)
class EnvironmentVerdict:
    """The result of the checks.

    Attributes:
        findings: what differs.
        warnings: what an auditor should know, without being a failure.
        lock: the lock that the versions were compared with.
        packages: number of packages.
        files: number of files that were read.
    """

    findings: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    lock: str
    packages: int
    files: int

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as plain JSON values."""
        return {"holds": not self.findings, **asdict(self)}

    def to_text(self) -> str:
        """Return the verdict as human-readable text."""
        lines = [finding.line for finding in (*self.findings, *self.warnings)]
        lines.append(
            f"{self.packages} packages with {self.files} files: "
            + (
                f"{len(self.findings)} findings"
                if self.findings
                else f"as installed, with the versions of {self.lock}"
            )
        )
        return "\n".join(lines) + "\n"


def verify_environment(root: Path) -> EnvironmentVerdict:
    """Check the packages, start files and byte code of the running interpreter.

    Args:
        root: the checkout, for its lock and its records.
    """
    packages = installed(deep=True)
    findings = [
        Finding(ALTERED, name, "", f"not the file that the package has; {CURE}")
        for name in packages.altered
    ]
    findings += _unowned_files(packages)
    findings += _forged_byte_code(packages)
    lock, unlike = nearest_lock(root)
    findings += unlike
    variables = startup.variables()
    warnings = [
        Finding(FOREIGN, name, "", f"is set to {variables[name]}; it can change which code runs")
        for name in CODE_VARIABLES
        if name in variables
    ]
    warnings += _unlike_records(root, packages)
    return EnvironmentVerdict(
        tuple(findings), tuple(warnings), lock, len(packages.packages), len(packages.files)
    )


def _unowned_files(packages: Installed) -> Iterator[Finding]:
    """Report code in the folders of packages that no package has, such as `sitecustomize`."""
    standard = interpreter_files().values()
    start_files = startup.start_files(packages)
    for name, sha256 in start_files.items():
        yield Finding(
            FOREIGN, name, "", f"Python runs it at every start ({sha256[:12]}); delete it"
        )
    for root in packages.folders:
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(set(folders) - {"__pycache__"})
            for name in sorted(names):
                path = f"{folder}/{name}"
                file_name = startup.name_of(path)
                if (
                    name.endswith(CODE_SUFFIXES)
                    and not (packages.has(path) or path in standard)
                    and file_name not in start_files
                ):
                    yield Finding(FOREIGN, file_name, "", "no package has this file; delete it")


def _forged_byte_code(packages: Installed) -> Iterator[Finding]:
    """Report byte code of another source: of packages, Python and this package."""
    own = (path.as_posix() for path in PACKAGE.rglob("*.py"))
    for path in sorted({*packages.files, *interpreter_files().values(), *own}):
        if path.endswith(".py") and is_forged(Path(path)):
            message = "its byte code in __pycache__ is not that of the source; delete __pycache__"
            yield Finding(CODE, startup.name_of(path), "", message)


def nearest_lock(root: Path) -> tuple[str, list[Finding]]:
    """Return the lock that the environment was made from, and how the versions differ from it.

    It is the lock that has least in which the two differ. Packages that a lock lacks count: an
    edited version must not move an environment to a shorter lock, which does not name the package.
    """
    versions = {
        _normalized(name): str(distribution.version)
        for distribution in metadata.distributions()
        if (name := distribution.metadata["Name"])
    }
    results = []
    for path in sorted((root / REQUIREMENTS).glob("*.txt")):
        name, locked = path.relative_to(root).as_posix(), locked_versions(path)
        findings = list(_unlike_lock(name, locked, versions))
        results.append((len(findings) + len(versions.keys() - locked.keys()), name, findings))
    if not results:
        message = "absent: the versions of packages cannot be checked; restore it with git checkout"
        return "no lock", [Finding(MISSING, REQUIREMENTS.as_posix(), "", message)]
    _, name, findings = min(results, key=lambda result: result[:2])
    return name, findings


def locked_versions(path: Path) -> dict[str, str]:
    """Return package -> version in a lock, of those that this interpreter needs."""
    from packaging.markers import Marker

    versions = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        match = LOCKED.match(line)
        if match and (match[3] is None or Marker(match[3]).evaluate()):
            versions[_normalized(match[1])] = match[2]
    return versions


def _unlike_lock(lock: str, locked: dict[str, str], versions: dict[str, str]) -> Iterator[Finding]:
    for name, version in sorted(locked.items()):
        if name not in versions:
            yield Finding(MISSING, name, "", f"{lock} has {version}; run make setup")
        elif versions[name] != version:
            yield Finding(
                ALTERED, name, "", f"version {versions[name]}, {lock} has {version}; run make setup"
            )


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _unlike_records(root: Path, packages: Installed) -> list[Finding]:
    """Report packages that are not the ones that the jobs of this checkout ran with."""
    installed_facts = JobFacts(environment={"packages": packages.digests})
    findings: dict[str, Finding] = {}
    for name, record in read_records(Folder(root)).items():
        for package in unlike_packages(facts_of_record(record), installed_facts):
            message = f"{name} ran with other files of this package"
            findings.setdefault(package, Finding(SINCE, package, name, message))
    return list(findings.values())
