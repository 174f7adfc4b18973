"""One record per job: what it was about to run, on what, and what came of it.

``records/<run>/<rule>/<node>.json``, beside the log of the same name. The first half is written
before the stage's code is imported, the second when it ends: a job that was killed has no end, a
job whose code changed under it says so and is not sealed. Records tell times and machines, so they
are no outputs and no input of anything; git keeps them, next to `dvc.lock`.

To read: `read_record`, `find_records`. To record a job: `recording`.
"""

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from t5repro.errors import ArtifactError
from t5repro.files import describe_file, read_json, write_json
from t5repro.lineage import environment, run_lock
from t5repro.lineage.redaction import public, public_path
from t5repro.lineage.sources import hashes_of_rule

RECORDS = Path("records")
LOGS = Path("logs")
FORMAT = 1


@dataclass(frozen=True)
class RecordedFile:
    """A file as a job saw it."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Machine:
    """What a job ran on."""

    system: str
    processor: str | None
    processors: int | None
    python: str
    libraries: dict[str, str]
    locks: dict[str, str] = field(default_factory=dict)
    installed: str = ""


@dataclass(frozen=True)
class Start:
    """What was known before the stage's code was imported."""

    at: str
    attempt: int
    commit: str | None
    uncommitted: str | None
    code: dict[str, str]
    settings: dict[str, Any]
    seeds: dict[str, int]
    machine: Machine


@dataclass(frozen=True)
class End:
    """How a job ended."""

    at: str
    seconds: float
    ok: bool
    error: str | None = None
    inputs: list[RecordedFile] = field(default_factory=list)
    outputs: list[RecordedFile] = field(default_factory=list)
    code_changed: list[str] = field(default_factory=list)
    devices: dict[str, int] | None = None
    numbers: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    """One job: its place in the graph, its start and, if it came to one, its end."""

    run: str
    rule: str
    node: str
    start: Start
    end: End | None = None
    format: int = FORMAT

    @property
    def sealable(self) -> bool:
        """Tell whether the job ended well and its code was the same all the while."""
        return self.end is not None and self.end.ok and not self.end.code_changed


_RECORD = TypeAdapter(Record)


def record_path(log: Path) -> Path | None:
    """Return where the job with this log is recorded; None for a job run by hand elsewhere."""
    if log.is_absolute() or log.parts[0] != LOGS.name or ".." in log.parts:
        return None
    return RECORDS.joinpath(*log.parts[1:]).with_suffix(".json")


def read_record(path: Path) -> Record:
    """Read one record.

    Raises:
        ArtifactError: it is missing, or is not a record.
    """
    return _parsed(read_json(path), str(path))


def parse_record(text: str, name: str) -> Record:
    """Return a record from its text; `name` is what errors call it.

    Raises:
        ArtifactError: it is not a record.
    """
    try:
        return _parsed(json.loads(text), name)
    except json.JSONDecodeError as error:
        raise ArtifactError(f"a record of {name} is not JSON: {error}") from error


def _parsed(values: Any, name: str) -> Record:
    try:
        return _RECORD.validate_python(values)
    except ValidationError as error:
        raise ArtifactError(
            f"{name} is not a record ({error.errors()[0]['msg']}); restore it with git checkout, "
            "or rerun its job"
        ) from error


def find_records(root: Path = Path(), run: str = "*") -> dict[Path, Record]:
    """Return path (below `root`) -> record of every job of a run, or of all runs, in order."""
    paths = sorted((root / RECORDS).glob(f"{run}/**/*.json"))
    return {path.relative_to(root): read_record(path) for path in paths}


@contextlib.contextmanager
def recording(
    rule: str,
    *,
    log: Path,
    settings: Mapping[str, Any],
    given: Iterable[Path] = (),
    manifest: Path | None = None,
) -> Iterator[None]:
    """Record the job that runs in this block.

    Args:
        rule: the subcommand; decides which code is hashed.
        log: the job's log; names the record.
        settings: what the job received.
        given: files named on the command line; those that the manifest does not call outputs
            are inputs.
        manifest: what the job will write.
    """
    path = record_path(log)
    if path is None:
        yield
        return
    with run_lock.at_work():
        yield from _recording_at(path, rule, settings, given, manifest)


