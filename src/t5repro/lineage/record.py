"""One record per job: the code and environment it ran with, and its result.

The record is ``records/<run>/<rule>/<node>.json``, named like the log of the job. The first half is
written before the stage's code is imported, the second when it ends: a killed job has no end, and a
job whose code changed while it ran names the files and is not sealed. Records contain times and
machines, so they are neither output nor input of a rule; git tracks them, as it does `dvc.lock`.

To read: `read_record`, `find_records`. To record a job: `recording`.
"""

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from t5repro.artifacts import SCORES
from t5repro.errors import ArtifactError
from t5repro.files import describe_file, read_json, write_json
from t5repro.lineage import environment, startup
from t5repro.lineage.packages import Installed, installed, interpreter_hash
from t5repro.lineage.redaction import redact, redact_path
from t5repro.lineage.run_lock import job_lock
from t5repro.lineage.sources import (
    SourceTree,
    closure,
    differing_files,
    hashes_of_rule,
    write_closure,
)
from t5repro.lineage.workflow_files import RunFile, rule_file_hashes, run_file

RECORDS = Path("records")
LOGS = Path("logs")
FORMAT = 2  # 1: `closure` has a hash of the syntax tree of each whole file


@dataclass(frozen=True)
class RecordedFile:
    """A file as a job read or wrote it."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Machine:
    """The machine and the libraries that a job ran on; see `environment`.

    Facts that older records lack are None: not known.

    Attributes:
        installed: hash of the names and versions of every package.
        packages: package -> hash of the bytes of its files.
        altered: files of packages that differ from what was installed.
        interpreter: hash of the interpreter and the standard library.
        variables: environment variables that can decide a number or which code runs.
        search_path: the folders that modules are imported from.
        start_files: file -> SHA-256 of what Python runs at its start.
        instruction_sets: hash of the features of the CPU.
    """

    system: str
    processor: str | None
    processors: int | None
    python: str
    libraries: dict[str, str]
    locks: dict[str, str] = field(default_factory=dict)
    installed: str = ""
    packages: dict[str, str] | None = None
    altered: list[str] | None = None
    interpreter: str | None = None
    variables: dict[str, str] | None = None
    search_path: list[str] | None = None
    start_files: dict[str, str] | None = None
    instruction_sets: str | None = None


@dataclass(frozen=True)
class Start:
    """The first half of a record, written before the stage's code is imported.

    Attributes:
        code: source file that Python runs for the rule -> SHA-256 of its bytes.
        closure: source file -> hash of the definitions in it that the rule reaches.
        workflow: rule file -> hash; see `workflow_files`. None in older records.
        run_file: the run file; None if not known.
    """

    at: str
    attempt: int
    commit: str | None
    uncommitted: str | None
    code: dict[str, str]
    settings: dict[str, Any]
    seeds: dict[str, int]
    machine: Machine
    closure: dict[str, str] = field(default_factory=dict)
    workflow: dict[str, str] | None = None
    run_file: RunFile | None = None


@dataclass(frozen=True)
class End:
    """The second half of a record, written when the job ends.

    Attributes:
        imported: imported file of this package outside of the closure -> SHA-256.
        foreign: imported file of neither a package nor the interpreter -> SHA-256.
        shared_libraries: loaded library of the system -> SHA-256.
        forged_byte_code: imported files of this package whose byte code is not that of the source.
    """

    at: str
    seconds: float
    ok: bool
    error: str | None = None
    inputs: list[RecordedFile] = field(default_factory=list)
    outputs: list[RecordedFile] = field(default_factory=list)
    code_changed: list[str] = field(default_factory=list)
    devices: dict[str, int] | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    imported: dict[str, str] | None = None
    foreign: dict[str, str] | None = None
    shared_libraries: dict[str, str] | None = None
    forged_byte_code: list[str] | None = None


@dataclass(frozen=True)
class Record:
    """The record of one job; without an end if the job was killed or is running."""

    run: str
    rule: str
    node: str
    start: Start
    end: End | None = None
    format: int = FORMAT

    @property
    def sealable(self) -> bool:
        """Whether the job succeeded and its code did not change while it ran."""
        return self.end is not None and self.end.ok and not self.end.code_changed


_RECORD = TypeAdapter(Record)


def record_path(log: Path) -> Path | None:
    """Return the path of the record of the job with this log; None for logs outside ``logs/``."""
    if log.is_absolute() or log.parts[0] != LOGS.name or ".." in log.parts:
        return None
    return RECORDS.joinpath(*log.parts[1:]).with_suffix(".json")


def read_record(path: Path) -> Record:
    """Read one record.

    Raises:
        ArtifactError: it is missing, or is not a record.
    """
    return record_of(read_json(path), str(path))


def parse_record(text: str, name: str) -> Record:
    """Return a record from its text.

    Args:
        text: JSON.
        name: of the record, for error messages.

    Raises:
        ArtifactError: it is not a record.
    """
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise ArtifactError(f"a record of {name} is not JSON: {error}") from error
    return record_of(values, name)


def record_of(values: Any, name: str) -> Record:
    """Return a record from JSON values.

    Args:
        values: of the whole file.
        name: of the file, for error messages.

    Raises:
        ArtifactError: they are not a record.
    """
    try:
        return _RECORD.validate_python(values)
    except ValidationError as error:
        raise ArtifactError(
            f"{name} is not a record ({error.errors()[0]['msg']}); restore it with git checkout, "
            "or rerun its job"
        ) from error


def find_records(root: Path = Path(), run: str = "*") -> dict[Path, Record]:
    """Return path (below `root`) -> record of every job of a run, or of all runs, sorted."""
    paths = sorted((root / RECORDS).glob(f"{run}/**/*.json"))
    return {path.relative_to(root): read_record(path) for path in paths}


@contextlib.contextmanager
def recording(
    rule: str,
    *,
    log: Path,
    settings: Mapping[str, Any],
    files: Iterable[Path] = (),
    manifest: Path | None = None,
) -> Iterator[None]:
    """Record the job that runs in this block.

    Args:
        rule: the rule; decides which code is hashed.
        log: the log of the job; decides the path of the record.
        settings: the settings that the job receives.
        files: all files on its command line; those that are no output in the manifest are inputs.
        manifest: the manifest that the job writes.
    """
    path = record_path(log)
    if path is None:
        yield
        return
    with job_lock():
        yield from _record_to(path, rule, settings, files, manifest)


def _record_to(
    path: Path, rule: str, settings: Mapping[str, Any], files: Iterable[Path], manifest: Path | None
) -> Iterator[None]:
    clock_start = time.monotonic()
    # Logs are logs/<run>/<rule>/<node>.log; data_fetch has one file per run, without a node.
    run, *names = path.with_suffix("").parts[1:]
    # The attempt comes from the previous record, so it is read before that is replaced.
    packages = installed()
    start = _start(rule, settings, packages, attempt=_attempt(path))
    record = Record(run=run, rule=rule, node="/".join(names[1:]), start=start)
    write_json(path, asdict(record))
    # The code may have changed since the graph was planned. Snakemake hashes inputs when the job
    # ends; they must be those of the code that it runs.
    write_closure(rule, start.closure)
    try:
        yield
    except BaseException as error:  # SIGTERM and Ctrl-C end a job as well
        end = _end(clock_start, start, packages, ok=False, error=type(error).__name__)
        write_json(path, asdict(replace(record, end=end)))
        raise
    # Outside of the try block: a failure to read the manifest is not a failure of the job.
    inputs, outputs = _inputs_and_outputs(rule, files, manifest)
    end = _end(
        clock_start,
        start,
        packages,
        ok=True,
        inputs=inputs,
        outputs=outputs,
        code_changed=_changed_code(rule, start.closure),
        numbers=numbers_of(manifest) if manifest else {},
    )
    write_json(path, asdict(replace(record, end=end)))


def _changed_code(rule: str, before: Mapping[str, str]) -> list[str]:
    """Return the source files that changed while the job ran."""
    try:
        return differing_files(before, closure(rule))
    except (SyntaxError, ValueError, OSError) as error:  # an edit that is saved halfway
        return [str(getattr(error, "filename", None) or f"code of {rule}: {error}")]


def _start(rule: str, settings: Mapping[str, Any], packages: Installed, attempt: int) -> Start:
    sources = SourceTree()
    return Start(
        at=_current_time(),
        attempt=attempt,
        commit=environment.commit(),
        uncommitted=environment.uncommitted(),
        code=hashes_of_rule(rule, sources),
        settings=redact(dict(settings)),
        seeds=dict(seeds_in(settings)),
        machine=_machine(packages),
        closure=sources.closure(rule),
        workflow=rule_file_hashes(rule),
        run_file=run_file(),
    )


def _machine(packages: Installed) -> Machine:
    return Machine(
        system=environment.system(),
        processor=environment.processor(),
        processors=environment.processors(),
        python=environment.python_version(),
        libraries=environment.library_versions(),
        locks=environment.requirement_hashes(),
        installed=environment.installed_hash(),
        packages=packages.digests,
        altered=packages.altered,
        interpreter=interpreter_hash(),
        variables=startup.variables(),
        search_path=startup.search_path(),
        start_files=startup.start_files(packages),
        instruction_sets=environment.instruction_sets(),
    )


def _end(clock_start: float, start: Start, packages: Installed, *, ok: bool, **facts: Any) -> End:
    return End(
        at=_current_time(),
        seconds=round(time.monotonic() - clock_start, 3),
        ok=ok,
        devices=environment.devices(),
        imported=startup.own_modules(start.code),
        foreign=startup.foreign_modules(packages),
        shared_libraries=startup.shared_libraries(packages),
        forged_byte_code=startup.forged_byte_code(),
        **facts,
    )


def _current_time() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _attempt(path: Path) -> int:
    """Return 1 after a successful attempt or none, else the number of the last attempt plus 1."""
    try:
        previous = read_record(path)
    except ArtifactError:
        return 1
    return 1 if previous.end is not None and previous.end.ok else previous.start.attempt + 1


def seeds_in(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, int]]:
    """Yield dotted name and value of every seed in the settings of a job."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from seeds_in(value, f"{prefix}{name}.")
        elif name.endswith("seed") and isinstance(value, int):
            yield f"{prefix}{name}", value


