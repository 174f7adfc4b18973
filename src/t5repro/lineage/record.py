"""One record per job: the code and environment it ran with, and its result.

The record is ``records/<run>/<rule>/<node>.json``, named like the log of the job. The first half is
written before the stage's code is imported, the second when it ends: a killed job has no end. If
its code changed meanwhile, the record names the files and is not sealed. Records contain times and
machines, so they are neither output nor input of a rule; git tracks them, as it does `dvc.lock`.
A sealed record names by hash the facts that many records of a run share (`shared_facts`).

`recording` writes records; here they are read: `read_record`, `read_records`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from t5repro.artifacts import SCORES
from t5repro.errors import ArtifactError
from t5repro.files import read_file, read_json
from t5repro.lineage.shared_facts import ReadShared, is_shared, put_back, reader_of, shared_path
from t5repro.lineage.store import RECORDS, Store
from t5repro.lineage.workflow_files import RunFile
from t5repro.progress import announce
from t5repro.strict_json import parse_json

LOGS = Path("logs")
FORMAT = 3  # 2: every record repeats the facts that `shared_facts` keeps once
RESTORE = "restore it with git checkout"
FORMAT_OF_WHOLE_FILES = 1  # its `closure` has the hash of each whole file, as no tree has today


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
        closure: source file -> hash of the definitions in it that the rule reaches. None in older
            records.
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
    closure: dict[str, str] | None = None
    workflow: dict[str, str] | None = None
    run_file: RunFile | None = None


@dataclass(frozen=True)
class End:
    """The second half of a record, written when the job ends.

    Attributes:
        seconds: from the start of the record to its end.
        cpu_seconds: processor time of the process and of the children that ended before it.
        imported: imported file of this package outside of the closure -> SHA-256.
        foreign: imported file of neither a package nor the interpreter -> SHA-256.
        shared_libraries: loaded library of the system -> SHA-256.
        forged_byte_code: imported files of this package with byte code of another source.
    """

    at: str
    seconds: float
    ok: bool
    cpu_seconds: float | None = None
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
    def job(self) -> str:
        """The job that it says it is of: run, rule and node."""
        return "/".join(filter(None, (self.run, self.rule, self.node)))

    @property
    def sealable(self) -> bool:
        """Whether the job succeeded and its code did not change while it ran."""
        return self.end is not None and self.end.ok and not self.end.code_changed

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return asdict(self)


_RECORD = TypeAdapter(Record)


def known_facts(facts: Machine | Start | End) -> dict[str, Any]:
    """Return the facts of a part of a record by name, without those that it does not know."""
    return {name: value for name, value in asdict(facts).items() if value is not None}


def record_path(log: Path) -> Path | None:
    """Return the path of the record of the job with this log; None for logs outside ``logs/``."""
    if log.is_absolute() or log.parts[0] != LOGS.name or ".." in log.parts:
        return None
    return Path(RECORDS, *log.parts[1:]).with_suffix(".json")


def job_of_record(path: str) -> str:
    """Return the job of a record."""
    return path.removeprefix(f"{RECORDS}/").removesuffix(".json")


def record_of_job(job: str) -> str:
    """Return the path of the record of a job."""
    return f"{RECORDS}/{job}.json"


def run_of_record(path: str) -> str:
    """Return the run that a record belongs to; empty for other files."""
    words = path.split("/")
    return words[1] if len(words) > 2 and words[0] == RECORDS else ""


def read_record(path: Path) -> Record:
    """Read one record.

    Raises:
        ArtifactError: it is missing, or is not a record.
    """
    try:
        data = read_file(path)
    except OSError as error:
        raise ArtifactError(f"{path} is missing ({error.strerror}); {RESTORE}") from error
    return parse_record(data, str(path), reader_of(path))


def record_in(store: Store, path: str) -> Record:
    """Read a record of a state; raises ArtifactError like `parse_record`."""
    return parse_record(store.read(path), path, shared_in(store, path))


def shared_in(store: Store, path: str) -> ReadShared:
    """Return the reader of the shared facts of a record of a state."""
    run = run_of_record(path)
    return lambda sha256: store.read(shared_path(run, sha256))


def parse_record(data: bytes, name: str, read_shared: ReadShared) -> Record:
    """Return a record from its bytes.

    Args:
        data: JSON.
        name: of the record, for error messages.
        read_shared: returns a file of shared facts.

    Raises:
        SharedFactsError: a file of shared facts is missing or altered.
        ArtifactError: it is not a record.
    """
    try:
        values = parse_json(data)
    except ValueError as error:
        raise ArtifactError(f"{name} is not JSON ({error}); {RESTORE}") from error
    return record_of(values, name, read_shared)


def record_of(values: Any, name: str, read_shared: ReadShared | None = None) -> Record:
    """Return a record from JSON values.

    Args:
        values: of the whole file.
        name: of the file, for error messages.
        read_shared: returns a file of shared facts; not needed for a whole record.

    Raises:
        ArtifactError: they are not a record, or one of an unknown format.
    """
    if read_shared is not None and isinstance(values, dict):
        values = put_back(values, read_shared)
    try:
        record = _RECORD.validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise ArtifactError(
            f"{name} is not a record ({field}: {first['msg']}); {RESTORE}, or rerun its job"
        ) from error
    if not FORMAT_OF_WHOLE_FILES <= record.format <= FORMAT:
        raise ArtifactError(
            f"{name} has format {record.format}; this version reads {FORMAT_OF_WHOLE_FILES} to "
            f"{FORMAT}: check out the commit of the record ({record.start.commit}), or rerun its "
            "job"
        )
    if record.format == FORMAT_OF_WHOLE_FILES:
        return replace(record, start=replace(record.start, closure=None))
    return record


def read_records(store: Store) -> dict[str, Record]:
    """Return job -> record of all readable records of a state; say that there are others."""
    records = {}
    faults = []
    for path in store.names(RECORDS, ".json"):
        if run_of_record(path) and not is_shared(path):
            try:
                records[job_of_record(path)] = record_in(store, path)
            except ArtifactError as error:
                faults.append(f"{path}: {error}")
    if faults:
        announce(
            f"{len(faults)} of {len(faults) + len(records)} records cannot be read, so nothing is "
            f"said of code and machine of their jobs; t5repro verify names all, the first: "
            f"{faults[0]}"
        )
    return records


def seeds_in(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, int]]:
    """Yield dotted name and value of every seed in the settings of a job."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from seeds_in(value, f"{prefix}{name}.")
        elif name.endswith("seed") and isinstance(value, int):
            yield f"{prefix}{name}", value


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
