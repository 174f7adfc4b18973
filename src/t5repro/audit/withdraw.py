"""Plan the removal of a raw source and of everything made from it; `removal` carries it out.

Copies that a program must not delete unasked are listed: objects of DVC's cache and remotes, and
files in git's history.
"""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from t5repro.audit.find import RawSource, find_raw_source
from t5repro.audit.removal import complete, complete_unfinished
from t5repro.audit.withdrawal import Entries, RawFile, Withdrawal
from t5repro.audit.withdrawn_texts import with_texts
from t5repro.config.credentials import check_no_credentials
from t5repro.config.sections.corpus import TextRows
from t5repro.config.withdrawn import FILES, PAGES, UNFINISHED
from t5repro.errors import LineageError
from t5repro.files import sha256_of, write_json
from t5repro.lineage import impact as forward
from t5repro.lineage.dvc_cache import has_remote
from t5repro.lineage.git import git
from t5repro.lineage.graph import DATA, Artifact, Graph, load_graph
from t5repro.lineage.store import RESULTS, Folder

OWN_TEXT = "corpus"  # the rule that reads it


def withdraw(
    root: Path,
    name: str,
    *,
    reason: str,
    dry_run: bool = False,
    delete_cache: bool = False,
    delete_remote: bool = False,
) -> Withdrawal:
    """Withdraw a raw file, a URL or a domain; first complete a withdrawal that was stopped.

    Args:
        root: the checkout.
        name: the source to withdraw.
        reason: goes into the tombstone; must not be empty.
        dry_run: change nothing.
        delete_cache: delete the objects of DVC's local cache.
        delete_remote: delete the objects of DVC's remotes.

    Raises:
        LineageError: the source does not exist, or the reason is empty.
        SettingsError: the reason contains a credential.
    """
    if not reason.strip():
        raise LineageError("--reason is empty; say why the source is withdrawn, such as a ticket")
    check_no_credentials({"reason": reason})  # git keeps it
    if not dry_run:
        completed = complete_unfinished(root)
        if completed and name in (completed.asked, completed.name):
            return completed
    graph = load_graph(Folder(root))
    raw = find_raw_source(graph, root, name)
    withdrawn_paths = set(raw.paths) if raw.kind == "file" else set()
    withdrawal = plan(root, raw, graph, _entries(graph, raw, reason.strip()), withdrawn_paths)
    withdrawal.order(name, reason.strip(), delete_cache=delete_cache, delete_remote=delete_remote)
    carry_out(root, withdrawal, dry_run=dry_run)
    return withdrawal


def carry_out(root: Path, withdrawal: Withdrawal, *, dry_run: bool) -> None:
    """Write the journal of a planned withdrawal and complete it; a dry run writes nothing."""
    withdrawal.dry_run = dry_run
    if dry_run:
        withdrawal.files = []
        return
    # From here on a stopped withdrawal is completed by the next command that writes.
    write_json(root / UNFINISHED, withdrawal.journal())
    complete(root, withdrawal)


def _entries(graph: Graph, raw: RawSource, reason: str) -> Entries:
    if raw.kind == "file":
        return file_entries(graph, raw.starts, reason)
    return {PAGES.as_posix(): {"urls" if raw.kind == "url" else "domains": {raw.name: reason}}}


def file_entries(graph: Graph, artifacts: Iterable[Artifact], reason: str) -> Entries:
    """Return entries of the list of withdrawn files for a raw file: its name and its bytes."""
    states = list(artifacts)
    names = {_below_data_folder(graph, artifact.path): reason for artifact in states}
    hashes = {artifact.sha256: reason for artifact in states}
    return {FILES.as_posix(): {"files": names, "sha256": hashes}}


def plan(
    root: Path, raw: RawSource, graph: Graph, entries: Entries, withdrawn_paths: Collection[str]
) -> Withdrawal:
    """Return the withdrawal of a source, planned and not carried out.

    Args:
        root: the checkout.
        raw: the source; of a list of requests, all of them together.
        graph: lineage of the working tree.
        entries: new entries of the lists of withdrawn sources.
        withdrawn_paths: the raw files of it that are withdrawn themselves.
    """
    touched = forward.impact(graph, raw.starts, state="the working tree")
    pruned = _artifacts_to_delete(root, touched)
    # Objects are listed before anything is deleted: afterwards no manifest names them.
    objects = _objects(root, raw, touched)
    files = _raw_files(root, raw, graph, withdrawn_paths)
    return Withdrawal(
        kind=raw.kind,
        name=raw.name,
        entries=with_texts(root, entries, files),
        raw=raw.to_json(),
        touched=touched.to_json(),
        scores=forward.scores_of(touched.outputs),
        files=files,
        pruned=pruned,
        stages=_stages_of(root, pruned),
        cache=[
            path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
            for path in forward.in_cache(root, objects)
        ],
        remote=forward.remote_objects(objects) if has_remote(root) else [],
        by_hand=_other_copies(root, raw, graph),
        data_folders=_data_folders(root, graph),
    )