def _recording_at(
    path: Path, rule: str, settings: Mapping[str, Any], given: Iterable[Path], manifest: Path | None
) -> Iterator[None]:
    begun = time.monotonic()
    # data_fetch and data_fetch's log stand at the top of a run; other logs are below their rule.
    run, *words = path.with_suffix("").parts[1:]
    start = _start(rule, settings, attempt=_attempt(path))
    record = Record(run=run, rule=rule, node="/".join(words[1:]), start=start)
    _write(path, record)
    try:
        yield
    except BaseException as error:
        failed = _end(begun, ok=False, error=type(error).__name__)
        _write(path, _ended(record, failed))
        raise
    inputs, outputs = _files(rule, given, manifest)
    now = hashes_of_rule(rule)
    changed = sorted(
        name for name in start.code.keys() | now.keys() if start.code.get(name) != now.get(name)
    )
    done = _end(
        begun,
        ok=True,
        inputs=inputs,
        outputs=outputs,
        code_changed=changed,
        numbers=_numbers_of(manifest),
    )
    _write(path, _ended(record, done))


def _start(rule: str, settings: Mapping[str, Any], attempt: int) -> Start:
    return Start(
        at=_now(),
        attempt=attempt,
        commit=environment.commit(),
        uncommitted=environment.uncommitted(),
        code=hashes_of_rule(rule),
        settings=public(dict(settings)),
        seeds=dict(_seeds(settings)),
        machine=Machine(
            system=environment.system(),
            processor=environment.processor(),
            processors=environment.processors(),
            python=environment.python_version(),
            libraries=environment.library_versions(),
            locks=environment.lock_hashes(),
            installed=environment.installed_hash(),
        ),
    )


def _end(begun: float, *, ok: bool, **facts: Any) -> End:
    seconds = round(time.monotonic() - begun, 3)
    return End(at=_now(), seconds=seconds, ok=ok, devices=environment.devices(), **facts)


def _ended(record: Record, end: End) -> Record:
    return Record(record.run, record.rule, record.node, record.start, end)


def _write(path: Path, record: Record) -> None:
    write_json(path, asdict(record))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _attempt(path: Path) -> int:
    """Return 1, or one more than the attempt before that did not end well."""
    try:
        before = read_record(path)
    except ArtifactError:
        return 1
    return 1 if before.end is not None and before.end.ok else before.start.attempt + 1


def _seeds(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, int]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _seeds(value, f"{prefix}{name}.")
        elif name.endswith("seed") and isinstance(value, int):
            yield f"{prefix}{name}", value


def _files(
    rule: str, given: Iterable[Path], manifest: Path | None
) -> tuple[list[RecordedFile], list[RecordedFile]]:
    """Return inputs and outputs; what the manifest hashed is not hashed again."""
    if manifest is None:
        return [], [_described(path) for path in given if path.is_file()]
    listed = read_json(manifest)
    inputs = {item["path"]: _recorded(item) for item in listed["inputs"]}
    outputs = {item["path"]: _recorded(item) for item in listed["outputs"]}
    if rule == "data":  # it writes nothing but the manifest of what it read
        inputs, outputs = outputs, {}
    for path in given:
        name = path.as_posix()
        if path.is_file() and path != manifest and name not in inputs.keys() | outputs.keys():
            inputs[name] = _described(path)
    outputs[manifest.as_posix()] = _described(manifest)
    return list(inputs.values()), list(outputs.values())


def _numbers_of(manifest: Path | None) -> dict[str, float]:
    """Return what the job counted and measured, by dotted name: counters and scores."""
    if manifest is None:
        return {}
    found = dict(_numbers(read_json(manifest)["counters"]))
    scores = manifest.parent / "scores.json"
    if scores.is_file():
        found |= _numbers({"tasks": read_json(scores).get("tasks", {})})
    return found


def _numbers(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{prefix}{name}", value


def _described(path: Path) -> RecordedFile:
    return _recorded(describe_file(path))


def _recorded(item: Mapping[str, Any]) -> RecordedFile:
    return RecordedFile(public_path(Path(item["path"])), item["bytes"], item["sha256"])
