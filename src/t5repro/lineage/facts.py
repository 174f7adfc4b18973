"""The facts of a job, from any source, and the one comparison of two jobs.

A record, a manifest, an entry of `dvc.lock` and a checkout each tell some facts about a job: its
settings, code, files, environment and numbers. Wherever two of them are compared, as by `verify`,
`diff`, `seal` and the certificate, `differences` compares them.

A fact that one side does not know does not count as a difference: `unknown_facts` lists it.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from t5repro.lineage.dvc_lock import LockedStage
from t5repro.lineage.findings import differing
from t5repro.lineage.graph import DATA, Artifact, Job
from t5repro.lineage.record import End, Machine, Record, known_facts, numbers_in
from t5repro.lineage.redaction import same_value
from t5repro.lineage.sources import CLOSURES, closure_path, closure_text

ENVIRONMENT_AT_END = ("foreign", "shared_libraries", "forged_byte_code", "devices")
NOT_REQUIRED = ("installed", "devices")  # they repeat others, or depend on the rule
NOUNS = {
    "settings": "setting",
    "inputs": "input",
    "definitions": "code",
    "sources": "source file",
    "locked_code": "code",
    "rule_files": "rule file",
    "imported": "imported file",
    "environment": "environment",
    "numbers": "number",
    "outputs": "output",
}
FILES = ("rule_files", "imported", "inputs", "outputs")


@dataclass(frozen=True)
class JobFacts:
    """Causes and results of a job; None for unknown ones.

    Attributes:
        settings: dotted name -> value.
        definitions: source file -> hash of the definitions that the job reached.
        sources: source file -> SHA-256 of its bytes.
        locked_code: file that stands for the code -> MD5.
        rule_files: rule file -> hash of its text.
        imported: imported file of this package outside of the closure -> SHA-256.
        inputs: file -> SHA-256.
        outputs: file -> SHA-256.
        environment: fact -> value, of those that are known.
        numbers: name -> value of counters and scores.
    """

    settings: Mapping[str, Any] | None = None
    definitions: Mapping[str, str | None] | None = None
    sources: Mapping[str, str | None] | None = None
    locked_code: Mapping[str, str | None] | None = None
    rule_files: Mapping[str, str | None] | None = None
    imported: Mapping[str, str | None] | None = None
    inputs: Mapping[str, str | None] | None = None
    outputs: Mapping[str, str | None] | None = None
    environment: Mapping[str, Any] | None = None
    numbers: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Difference:
    """One fact that two sides tell differently.

    Attributes:
        fact: the attribute of `JobFacts`.
        name: the setting, file, number or part of the environment.
        first: its value on the first side; None if it is absent there.
        second: its value on the second side.
    """

    fact: str
    name: str
    first: Any
    second: Any

    @property
    def shown(self) -> tuple[str, str]:
        """Both values as text: hashes are shortened, but so that the difference can be seen."""
        if _is_hash(self.first) and _is_hash(self.second):
            return differing(self.first, self.second)
        return _shown(self.first), _shown(self.second)

    def text(self, first: str, second: str) -> str:
        """Return the difference as text.

        Args:
            first: the first side, such as "in the record".
            second: the second side.
        """
        value, other_value = self.shown
        return f"{NOUNS[self.fact]} {self.name} is {value} {first}, {other_value} {second}"


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and len(value) in (32, 64) and value.isalnum()


def _shown(value: Any) -> str:
    if value is None:
        return "absent"
    return value[:12] if _is_hash(value) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def differences(first: JobFacts, second: JobFacts, *facts: str) -> list[Difference]:
    """Return where two sides differ, by fact and name.

    Args:
        first: the side that may be redacted, as a record is.
        second: the other side.
        facts: attributes of `JobFacts` to compare; all of them by default.
    """
    result = []
    # In the order of causes before results, so the first difference is the likeliest cause.
    for fact in facts or NOUNS:
        values, other_values = getattr(first, fact), getattr(second, fact)
        if values is None or other_values is None:
            continue
        if fact == "environment":  # a record of an older format has fewer facts
            common = values.keys() & other_values.keys()
            values, other_values = (
                dict(leaves({name: side[name] for name in common}))
                for side in (values, other_values)
            )
        result += [
            Difference(fact, name, values.get(name), other_values.get(name))
            for name in sorted(values.keys() | other_values.keys())
            if not (name in values and name in other_values)
            or not _same(values[name], other_values[name])
        ]
    return result


def _same(value: Any, other_value: Any) -> bool:
    """Compare two values; `dvc.lock` has lists and nothing as JSON text."""
    try:
        if isinstance(value, str) and _is_list(other_value):
            value = json.loads(value)
        elif isinstance(other_value, str) and _is_list(value):
            other_value = json.loads(other_value)
    except ValueError:
        return False
    # NaN differs from itself; two diverged trainings agree in it.
    is_nan = value != value and other_value != other_value
    # A redacted value is a hash: `same_value` compares it with the hash of the other one.
    return is_nan or same_value(value, other_value)


def _is_list(value: Any) -> bool:
    return value is None or isinstance(value, list | tuple)


def unknown_facts(first: JobFacts, second: JobFacts, *facts: str) -> list[str]:
    """Return in words the facts that one of two sides does not know."""
    unknown = []
    for fact in facts:
        values, other_values = getattr(first, fact), getattr(second, fact)
        if values is None or other_values is None:
            unknown.append(f"{NOUNS[fact]}s" if fact in FILES else NOUNS[fact])
        elif fact == "environment":
            unknown += [
                name.replace("_", " ")
                for name in ENVIRONMENT
                if name not in values or name not in other_values
            ]
    return unknown


def unlike_packages(first: JobFacts, second: JobFacts) -> list[str]:
    """Return the packages that both sides have, with other files."""
    return [
        difference.name.removeprefix(PACKAGES)
        for difference in differences(first, second, "environment")
        if difference.name.startswith(PACKAGES)
        # A package of only one side is an addition or a removal, not other files.
        and None not in (difference.first, difference.second)
    ]


PACKAGES = "packages."
ENVIRONMENT = tuple(
    name
    for name in (*Machine.__dataclass_fields__, *ENVIRONMENT_AT_END)
    if name not in NOT_REQUIRED
)


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted name and value of the leaves of nested mappings, sorted."""
    for name in sorted(values):
        if isinstance(values[name], Mapping):
            yield from leaves(values[name], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", values[name]


def facts_of_record(record: Record) -> JobFacts:
    """Return the facts in a record."""
    start, end = record.start, record.end
    code = closure_path(record.rule).as_posix()
    return JobFacts(
        settings=dict(leaves(start.settings)),
        definitions=start.closure,
        sources=start.code,
        locked_code={code: closure_md5(start.closure)} if start.closure is not None else None,
        rule_files=start.workflow,
        imported=end.imported if end else None,
        inputs={file.path: file.sha256 for file in end.inputs} if end else None,
        outputs={file.path: file.sha256 for file in end.outputs} if end else None,
        environment=_environment(start.machine, end),
        numbers=end.numbers if end else None,
    )


def closure_md5(closure: Mapping[str, str]) -> str:
    """Return the MD5 of the file that stands for a closure."""
    text = closure_text(dict(sorted(closure.items())))
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _environment(machine: Machine, end: End | None) -> dict[str, Any]:
    values = known_facts(machine) | {
        name: value
        for name, value in (known_facts(end) if end else {}).items()
        if name in ENVIRONMENT_AT_END
    }
    # An empty text is a fact that the job could not find out.
    return {name: value for name, value in values.items() if value != ""}


def facts_of_manifest(job: Job) -> JobFacts:
    """Return the facts in the manifest of a job."""
    inputs, outputs = job.inputs, job.outputs
    if job.rule == DATA:  # its manifest lists the raw files as outputs, but the rule reads them
        # The manifest itself is the last output.
        inputs, outputs = outputs[:-1], outputs[-1:]
    return JobFacts(
        settings=dict(leaves(received_settings(job))),
        inputs=hashes_of(inputs),
        outputs=hashes_of(outputs),
        numbers=dict(numbers_in(job.counters)),
    )


def hashes_of(artifacts: tuple[Artifact, ...]) -> dict[str, str]:
    """Return path -> SHA-256."""
    return {artifact.path: artifact.sha256 for artifact in artifacts}


def facts_of_job(job: Job) -> JobFacts:
    """Return the facts in the manifest of a job, and in its record on code and environment."""
    listed = facts_of_manifest(job)
    if job.record is None:
        return listed
    return replace(
        # Both files name settings and files; the manifest is the one that later jobs read.
        facts_of_record(job.record),
        settings=listed.settings,
        inputs=listed.inputs,
        outputs=listed.outputs,
        numbers=listed.numbers,
    )


def received_settings(job: Job) -> Mapping[str, Any]:
    """Return the settings in a manifest, without the defaults that the job did not receive."""
    # Only the report writes all settings into its manifest, with those that no job receives.
    if job.rule != "report":
        return job.settings
    from t5repro.config.stage_settings import received  # imports all settings, which takes longer

    try:
        return received(job.rule, dict(job.settings))
    except (KeyError, TypeError, AttributeError):  # an altered manifest
        return job.settings


def facts_of_lock(stage: LockedStage, name: str) -> JobFacts:
    """Return the facts in the entry of a stage in `dvc.lock`."""
    params = {leaf.removeprefix(f"{name}."): value for leaf, value in stage.params.items()}
    return JobFacts(settings=settings_of_params(params), locked_code=locked_code(stage))


def settings_of_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted name -> value of settings in which mappings are JSON text, as for DVC."""
    return dict(leaves({name: _decoded(value) for name, value in params.items()}))


def _decoded(value: Any) -> Any:
    """Return the mapping that a JSON text has; other values as they are."""
    if not (isinstance(value, str) and value.startswith("{")):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def locked_code(stage: LockedStage) -> dict[str, str]:
    """Return path -> MD5 of the code among the dependencies of a stage.

    That is one file of hashes per rule; older revisions list the source files themselves.
    """
    folder = f"{CLOSURES.as_posix()}/"
    return {
        path: md5
        for path, md5 in stage.deps.items()
        if path.startswith(folder) or path.endswith(".py")
    }
