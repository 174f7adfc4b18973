"""Writes the record of a job while it runs; see `lineage.record`."""

import contextlib
import resource
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from t5repro.errors import ArtifactError
from t5repro.files import describe_file, read_json, write_json
from t5repro.lineage import environment, startup
from t5repro.lineage.packages import Installed, installed, interpreter_hash
from t5repro.lineage.record import (
    End,
    Machine,
    Record,
    RecordedFile,
    Start,
    numbers_of,
    read_record,
    record_path,
    seeds_in,
)
from t5repro.lineage.redaction import redact, redact_path
from t5repro.lineage.run_lock import job_lock
from t5repro.lineage.sources import (
    SourceTree,
    closure,
    differing_files,
    hashes_of_rule,
    write_closure,
)
from t5repro.lineage.workflow_files import rule_file_hashes, run_file


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
        files: all files on its command line: inputs, unless the manifest lists them as outputs.
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
    write_json(path, record.to_json())
    # The code may have changed since the graph was planned. Snakemake hashes inputs when the job
    # ends; they must be those of the code that it runs.
    write_closure(rule, start.closure or {})
    try:
        yield
    except BaseException as error:  # SIGTERM and Ctrl-C end a job as well
        end = _end(clock_start, start, packages, ok=False, error=type(error).__name__)
        write_json(path, replace(record, end=end).to_json())
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
        code_changed=_changed_code(rule, start.closure or {}),
        numbers=numbers_of(manifest) if manifest else {},
    )
    write_json(path, replace(record, end=end).to_json())


def _changed_code(rule: str, closure_at_start: Mapping[str, str]) -> list[str]:
    """Return the source files that changed while the job ran."""
    try:
        return differing_files(closure_at_start, closure(rule))
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
        cpu_seconds=round(_processor_seconds(), 3),
        devices=environment.devices(),
        imported=startup.own_modules(start.code),
        foreign=startup.foreign_modules(packages),
        shared_libraries=startup.shared_libraries(packages),
        forged_byte_code=startup.forged_byte_code(),
        **facts,
    )


def _processor_seconds() -> float:
    """Return what this process and its ended children have spent so far, imports included."""
    spent = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def _current_time() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _attempt(path: Path) -> int:
    """Return 1 after a successful attempt or none, else the number of the last attempt plus 1."""
    try:
        previous = read_record(path)
    except ArtifactError:
        return 1
    return 1 if previous.end is not None and previous.end.ok else previous.start.attempt + 1


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
