"""Checks of what a job ran besides its closure, by its record.

These are the rule files, the command line and the other imported files of this package, the run
file, modules that no package has, and altered files of packages. An edit of a rule file or of the
command line usually changes no number, and nothing reruns. So a file that is the one of the job's
commit is reported as changed since then, without failing; a file that is in no commit is a finding.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t5repro.errors import SettingsError
from t5repro.lineage.facts import Difference, JobFacts, differences, facts_of_record, leaves
from t5repro.lineage.findings import CODE, FOREIGN, SETTINGS, SINCE, Finding
from t5repro.lineage.git import project_prefix, try_git
from t5repro.lineage.graph import Job
from t5repro.lineage.record import Record
from t5repro.lineage.redaction import redact
from t5repro.lineage.sources import source_path
from t5repro.lineage.workflow_files import rule_text_hash
from t5repro.stages import BY_NAME

if TYPE_CHECKING:  # the settings take longer to import than a whole check without them
    from t5repro.config.schema import Settings

# Files of this package that a job imports outside of its closure: they parse, check and record,
# the settings that they pass on are in the record, and Spark changes no byte; `published` checks
# the name of a row. Any other is named.
EXPLAINED = (
    *("__main__.py", "c4/spark/", "cli/", "config/", "jobs/", "lineage/", "published/"),
    *("artifacts.py", "progress.py", "stages.py", "strict_json.py"),
    *("task_facts.py", "task_groups.py", "task_table.py"),
)
SOURCES = "src/t5repro/"
MAX_LEAVES_SHOWN = 3


def check_other_code(root: Path, jobs: Iterable[Job]) -> Iterator[Finding]:
    """Check what each job of a working tree ran besides its closure.

    Args:
        root: the checkout.
        jobs: its jobs, with their records, in the order of the chain.
    """
    files = _Files(root)
    recorded = [(job, job.record) for job in jobs if job.record is not None]
    for job, record in recorded:
        recorded_facts = facts_of_record(record)
        current = JobFacts(
            rule_files={
                name: files.hash_now(name, _rule_hash) for name in recorded_facts.rule_files or ()
            },
            imported={name: files.hash_now(name, _hash) for name in recorded_facts.imported or ()},
        )
        for difference in differences(recorded_facts, current, "rule_files", "imported"):
            # An edit after the run is normal work; a file that no commit has cannot be inspected.
            yield _of_commit_or_unknown(job, difference, record.start.commit or "", files)
        yield from foreign_code(job.name, record)
    yield from _check_run_files(root, recorded, files)


def _rule_hash(data: bytes) -> str:
    return rule_text_hash(data.decode(errors="surrogateescape"))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


HashOf = Callable[[bytes], str]


class _Files:
    """Hashes of files of a checkout, now and at a commit; most jobs ask for the same ones."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._prefix = project_prefix(root)
        self._hashes: dict[tuple[str, str, HashOf], str | None] = {}

    def hash_now(self, name: str, hash_of: HashOf) -> str | None:
        """Return the hash of a file; None if there is none."""
        key = ("", name, hash_of)
        if key not in self._hashes:
            path = self._root / source_path(self._root, name)
            self._hashes[key] = hash_of(path.read_bytes()) if path.is_file() else None
        return self._hashes[key]

    def hash_at(self, commit: str, name: str, hash_of: HashOf) -> str | None:
        """Return the hash of a file at a commit; None if git does not have it."""
        key = (commit, name, hash_of)
        if key not in self._hashes:
            # A record is data: its commit must not be an option of git.
            path = f"{commit}:{self._prefix}{name}"
            data = try_git(self._root, "show", path) if commit.isalnum() else None
            self._hashes[key] = None if data is None else hash_of(data)
        return self._hashes[key]


def _of_commit_or_unknown(job: Job, difference: Difference, commit: str, files: _Files) -> Finding:
    """Return a finding about a file that is another one now, by whether the commit has it."""
    name, sha256 = difference.name, difference.first
    hash_of = _rule_hash if difference.fact == "rule_files" else _hash
    if files.hash_at(commit, name, hash_of) == sha256:
        message = (
            f"{job.name} ran the one of commit {commit[:12]}; git diff {commit[:12]} -- {name} "
            "shows what has changed"
        )
        return Finding(SINCE, name, job.name, message)
    message = (
        f"{job.name} ran {difference.shown[0]}, which is neither the file as it is now nor the one "
        f"of commit {commit[:12] or 'unknown'}; rerun the job"
    )
    return Finding(CODE, name, job.name, message)