def _inputs_and_outputs(
    rule: str, files: Iterable[Path], manifest: Path | None
) -> tuple[list[RecordedFile], list[RecordedFile]]:
    """Return inputs and outputs; files that the manifest lists are not hashed again."""
    if manifest is None:
        return [], [_describe(path) for path in files if path.is_file()]
    values = read_json(manifest)
    inputs = {entry["path"]: _recorded_file(entry) for entry in values["inputs"]}
    outputs = {entry["path"]: _recorded_file(entry) for entry in values["outputs"]}
    if rule == "data":  # its manifest lists the raw files as outputs, but the rule only reads them
        inputs, outputs = outputs, {}
    for path in files:
        name = path.as_posix()
        if path.is_file() and path != manifest and name not in inputs.keys() | outputs.keys():
            inputs[name] = _describe(path)
    outputs[manifest.as_posix()] = _describe(manifest)
    return list(inputs.values()), list(outputs.values())


def _describe(path: Path) -> RecordedFile:
    return _recorded_file(describe_file(path))


def _recorded_file(entry: Mapping[str, Any]) -> RecordedFile:
    return RecordedFile(redact_path(Path(entry["path"])), entry["bytes"], entry["sha256"])


def numbers_of(manifest: Path) -> dict[str, float]:
    """Return dotted name -> value of the counters and scores of a job, as its record has them."""
    numbers = dict(numbers_in(read_json(manifest)["counters"]))
    scores = manifest.parent / SCORES
    if scores.is_file():
        numbers |= numbers_in({"tasks": read_json(scores).get("tasks", {})})
    return numbers


def numbers_in(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield dotted name and value of every number in the counters or scores of a job."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from numbers_in(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{prefix}{name}", value
