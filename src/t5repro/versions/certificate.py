"""The reproduction certificate: which stages of a committed lock this machine has reproduced.

The results in the working tree are compared with `dvc.lock` as committed at a revision, not as a
run here has sealed it. Equal bytes are an exact reproduction. If a stage depends on float32 sums
and has other bytes, the numbers in its committed records decide whether it is within tolerance.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from t5repro.config.schema import Settings
from t5repro.lineage.dvc_lock import LOCK_FILE, Lock, LockedStage, parse_lock
from t5repro.lineage.git import file_at
from t5repro.lineage.record import Record, parse_record, read_record
from t5repro.lineage.sources import differing_files
from t5repro.lineage.tolerance import numbers_agree
from t5repro.stages import depends_on_device
from t5repro.versions import dvc_pipeline
from t5repro.versions.proof import Checkout, StageFiles, files_of_stage, md5_of_folder, same_values
from t5repro.versions.snakemake_graph import RUN_FILE, PlannedStage, resolve

SCORED_BY = {"evaluate_predict": "evaluate_score"}  # texts have no distance; their scores do

Outcome = Literal["exactly", "within tolerance", "differently", "not built", "not committed"]


@dataclass(frozen=True)
class StageVerdict:
    """The outcome of a stage; `why` explains every outcome but an exact one."""

    stage: str
    outcome: Outcome
    why: str = ""


@dataclass(frozen=True)
class Certificate:
    """The verdicts of all stages in the order of the graph; none without a committed lock."""

    revision: str
    verdicts: tuple[StageVerdict, ...]

    @property
    def first_difference(self) -> StageVerdict | None:
        """The first stage that came out differently."""
        return next((v for v in self.verdicts if v.outcome == "differently"), None)

    @property
    def holds(self) -> bool:
        """Whether no committed stage came out differently."""
        return self.first_difference is None

    def to_text(self) -> str:
        """Return the certificate as human-readable text."""
        if not self.verdicts:
            return (
                f"no certificate: {self.revision} has no {LOCK_FILE} to compare with; commit the "
                "one that this run has sealed"
            )
        lines = [f"reproduction of {LOCK_FILE} at {self.revision}"]
        for verdict in self.verdicts:
            why = f": {verdict.why}" if verdict.why else ""
            lines.append(f"  {verdict.stage:32} {verdict.outcome}{why}")
        first = self.first_difference
        if first:
            lines.append(f"first difference: {first.stage}, {first.why}")
        else:
            lines.append("no stage came out differently")
        return "\n".join(lines)


@dataclass(frozen=True)
class _Comparison:
    """The two sides of a certificate: a committed lock with its records, and the checkout."""

    revision: str
    lock: Lock
    settings: Settings
    checkout: Checkout

    def verdict(
        self, stage: PlannedStage, files: StageFiles, score: StageVerdict | None
    ) -> StageVerdict:
        """Return the verdict about a stage.

        Args:
            stage: the stage.
            files: the files in its folder.
            score: the verdict about the stage that scores its outputs, if there is one.
        """
        locked = self.lock.stages.get(stage.name)
        if locked is None:
            why = f"no stage of this name in {LOCK_FILE}"
            return StageVerdict(stage.name, "not committed", why)
        if files.missing:
            return StageVerdict(stage.name, "not built", f"{files.missing[0]} is missing")
        if locked.outs.get(stage.folder) == md5_of_folder(stage, files):
            return StageVerdict(stage.name, "exactly")
        file = self._first_differing_file(stage, files)
        # Another setting or code is another experiment, whose numbers no tolerance applies to.
        if cause := self._changed_question(stage, locked):
            return StageVerdict(stage.name, "differently", f"{file}; {cause}")
        if depends_on_device(stage.table_name):
            if score is not None and score.outcome in ("exactly", "within tolerance"):
                return StageVerdict(stage.name, "within tolerance", f"{file}; its scores agree")
            if (difference := self._first_differing_number(stage)) is not None:
                outcome: Outcome = "differently" if difference else "within tolerance"
                why = f"{file}; {difference or 'its numbers agree'}"
                return StageVerdict(stage.name, outcome, why)
        return StageVerdict(stage.name, "differently", f"{file}; {self._origin(stage)}")

    def _first_differing_file(self, stage: PlannedStage, files: StageFiles) -> str:
        """Return the first file that differs from the records; the folder if none is known."""
        recorded = {
            output.path: output.sha256
            for record in self._committed_records(stage)
            if record.end
            for output in record.end.outputs
        }
        # Manifests last: they only repeat the hashes of the others.
        for path in sorted(files.files, key=lambda path: (path.endswith("manifest.json"), path)):
            if path in recorded and recorded[path] != files.files[path].sha256:
                return path
        return f"{stage.folder}/"

    def _changed_question(self, stage: PlannedStage, locked: LockedStage) -> str | None:
        """Return the setting, code or raw file that differs from the committed one."""
        leaves = dvc_pipeline.leaves_of(self.settings, stage)
        params = {f"{stage.name}.{name}": value for name, value in leaves.items()}
        for name in sorted(params.keys() | locked.params.keys()):
            is_common = name in params and name in locked.params
            if not is_common or not same_values({name: locked.params[name]}, {name: params[name]}):
                setting = name.removeprefix(f"{stage.name}.")
                return f"setting {setting} differs from the committed one"
        raw_files = (path for path in stage.inputs if path.startswith("data/"))
        for path in (*stage.code, *raw_files):
            if locked.deps.get(path) != self.checkout.hasher.md5(path):
                source = self._changed_source(stage, path) if path in stage.code else path
                return f"{source} is not the committed one"
        return None

    def _changed_source(self, stage: PlannedStage, code_file: str) -> str:
        """Return the first source file that differs; the code file itself if none is known."""
        data = file_at(Path(), self.revision, code_file)
        if data is None:
            return code_file
        sources = differing_files(json.loads(data), self.checkout.closure(stage.table_name))
        return sources[0] if sources else code_file

    def _first_differing_number(self, stage: PlannedStage) -> str | None:
        """Return the first number outside of its tolerance, or ''; None if no numbers are known."""
        expected = _numbers(self._committed_records(stage))
        actual = _numbers([read_record(j.record) for j in stage.jobs if j.record.is_file()])
        if not expected or not actual:
            return None
        for name, value in sorted(expected.items()):
            if name not in actual or not numbers_agree(name, value, actual[name]):
                return f"{name} is {actual.get(name)}, committed is {value}"
        return ""

    def _origin(self, stage: PlannedStage) -> str:
        """Return whether the difference came with an input, or arose on this machine."""
        for record in self._committed_records(stage):
            for file in record.end.inputs if record.end else ():
                sha256 = self.checkout.hasher.sha256(file.path)
                if sha256 and sha256 != file.sha256:
                    return f"its input {file.path} differs already"
        return "same code, settings and inputs: this machine computes different bytes"

    def _committed_records(self, stage: PlannedStage) -> list[Record]:
        contents = (file_at(Path(), self.revision, job.record.as_posix()) for job in stage.jobs)
        return [parse_record(data.decode(), self.revision) for data in contents if data is not None]


def _numbers(records: list[Record]) -> Mapping[str, float]:
    return {
        name: value
        for record in records
        if record.end
        for name, value in record.end.numbers.items()
    }


def certify(run_file: Path = RUN_FILE, revision: str = "HEAD") -> Certificate:
    """Compare the results in the working tree with `dvc.lock` and the records of a revision."""
    lock = file_at(Path(), revision, LOCK_FILE)
    if lock is None:
        return Certificate(revision, ())
    settings, stages = resolve(run_file)
    comparison = _Comparison(revision, parse_lock(lock), settings, Checkout())
    verdicts: dict[str, StageVerdict] = {}
    for stage in reversed(stages):  # the verdict about predictions needs that about their scores
        files = files_of_stage(stage, comparison.checkout.hasher)
        score = verdicts.get(f"{SCORED_BY.get(stage.rule)}-{stage.node}")
        verdicts[stage.name] = comparison.verdict(stage, files, score)
    return Certificate(revision, tuple(verdicts[stage.name] for stage in stages))