def foreign_code(job: str, record: Record) -> Iterator[Finding]:
    """Report code of a job that is neither its closure, nor a package as installed, nor explained.

    Args:
        job: its name in messages.
        record: its record.
    """
    machine, end = record.start.machine, record.end
    for name in (end.imported if end else None) or ():
        if not name.removeprefix(SOURCES).startswith(EXPLAINED):
            message = f"{job} imported it, but it is not in the closure of its rule; rerun the job"
            yield Finding(FOREIGN, name, job, message)
    modules = {**(machine.start_files or {}), **((end.foreign if end else None) or {})}
    for name, sha256 in modules.items():
        message = (
            f"{job} ran it ({sha256[:12]}), but neither this package nor an installed one has it; "
            "remove it and rerun the job"
        )
        yield Finding(FOREIGN, name, job, message)
    for name in (end.forged_byte_code if end else None) or ():
        message = (
            f"{job} ran byte code that is not that of the source; delete the folder __pycache__ "
            "beside it and rerun the job"
        )
        yield Finding(CODE, name, job, message)
    for name in machine.altered or ():
        message = (
            f"differed from its package when {job} ran; install the packages again (make setup in "
            "a new environment) and rerun the job"
        )
        yield Finding(FOREIGN, name, job, message)


def _check_run_files(
    root: Path, recorded: list[tuple[Job, Record]], files: _Files
) -> Iterator[Finding]:
    """Compare the settings of jobs with their run files, if one of them has changed since."""
    settings: dict[str, Settings | SettingsError] = {}
    for job, record in recorded:
        run = record.start.run_file
        if run is None or not all((root / name).is_file() for name in run.names):
            continue
        if all(files.hash_now(name, _hash) == sha256 for name, sha256 in run.hashes.items()):
            continue
        key = json.dumps([run.names, run.overrides], sort_keys=True)
        # All jobs of a run share the run files, which take longer to load than all else here.
        if key not in settings:
            # Inside, because most checks never need the settings.
            from t5repro.config.load import load_run_files

            try:
                settings[key] = load_run_files([root / name for name in run.names], run.overrides)
            except SettingsError as error:
                settings[key] = error
        yield from _check_settings(job, record, " ".join(run.names), settings[key])


def _check_settings(
    job: Job, record: Record, run_file: str, settings: "Settings | SettingsError"
) -> Iterator[Finding]:
    from t5repro.config.experiments import names_at, settings_by_name
    from t5repro.config.stage_settings import stage_settings

    if isinstance(settings, SettingsError):
        yield Finding(SETTINGS, run_file, job.name, str(settings))
        return
    node = record.node.partition("/")[0]
    settings_at = settings_by_name(settings)
    names = names_at(settings, job.rule, settings_at)
    if BY_NAME[job.rule].per_experiment and node not in names:
        yield Finding(
            SETTINGS, run_file, job.name, f"it has no experiment {node!r}; {job.name} had"
        )
        return
    expected = settings_at(node if BY_NAME[job.rule].per_experiment else names[0])
    expected_settings = redact(stage_settings(expected, job.rule))
    recorded_settings = _with_later_settings(job.rule, record.start.settings)
    differing = differences(
        JobFacts(settings=dict(leaves(recorded_settings))),
        JobFacts(settings=dict(leaves(expected_settings))),
        "settings",
    )
    if differing:
        text = "; ".join(
            difference.text(f"in {job.name}", "now") for difference in differing[:MAX_LEAVES_SHOWN]
        )
        more = len(differing) - MAX_LEAVES_SHOWN
        message = f"{text}{f' and {more} more' if more > 0 else ''}; rerun it"
        yield Finding(SETTINGS, run_file, job.name, message)


def _with_later_settings(rule: str, recorded_settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of a job, with the defaults of those that did not exist when it ran."""
    from t5repro.config.presets.sizes import SIZES
    from t5repro.config.stage_settings import received
    from t5repro.config.validation import parse_stage

    model = recorded_settings.get("model") or {}
    if size := SIZES.get(str(model.get("published", ""))):
        # Later settings of a network have the values of its published size.
        model = {**size.model_dump(mode="json"), **model}
        recorded_settings = {**recorded_settings, "model": model}
    try:
        parsed = parse_stage(rule, json.dumps(recorded_settings))
    except SettingsError:
        return recorded_settings  # a setting has another name or is no longer allowed: a difference
    values: Mapping[str, Any] = redact(received(rule, parsed.model_dump(mode="json")))
    return values
