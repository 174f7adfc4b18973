"""RO-Crate: a run as a Provenance Run Crate, a folder with a description of its files.

The workflow is the Snakefile, a rule is a tool and a step, a job is an action with its input files,
settings and output files. It follows the profiles of Workflow Run RO-Crate 0.5.
"""

import shutil
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rocrate.model.computationalworkflow import ComputationalWorkflow
from rocrate.model.contextentity import ContextEntity
from rocrate.model.file import File
from rocrate.rocrate import ROCrate

from t5repro import __version__
from t5repro.errors import LineageError
from t5repro.export.facts import (
    Run,
    check_files,
    inside,
    libraries_of,
    media_type,
    pretty,
    start_of,
)
from t5repro.files import atomic_path, sha256_of, write_text
from t5repro.lineage.graph import Artifact, Job
from t5repro.lineage.leftovers import is_leftover, writing_beside
from t5repro.lineage.trace import leaves_of

METADATA = "ro-crate-metadata.json"
WORKFLOW = "Snakefile"
RULE_FILES = "workflow/**/*.smk"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/ro/wfrun/provenance/0.5": "Provenance Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
CRATE_PROFILES = (
    "https://w3id.org/ro/crate/1.1",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0",
)
# Version 1.1 of the context has no word for the first, and later ones another for the second.
TERMS = {
    "sha256": "https://w3id.org/ro/terms/workflow-run#sha256",
    "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
}
LICENSE = (
    "The code is under the licence in its file LICENSE; crawled pages and task files keep the "
    "terms of their sources."
)
DONE = "http://schema.org/CompletedActionStatus"


def write(run: Run, folder: Path, license_text: str | None = None) -> list[str]:
    """Write a crate; return the files it describes.

    If `folder` is the checkout itself, only the description is written.

    Args:
        run: the run to describe.
        folder: the checkout, an earlier crate or a part of one, or a folder that is empty or
            does not exist.
        license_text: licence of the crate, or its address.

    Raises:
        LineageError: a job has no record, a file was altered, or the folder has other files.
        StorageError: a file cannot be written.
    """
    builder = _Builder(run, license_text or LICENSE)
    values = builder.build()
    is_checkout = folder.resolve() == run.root.resolve()
    if not is_checkout:
        _check_folder(folder, builder.files)
    check_files(run, [artifact for artifact in run.artifacts() if inside(artifact.path)])
    with writing_beside(folder / name for name in (*builder.files, METADATA)):
        for name in () if is_checkout else builder.files:
            with atomic_path(folder / name) as temporary:
                shutil.copyfile(run.root / name, temporary)
        write_text(folder / METADATA, pretty(values))
    return builder.files


def _check_folder(folder: Path, files: Collection[str]) -> None:
    """Refuse a folder with other files, unless an earlier crate is there or a part of one."""
    if not folder.exists() or (folder / METADATA).is_file():
        return
    present = (path for path in folder.rglob("*") if not path.is_dir())
    contents = [path for path in present if not is_leftover(path.name)]
    if any(path.relative_to(folder).as_posix() not in files for path in contents):
        raise LineageError(f"--output {folder}: contains other files; name an empty folder")


