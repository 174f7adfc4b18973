"""The committed run that a certificate compares with: `dvc.lock` and the records of a revision."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from t5repro.artifacts import MANIFEST
from t5repro.config.schema import Settings
from t5repro.errors import ArtifactError
from t5repro.files import read_json
from t5repro.lineage.dvc_lock import LOCK_FILE, Lock
from t5repro.lineage.facts import JobFacts, differences
from t5repro.lineage.git import file_at
from t5repro.lineage.record import Record, numbers_of, record_in
from t5repro.lineage.record_index import Index, index_path, parse_index
from t5repro.lineage.store import RECORDS, Revision
from t5repro.strict_json import parse_json
from t5repro.versions.proof import Checkout, StageFiles, changed_question
from t5repro.versions.snakemake_graph import PlannedStage


@dataclass(frozen=True)
class CommittedRun:
    """The lock and the records of a revision.

    Attributes:
        revision: a git revision.
        lock: its `dvc.lock`.
        run: name of the run.
    """

    revision: str
    lock: Lock
    run: str
    _records: dict[str, list[Record]] = field(default_factory=dict)

    def records(self, stage: PlannedStage) -> list[Record]:
        """Return the committed records of the jobs of a stage."""
        # Read once: several questions about a stage need them, and git is asked for each file.
        if stage.name not in self._records:
            paths = {job.record.as_posix() for job in stage.jobs}
            # A stage may be committed with fewer jobs than are planned here.
            present = paths.intersection(self._files.names(RECORDS, ".json"))
            self._records[stage.name] = [record_in(self._files, path) for path in sorted(present)]
        return self._records[stage.name]

    def numbers(self, stage: PlannedStage) -> Mapping[str, float]:
        """Return the numbers in the committed records of a stage.

        Raises:
            ArtifactError: the records are not of the committed lock.
        """
        if fault := self._record_fault(stage):
            raise ArtifactError(f"{fault}; its numbers cannot be judged, so bytes must be equal")
        return {
            name: value
            for record in self.records(stage)
            if record.end
            for name, value in record.end.numbers.items()
        }

    def _record_fault(self, stage: PlannedStage) -> str | None:
        """Return why the committed records of a stage are not of the committed lock."""
        # Lock, index and records are three files: each must be the one that the next names.
        sealed = self._index.get(stage.name)
        if sealed is None:
            return f"{self._index_path} at {self.revision} has no stage {stage.name}"
        if sealed.md5 != self.lock.stages[stage.name].outs.get(stage.folder):
            return f"{self._index_path} at {self.revision} is of another {LOCK_FILE}"
        for job in stage.jobs:
            path = job.record.as_posix()
            data = file_at(Path(), self.revision, path)
            if data is None or hashlib.sha256(data).hexdigest() != sealed.records.get(path):
                return f"{path} at {self.revision} is not the record of {self._index_path}"
        return None

    @cached_property
    def _files(self) -> Revision:
        return Revision(Path(), self.revision)

    @property
    def _index_path(self) -> str:
        return index_path(self.run)

    @cached_property
    def _index(self) -> Index:
        data = file_at(Path(), self.revision, self._index_path)
        return {} if data is None else parse_index(data, f"{self._index_path} at {self.revision}")

    def first_differing_file(self, stage: PlannedStage, files: StageFiles) -> str:
        """Return the first file that differs from the records; the folder if none is known."""
        recorded = {
            output.path: output.sha256
            for record in self.records(stage)
            if record.end
            for output in record.end.outputs
        }
        # Manifests last: they only repeat the hashes of the others.
        for path in sorted(files.files, key=lambda path: (path.endswith(MANIFEST), path)):
            if path in recorded and recorded[path] != files.files[path].sha256:
                return path
        return f"{stage.folder}/"

    def first_differing_input(self, stage: PlannedStage, checkout: Checkout) -> str | None:
        """Return the first input that exists and has other bytes than the committed job read."""
        for path, committed in self._inputs(stage).items():
            sha256 = checkout.hasher.sha256(path)
            # An absent input tells nothing: results may be pulled without it.
            if sha256 and sha256 != committed:
                return path
        return None

    def changed_question(
        self, settings: Settings, stage: PlannedStage, checkout: Checkout
    ) -> str | None:
        """Return the setting, code or raw file that differs from the committed one."""
        locked = self.lock.stages[stage.name]
        changed = changed_question(settings, stage, locked, checkout.hasher)
        if changed is not None and changed.fact == "locked_code":
            source = self._changed_source(changed.name, checkout.closure(stage.table_name))
            return f"{source} is not the committed one"
        if changed is not None:
            return changed.text("as committed", "here")
        # Other inputs are results: their difference has an origin of its own. The lock may know
        # only the folder of a raw file, so the records tell.
        read = self._inputs(stage)
        for path in (path for path in stage.inputs if path.startswith("data/")):
            if read.get(path) != checkout.hasher.sha256(path):
                return f"{path} is not the committed one"
        return None

    def _inputs(self, stage: PlannedStage) -> dict[str, str]:
        """Return path -> SHA-256 of the files that the committed jobs of a stage read."""
        summaries = (record.end for record in self.records(stage))
        return {file.path: file.sha256 for end in summaries if end for file in end.inputs}

    def _changed_source(self, code_file: str, closure: dict[str, str]) -> str:
        """Return the first source file that differs; the code file itself if none is known."""
        data = file_at(Path(), self.revision, code_file)
        # Without the committed file only its name can be told.
        if data is None:
            return code_file
        committed = JobFacts(definitions=parse_json(data))
        changed = differences(committed, JobFacts(definitions=closure), "definitions")
        return changed[0].name if changed else code_file


def numbers_here(stage: PlannedStage, files: StageFiles) -> Mapping[str, float]:
    """Return the numbers of a stage in the checkout, from its manifests and scores.

    Raises:
        ArtifactError: a file is not the one that its job wrote.
    """
    numbers: dict[str, float] = {}
    for job in stage.jobs:
        for manifest in (path for path in job.outputs if path.endswith(MANIFEST)):
            for output in read_json(Path(manifest))["outputs"]:
                hashes = files.files.get(output["path"])
                # Numbers of a manifest count only if its files are the ones it describes.
                if hashes and hashes.sha256 != output["sha256"]:
                    raise ArtifactError(
                        f"{output['path']} is not the file that its job wrote; rerun {stage.name}"
                    )
            numbers |= numbers_of(Path(manifest))
    return numbers
