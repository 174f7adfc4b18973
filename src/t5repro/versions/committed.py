"""The committed run that a certificate compares with: `dvc.lock` and the records of a revision.

The run in the checkout may have another name and another engine than the committed one. Paths in
committed records are then read as paths of the run here, and settings here are compared as if the
run had the committed name and engine.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from t5repro.artifacts import MANIFEST
from t5repro.config.schema import Settings
from t5repro.config.sections.devices import EngineName
from t5repro.errors import ArtifactError
from t5repro.files import read_file, read_json
from t5repro.lineage.dvc_lock import LOCK_FILE, Lock
from t5repro.lineage.facts import JobFacts, differences, facts_of_lock
from t5repro.lineage.git import file_at
from t5repro.lineage.record import Record, numbers_of, record_in
from t5repro.lineage.record_index import Index, index_path, parse_index
from t5repro.lineage.store import RECORDS, RESULTS, Revision
from t5repro.strict_json import parse_json
from t5repro.versions.proof import Checkout, StageFiles, changed_question
from t5repro.versions.snakemake_graph import PlannedStage

ENGINE = "devices.engine"


@dataclass(frozen=True)
class CommittedRun:
    """The lock and the records of a revision.

    Attributes:
        revision: a git revision.
        lock: its `dvc.lock`.
        run: name of the run in the checkout.
    """

    revision: str
    lock: Lock
    run: str
    _records: dict[str, list[Record]] = field(default_factory=dict)

    @cached_property
    def name(self) -> str:
        """Its name."""
        folders = (Path(path).parts for stage in self.lock.stages.values() for path in stage.outs)
        return next((parts[1] for parts in folders if parts[0] == RESULTS), self.run)

    @cached_property
    def engine(self) -> EngineName | None:
        """The engine that its trainings ran on; None if it has none."""
        facts = (facts_of_lock(stage, name) for name, stage in self.lock.stages.items())
        settings = (stage_facts.settings or {} for stage_facts in facts)
        return next((leaves[ENGINE] for leaves in settings if ENGINE in leaves), None)

    def in_its_words(self, settings: Settings) -> Settings:
        """Return settings of the run here as if it had the committed name and engine."""
        run = settings.run.model_copy(update={"name": self.name})
        engine = self.engine or settings.devices.engine
        devices = settings.devices.model_copy(update={"engine": engine})
        return settings.model_copy(update={"run": run, "devices": devices})

    def records(self, stage: PlannedStage) -> list[Record]:
        """Return the committed records of the jobs of a stage, with paths of the run here."""
        # Read once: several questions about a stage need them, and git is asked for each file.
        if stage.name not in self._records:
            paths = {self._path(job.record.as_posix()) for job in stage.jobs}
            # A stage may be committed with fewer jobs than are planned here.
            present = paths.intersection(self._files.names(RECORDS, ".json"))
            records = (record_in(self._files, path) for path in sorted(present))
            self._records[stage.name] = [self._with_paths_here(record) for record in records]
        return self._records[stage.name]

    def _path(self, path: str) -> str:
        """Return the committed path of a result or record of the run here."""
        return _renamed(path, self.run, self.name)

    def _with_paths_here(self, record: Record) -> Record:
        if record.end is None or self.run == self.name:
            return record
        inputs, outputs = (
            [replace(file, path=_renamed(file.path, self.name, self.run)) for file in files]
            for files in (record.end.inputs, record.end.outputs)
        )
        return replace(record, end=replace(record.end, inputs=inputs, outputs=outputs))

    def has_results_of_other_name(self, stage: PlannedStage, files: StageFiles) -> bool:
        """Return whether a stage of a run with another name has the committed bytes and numbers.

        Files of JSON name the run in paths, which count as the committed ones. Manifests have the
        hashes of such files: of them only the numbers are compared.
        """
        if self.run == self.name or self._record_fault(stage):
            return False
        committed = _results(self._outputs(stage))
        here = _results({path: hashes.sha256 for path, hashes in files.files.items()})
        for path in here:
            if here[path] != committed.get(path) and path.endswith(".json"):
                here[path] = self._sha256_of_other_name(Path(path))
        if here != committed:
            return False
        try:
            return self.numbers(stage) == numbers_here(stage, files)
        except ArtifactError:  # a manifest that is not of these files
            return False

    def _sha256_of_other_name(self, path: Path) -> str:
        """Return the hash of a file in which paths of this run are those of the committed one."""
        own, committed = (f"{RESULTS}/{name}/".encode() for name in (self.run, self.name))
        return hashlib.sha256(read_file(path).replace(own, committed)).hexdigest()

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
        if sealed.md5 != self.lock.stages[stage.name].outs.get(self._path(stage.folder)):
            return f"{self._index_path} at {self.revision} is of another {LOCK_FILE}"
        for job in stage.jobs:
            path = self._path(job.record.as_posix())
            data = file_at(Path(), self.revision, path)
            if data is None or hashlib.sha256(data).hexdigest() != sealed.records.get(path):
                return f"{path} at {self.revision} is not the record of {self._index_path}"
        return None

    @cached_property
    def _files(self) -> Revision:
        return Revision(Path(), self.revision)

    @property
    def _index_path(self) -> str:
        return index_path(self.name)

    @cached_property
    def _index(self) -> Index:
        data = file_at(Path(), self.revision, self._index_path)
        return {} if data is None else parse_index(data, f"{self._index_path} at {self.revision}")

    def first_differing_file(self, stage: PlannedStage, files: StageFiles) -> str:
        """Return the first file that differs from the records; the folder if none is known."""
        recorded = self._outputs(stage)
        # Manifests last: they only repeat the hashes of the others.
        for path in sorted(files.files, key=lambda path: (path.endswith(MANIFEST), path)):
            if path in recorded and recorded[path] != files.files[path].sha256:
                return path
        return f"{stage.folder}/"

    def _outputs(self, stage: PlannedStage) -> dict[str, str]:
        """Return path -> SHA-256 of the files that the committed jobs of a stage wrote."""
        ends = (record.end for record in self.records(stage))
        return {file.path: file.sha256 for end in ends if end for file in end.outputs}

    def first_differing_input(self, stage: PlannedStage, checkout: Checkout) -> str | None:
        """Return the first input that exists and has other bytes than the committed job read."""
        inputs = self._inputs(stage)
        for path, committed in (inputs if self.run == self.name else _results(inputs)).items():
            sha256 = checkout.hasher.sha256(path)
            # An absent input tells nothing: results may be pulled without it.
            if sha256 and sha256 != committed:
                return path
        return None

    def changed_question(
        self, settings: Settings, stage: PlannedStage, checkout: Checkout
    ) -> str | None:
        """Return the setting, code or raw file that differs from the committed one.

        Args:
            settings: of the run, `in_its_words`.
            stage: the stage.
            checkout: hashes of the files.
        """
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


def _renamed(path: str, run: str, name: str) -> str:
    """Return the path of a result or record of a run as if the run had another name."""
    for folder in (RESULTS, RECORDS):
        if path.startswith(prefix := f"{folder}/{run}/"):
            return f"{folder}/{name}/{path.removeprefix(prefix)}"
    return path


def _results(hashes: Mapping[str, str]) -> dict[str, str]:
    """Return path -> hash without the manifests, which name the run."""
    return {path: value for path, value in hashes.items() if not path.endswith(MANIFEST)}


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