class _Builder:
    """Collects the entities of a crate, each once."""

    def __init__(self, run: Run, license_text: str) -> None:
        self._run = run
        self._license = license_text
        self._crate = ROCrate(version="1.1")
        self._entities: dict[str, Any] = {}
        self.files: list[str] = []

    def build(self) -> dict[str, Any]:
        """Return the description of the crate."""
        crate = self._crate
        crate.metadata.extra_terms.update(TERMS)
        crate.metadata["conformsTo"] = [{"@id": name} for name in CRATE_PROFILES]
        crate.name = f"t5repro run {self._run.name}"
        crate.description = (
            f"Run {self._run.name} of t5repro: {len(self._run.jobs)} jobs with their inputs, "
            "outputs, settings and code."
        )
        crate.root_dataset["datePublished"] = self._run.published()
        crate.root_dataset["license"] = self._license
        crate.root_dataset["conformsTo"] = [
            self._entity(name, "CreativeWork", {"name": meaning, "version": name.split("/")[-1]})
            for name, meaning in PROFILES.items()
        ]
        artifacts = {artifact.key: self._artifact(artifact) for artifact in self._run.artifacts()}
        workflow = self._workflow()
        actions = [self._action(job, artifacts) for job in self._run.jobs]
        run_action = self._run_action(workflow, artifacts)
        organized = self._organized(run_action, actions)
        crate.root_dataset["mentions"] = [run_action, organized, *actions]
        described: dict[str, Any] = crate.metadata.generate()
        return described

    def _entity(self, name: str, kind: str | list[str], properties: dict[str, Any]) -> Any:
        if name not in self._entities:
            entity = ContextEntity(self._crate, name, properties={"@type": kind, **properties})
            self._entities[name] = self._crate.add(entity)
        return self._entities[name]

    def _artifact(self, artifact: Artifact) -> Any:
        facts = {
            "name": artifact.path,
            "sha256": artifact.sha256,
            "contentSize": str(artifact.length),
        }
        if not inside(artifact.path):  # its folder is private: named, but not in the crate
            return self._entity(f"#{quote(artifact.path)}", "CreativeWork", facts)
        return self._file(artifact.path, facts)

    def _file(self, name: str, properties: dict[str, Any]) -> Any:
        if name not in self._entities:
            self.files.append(name)
            entity = File(
                self._crate,
                dest_path=name,
                properties={"encodingFormat": media_type(name), **properties},
            )
            self._entities[name] = self._crate.add(entity)
        return self._entities[name]

    def _local_file(self, path: Path) -> Any:
        name = path.relative_to(self._run.root).as_posix()
        facts = {"sha256": sha256_of(path), "contentSize": str(path.stat().st_size)}
        return self._file(name, {"name": name, **facts})

    def _workflow(self) -> Any:
        root = self._run.root
        path = root / WORKFLOW
        if not path.is_file():
            raise LineageError(f"{WORKFLOW} is missing; a crate is made in a checkout")
        for rule_file in sorted(root.glob(RULE_FILES)):
            self._local_file(rule_file)
        for job in self._run.jobs:
            self._local_file(root / "records" / f"{job.name}.json")
        language = self._entity(
            "https://w3id.org/workflowhub/workflow-ro-crate#snakemake",
            "ComputerLanguage",
            {
                "name": "Snakemake",
                "url": {"@id": "https://snakemake.readthedocs.io"},
                **self._snakemake("version"),
            },
        )
        self.files.append(WORKFLOW)
        tools = [self._tool(rule) for rule in self._rules()]
        steps = [self._step(position, rule) for position, rule in enumerate(self._rules(), start=1)]
        definition = ComputationalWorkflow(
            self._crate,
            dest_path=WORKFLOW,
            properties={
                "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
                "name": "t5repro: T5 from the crawl to the scores",
                "version": __version__,
                "sha256": sha256_of(path),
                "encodingFormat": "text/plain",
            },
        )
        workflow = self._crate.add(definition)
        workflow["programmingLanguage"] = language
        workflow["hasPart"] = tools
        workflow["step"] = steps
        self._crate.mainEntity = workflow
        return workflow

    def _snakemake(self, term: str) -> dict[str, str]:
        """Return the version of Snakemake in the jobs; empty without records."""
        versions = libraries_of(self._run).get("snakemake", [])
        return {term: ", ".join(versions)} if versions else {}

    def _rules(self) -> list[str]:
        return list(dict.fromkeys(job.rule for job in self._run.jobs))

    def _tool(self, rule: str) -> Any:
        about = {"name": f"t5repro {rule}", "softwareVersion": __version__}
        return self._entity(f"#tool/{rule}", "SoftwareApplication", about)

    def _step(self, position: int, rule: str) -> Any:
        about = {"name": rule, "position": str(position), "workExample": self._tool(rule)}
        return self._entity(f"#step/{rule}", "HowToStep", about)

    def _action(self, job: Job, artifacts: dict[tuple[str, str], Any]) -> Any:
        commit = start_of(job).get("commit")
        return self._entity(
            f"#job/{quote(job.name)}",
            "CreateAction",
            {
                "name": job.name,
                "description": f"rule {job.rule}, code of {commit or 'no recorded commit'}",
                "instrument": self._tool(job.rule),
                "startTime": self._run.started(job),
                "endTime": self._run.ended(job),
                "actionStatus": DONE,
                "object": _single([*self._each(job.inputs, artifacts), *self._settings(job)]),
                "result": _single(self._each(job.outputs, artifacts)),
            },
        )

    def _each(
        self, artifacts: Iterable[Artifact], entities: dict[tuple[str, str], Any]
    ) -> list[Any]:
        by_key = {artifact.key: entities[artifact.key] for artifact in artifacts}
        return list(by_key.values())

    def _settings(self, job: Job) -> Iterator[Any]:
        for name, value in leaves_of(job.settings):
            yield self._entity(
                f"#setting/{quote(name)}/{quote(value, safe='')}",
                "PropertyValue",
                {"name": name, "value": value},
            )

    def _run_action(self, workflow: Any, artifacts: dict[tuple[str, str], Any]) -> Any:
        jobs = self._run.jobs
        outputs = {artifact.key: artifact for job in jobs for artifact in job.outputs}
        inputs = {artifact.key: artifact for job in jobs for artifact in job.inputs}
        return self._entity(
            f"#run/{quote(self._run.name)}",
            "CreateAction",
            {
                "name": f"run {self._run.name}",
                "description": f"all jobs of run {self._run.name}",
                "instrument": workflow,
                "startTime": min(self._run.started(job) for job in jobs),
                "endTime": self._run.published(),
                "actionStatus": DONE,
                "object": _single([artifacts[key] for key in inputs if key not in outputs]),
                "result": _single([artifacts[key] for key in outputs if key not in inputs]),
            },
        )

    def _organized(self, run_action: Any, actions: list[Any]) -> Any:
        engine = self._entity(
            "https://snakemake.github.io",
            "SoftwareApplication",
            {
                "name": "Snakemake",
                "url": {"@id": "https://snakemake.github.io"},
                **self._snakemake("softwareVersion"),
            },
        )
        controls = [
            self._entity(
                f"#control/{quote(job.name)}",
                "ControlAction",
                {
                    "name": f"job {job.name}",
                    "instrument": self._entity(f"#step/{job.rule}", "HowToStep", {}),
                    "object": action,
                },
            )
            for job, action in zip(self._run.jobs, actions, strict=True)
        ]
        return self._entity(
            f"#engine/{quote(self._run.name)}",
            "OrganizeAction",
            {
                "name": f"Snakemake ran {self._run.name}",
                "instrument": engine,
                "object": controls,
                "result": run_action,
            },
        )


def _single(values: list[Any]) -> Any:
    """Return a list of one value as that value, as the standard requires."""
    return values[0] if len(values) == 1 else values
