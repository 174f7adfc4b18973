"""Did this machine reproduce the committed results? Stage by stage, and where first not.

What lies in `results/` is held against `dvc.lock` as committed, not as a run here has sealed it.
Equal bytes: reproduced exactly. Where training and what follows it gave other bytes, the numbers in
the committed records decide whether they are within tolerance.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from t5repro.config.schema import Settings
from t5repro.lineage.git import try_git
from t5repro.lineage.record import Record, parse_record, read_record
from t5repro.stages import depends_on_device
from t5repro.versions import dvc_pipeline
from t5repro.versions.lockfile import LOCK, Hasher, Locked, parse_lock
from t5repro.versions.seal import Present, present_files, same_values
from t5repro.versions.snakemake_graph import RUN_FILE, Stage, resolve

RELATIVE = 0.05  # of losses and counts
POINTS = 3.0  # of scores, which run from 0 to 100
SCORED = {"evaluate_predict": "evaluate_score"}  # texts have no distance; their scores have

Outcome = Literal["exactly", "within tolerance", "differently", "not built", "not committed"]


@dataclass(frozen=True)
class Verdict:
    """How a stage came out here."""

    stage: str
    outcome: Outcome
    why: str = ""


@dataclass(frozen=True)
class Certificate:
    """Every stage's verdict, in the order of the graph; empty without a committed lock."""

    revision: str
    verdicts: tuple[Verdict, ...]

    @property
    def first_difference(self) -> Verdict | None:
        """Return the first stage that came out differently."""
        return next((item for item in self.verdicts if item.outcome == "differently"), None)

    @property
    def holds(self) -> bool:
        """Tell whether every committed stage was reproduced, exactly or within tolerance."""
        return all(item.outcome != "differently" for item in self.verdicts)


def certify(run_file: Path = RUN_FILE, revision: str = "HEAD") -> Certificate:
    """Compare what lies here with `dvc.lock` and the records of a revision."""
    text = try_git(Path(), "show", f"{revision}:{LOCK}")
    if text is None:
        return Certificate(revision, ())
    lock = parse_lock(text.decode(), f"{LOCK} of {revision}")
    settings, stages = resolve(run_file)
    hasher = Hasher()
    present = {stage.name: present_files(stage, hasher) for stage in stages}
    verdicts: dict[str, Verdict] = {}
    for stage in reversed(stages):  # scores first: predictions ask for their verdict
        follower = verdicts.get(f"{SCORED.get(stage.rule)}-{stage.node}")
        verdicts[stage.name] = _verdict(
            settings, stage, present[stage.name], lock, hasher, revision, follower
        )
    return Certificate(revision, tuple(verdicts[stage.name] for stage in stages))


def _verdict(
    settings: Settings,
    stage: Stage,
    here: Present,
    lock: Mapping[str, Locked],
    hasher: Hasher,
    revision: str,
    follower: Verdict | None,
) -> Verdict:
    locked = lock.get(stage.name)
    if locked is None:
        return Verdict(stage.name, "not committed", f"no stage of this name in {LOCK}")
    if here.missing:
        return Verdict(stage.name, "not built", f"{here.missing[0]} is missing")
    if locked.outs.get(stage.folder) == hasher.folder(stage.folder, here.files):
        return Verdict(stage.name, "exactly")
    file = _first_file(stage, here, revision)
    if cause := _other_question(settings, stage, locked, hasher):
        return Verdict(stage.name, "differently", f"{file}; {cause}")
    if depends_on_device(stage.base):
        if follower is not None and follower.outcome in ("exactly", "within tolerance"):
            return Verdict(stage.name, "within tolerance", f"{file}; its scores agree")
        far = _far_numbers(stage, revision)
        if far is not None:
            outcome: Outcome = "differently" if far else "within tolerance"
            return Verdict(stage.name, outcome, f"{file}; {far or 'its numbers agree'}")
    return Verdict(stage.name, "differently", f"{file}; {_origin(stage, hasher, revision)}")


def _origin(stage: Stage, hasher: Hasher, revision: str) -> str:
    """Say whether a difference came in with what the stage read, or arose here."""
    for record in _committed_records(stage, revision):
        for known in record.end.inputs if record.end else ():
            found = hasher.of(known.path)
            if found and found.sha256 != known.sha256:
                return f"its input {known.path} differs already"
    return "same code, settings and inputs: this machine computes otherwise"


def _other_question(settings: Settings, stage: Stage, locked: Locked, hasher: Hasher) -> str | None:
    """Return the code, setting or raw file that is not the committed one."""
    leaves = {
        f"{stage.name}.{name}": value
        for name, value in dvc_pipeline.leaves_of(settings, stage).items()
    }
    for name in sorted(leaves.keys() | locked.params.keys()):
        both = name in leaves and name in locked.params
        if not both or not same_values({name: locked.params[name]}, {name: leaves[name]}):
            return f"setting {name.removeprefix(stage.name + '.')} is another one"
    for path in (*stage.code, *(path for path in stage.inputs if path.startswith("data/"))):
        found = hasher.of(path)
        if found is None or locked.deps.get(path) != found.md5:
            return f"{path} is not the committed one"
    return None


def _committed_records(stage: Stage, revision: str) -> list[Record]:
    texts = (try_git(Path(), "show", f"{revision}:{job.record.as_posix()}") for job in stage.jobs)
    return [parse_record(text.decode(), revision) for text in texts if text is not None]


def _first_file(stage: Stage, here: Present, revision: str) -> str:
    """Return the first file whose content is not the recorded one; the folder if none is known."""
    known = {
        item.path: item.sha256
        for record in _committed_records(stage, revision)
        if record.end
        for item in record.end.outputs
    }
    for path in sorted(here.files, key=lambda path: (path.endswith("manifest.json"), path)):
        if path in known and known[path] != here.files[path].sha256:
            return path
    return f"{stage.folder}/"


def _far_numbers(stage: Stage, revision: str) -> str | None:
    """Return the first number too far from the committed one, or ''; None if none are known."""
    committed = _numbers(_committed_records(stage, revision))
    ours = _numbers([read_record(job.record) for job in stage.jobs if job.record.is_file()])
    if not committed or not ours:
        return None
    for name, value in sorted(committed.items()):
        near = name in ours and (
            math.isclose(value, ours[name], rel_tol=RELATIVE)
            or (name.startswith("tasks.") and abs(value - ours[name]) <= POINTS)
        )
        if not near:
            return f"{name} is {ours.get(name)}, committed is {value}"
    return ""


def _numbers(records: list[Record]) -> dict[str, float]:
    return {
        name: value
        for record in records
        if record.end
        for name, value in record.end.numbers.items()
    }


def certificate_text(certificate: Certificate) -> str:
    """Return the certificate as a person reads it."""
    if not certificate.verdicts:
        return (
            f"no certificate: {certificate.revision} has no {LOCK} to compare with; commit the one "
            "that this run has sealed"
        )
    lines = [f"reproduction of {LOCK} at {certificate.revision}"]
    for item in certificate.verdicts:
        why = f": {item.why}" if item.why else ""
        lines.append(f"  {item.stage:32} {item.outcome}{why}")
    first = certificate.first_difference
    lines.append(
        f"first difference: {first.stage}, {first.why}"
        if first
        else "no stage came out differently"
    )
    return "\n".join(lines)