def _raw_files(
    root: Path, raw: RawSource, graph: Graph, withdrawn_paths: Collection[str]
) -> list[RawFile]:
    """Return the raw files of a source, and their copies in the checkout, as they are now."""
    return [
        RawFile(
            path=copy,
            name=_below_data_folder(graph, path),
            sha256=sha256_of(root / copy),
            readings=[rows.model_dump(mode="json") for rows in own_text_of(graph, path)],
            whole=path in withdrawn_paths,
        )
        for path in raw.paths
        for copy in [path, *_bundled_copies(root, graph, path)]
        if (root / copy).is_file()
    ]


def _stages_of(root: Path, paths: Iterable[str]) -> list[str]:
    """Return the stages of `dvc.lock` that have one of these files."""
    outputs = [output for output in Folder(root).lock().outputs if output.stage]
    stages = {
        output.stage
        for path in paths
        for output in outputs
        if path == output.path or path.startswith(f"{output.path}/")
    }
    return [stage for stage in dict.fromkeys(output.stage for output in outputs) if stage in stages]


def _objects(root: Path, raw: RawSource, touched: forward.Impact) -> list[tuple[str, str]]:
    """Return (md5, path) of the DVC objects of the source and of its dependents."""
    paths = {artifact.path for outputs in touched.outputs.values() for artifact in outputs}
    return forward.objects_of(root, paths | set(raw.paths))


def _data_settings(graph: Graph, path: str) -> dict[str, Any]:
    """Return the `data` settings of the run that uses a raw file."""
    for job in graph.jobs.values():
        if job.rule == DATA and any(output.path == path for output in job.outputs):
            settings: dict[str, Any] = job.settings["data"]
            return settings
    raise LineageError(f"{path}: no run's data manifest names it; run the rule data")


def _below_data_folder(graph: Graph, path: str) -> str:
    """Return the name that run files use for a raw file: its path below `data.folder`."""
    folder = Path(_data_settings(graph, path)["folder"])
    return Path(path).relative_to(folder).as_posix()


def _bundled_copies(root: Path, graph: Graph, path: str) -> list[str]:
    """Return the copy of a raw file in `data.source`, if that folder is in the checkout."""
    source = _data_settings(graph, path)["source"]
    if not source:
        return []
    copy = Path(source) / _below_data_folder(graph, path)
    # Never touch a file outside the checkout; `_other_copies` names it instead.
    is_inside = not copy.is_absolute() and ".." not in copy.parts
    return [copy.as_posix()] if is_inside and (root / copy).is_file() else []


def own_text_of(graph: Graph, path: str) -> list[TextRows]:
    """Return the ways in which jobs read a raw file as own text; none for a WET file."""
    readings: list[TextRows] = []
    for job in graph.jobs.values():
        if job.rule == OWN_TEXT and any(file.path == path for file in job.inputs):
            settings = TextRows.model_validate(job.settings["corpus"])
            # Two runs may read the file with different columns; text of either is redacted.
            if settings not in readings:
                readings.append(settings)
    return readings


def _artifacts_to_delete(root: Path, touched: forward.Impact) -> list[str]:
    """Return the artifacts in `results/` that depend on the source."""
    # Manifests are input too: a path that leaves `results/` is never deleted.
    return [
        artifact.path
        for artifacts in touched.outputs.values()
        for artifact in artifacts
        if artifact.path.startswith(f"{RESULTS}/")
        and ".." not in Path(artifact.path).parts
        and (root / artifact.path).is_file()
    ]


def _data_folders(root: Path, graph: Graph) -> list[str]:
    """Return the folders of raw files that `data.dvc` tracks and a run reads."""
    tracked = {Path(out.path) for out in Folder(root).lock().outputs if not out.stage}
    used = {Path(job.settings["data"]["folder"]) for job in graph.jobs.values() if job.rule == DATA}
    return sorted(folder.as_posix() for folder in tracked & used)


def _other_copies(root: Path, raw: RawSource, graph: Graph) -> list[str]:
    """Return a line for each place that may contain the source and that only the user may clear."""
    lines = []
    for path in raw.paths:
        for copy in [path, *_bundled_copies(root, graph, path)]:
            if git(root, "ls-files", "--", copy):
                lines.append(f"git's history keeps {copy}; git filter-repo removes it")
        source = _data_settings(graph, path)["source"]
        if Path(source or ".").is_absolute():
            lines.append(f"{source} has a copy of {path}")
    # An archive has many files: which of them came from it is not recorded.
    if (root / "work/downloads").is_dir():
        lines.append("work/downloads may contain the archive it came in")
    return list(dict.fromkeys(lines))
