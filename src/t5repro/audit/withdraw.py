"""Remove a raw source and everything made from it.

1. A tombstone is written, which `data`, `c4_clean` and `corpus` apply from then on.
2. The raw text is deleted, or redacted in place.
3. Every dependent artifact is deleted, so that the next run of Snakemake rebuilds it without the
   source.

Copies that a program must not delete unasked are listed: objects of DVC's cache and remotes, and
files in git's history.
"""

import subprocess
import sys
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from t5repro.artifacts import SCORES
from t5repro.audit.find import RawSource, find_raw_source
from t5repro.c4.own_text.redact import redact_rows
from t5repro.c4.wet.redact import redact
from t5repro.config.credentials import check_no_credentials
from t5repro.config.sections.corpus import TextRows
from t5repro.config.withdrawn import FILES, PAGES, in_domain, read_files, read_pages
from t5repro.errors import LineageError
from t5repro.files import sha256_of, write_text
from t5repro.lineage import impact as forward
from t5repro.lineage.dvc_lock import RAW_DATA_FILE
from t5repro.lineage.git import git
from t5repro.lineage.graph import DATA, Graph, load_graph
from t5repro.lineage.store import RESULTS, Folder

OWN_TEXT = "corpus"  # the rule that reads it
TOMBSTONE_HEADERS = {
    FILES: "# Raw files that no run may use: path below data.folder -> why. "
    "`t5repro withdraw` writes this.\n",
    PAGES: "# Pages that no run may use: URL or domain -> why. `t5repro withdraw` writes this.\n",
}


@dataclass
class Withdrawal:
    """The changes of a withdrawal, and the copies that remain.

    Attributes:
        raw: the source.
        touched: artifacts that depend on it, before any deletion.
        scores: score files among them.
        tombstone: file that now names the source.
        deleted: deleted raw files.
        redacted: raw file -> number of redacted pages.
        rewritten: committed files in which the hash of a redacted file was replaced.
        pruned: artifacts to delete.
        cache: objects of DVC's local cache that contain the source or depend on it.
        cache_deleted: whether they were deleted.
        remote: names of the same objects below a DVC remote.
        by_hand: other copies, for the user to delete.
        dry_run: whether nothing was changed.
    """

    raw: RawSource
    touched: forward.Impact
    scores: tuple[str, ...]
    tombstone: str
    deleted: list[str] = field(default_factory=list)
    redacted: dict[str, int] = field(default_factory=dict)
    rewritten: list[str] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)
    cache: list[str] = field(default_factory=list)
    cache_deleted: bool = False
    remote: list[str] = field(default_factory=list)
    by_hand: list[str] = field(default_factory=list)
    dry_run: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the withdrawal as plain JSON values."""
        # Not `asdict`: it would copy every job and artifact of `touched`.
        values = {attribute.name: getattr(self, attribute.name) for attribute in fields(self)}
        return {**values, "raw": self.raw.to_json(), "touched": self.touched.to_json()}

    def to_text(self) -> str:
        """Return the withdrawal as human-readable text."""
        files = sum(len(artifacts) for artifacts in self.touched.outputs.values())
        lines = [
            *(["dry run, nothing is changed:"] if self.dry_run else []),
            f"{self.raw.kind} {self.raw.name}: {len(self.touched.jobs)} jobs and {files} files "
            "depend on it",
            *(f"  score: {path}" for path in self.scores),
            f"tombstone: {self.tombstone}",
            *(f"deleted: {path}" for path in self.deleted),
            *(f"redacted: {path}, {count} pages" for path, count in self.redacted.items()),
            *(f"hash replaced in: {path}" for path in self.rewritten),
            f"pruned: {len(self.pruned)} artifacts",
            f"cache: {len(self.cache)} objects "
            + (
                "deleted"
                if self.cache_deleted
                else "still contain it (--delete-cache deletes them)"
            ),
            *(f"  {path}" for path in self.cache[:20] if not self.cache_deleted),
            f"remote: {len(self.remote)} objects to delete there (--json lists all)",
            *(f"  {name}" for name in self.remote[:5]),
            *(f"by hand: {line}" for line in self.by_hand),
            "next: t5repro dvc generate; snakemake, which rebuilds and seals the pruned artifacts; "
            "then commit everything git status shows",
        ]
        return "\n".join(lines) + "\n"


def withdraw(
    root: Path, name: str, *, reason: str, dry_run: bool = False, delete_cache: bool = False
) -> Withdrawal:
    """Withdraw a raw file, a URL or a domain.

    Args:
        root: the checkout.
        name: the source to withdraw.
        reason: goes into the tombstone; must not be empty.
        dry_run: change nothing.
        delete_cache: delete the objects of DVC's local cache.

    Raises:
        LineageError: the source does not exist, or the reason is empty.
        SettingsError: the reason contains a credential.
    """
    if not reason.strip():
        raise LineageError("--reason is empty; say why the source is withdrawn, such as a ticket")
    check_no_credentials({"reason": reason})  # git keeps it
    graph = load_graph(Folder(root))
    raw = find_raw_source(graph, root, name)
    touched = forward.impact(graph, raw.starts, state="the working tree")
    # Objects are listed before anything is deleted: afterwards no manifest names them.
    objects = _objects(root, raw, touched)
    cached_paths = forward.in_cache(root, objects)
    withdrawal = Withdrawal(
        raw,
        touched,
        tuple(
            artifact.path
            for artifact in touched.outputs.get("scores", ())
            if artifact.path.endswith(SCORES)
        ),
        (FILES if raw.kind == "file" else PAGES).as_posix(),
        cache=[
            path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
            for path in cached_paths
        ],
        remote=forward.remote_objects(objects),
        by_hand=_other_copies(root, raw, graph),
        pruned=_artifacts_to_delete(root, touched),
        dry_run=dry_run,
    )
    if dry_run:
        return withdrawal
    # The tombstone comes first: if a later step fails, no run can use the source any more.
    _write_tombstone(root, raw, graph, reason.strip())
    for path in raw.paths:
        for copy in [path, *_bundled_copies(root, graph, path)]:
            _delete_or_redact(root, copy, withdrawal, graph, path)
    # Deleted and not rewritten: the next run makes them again without the source.
    for artifact in withdrawal.pruned:
        (root / artifact).unlink(missing_ok=True)
    _update_data_dvc(root, graph)
    if delete_cache:
        for cached_path in cached_paths:
            cached_path.unlink(missing_ok=True)
        withdrawal.cache_deleted = True
    return withdrawal


def _objects(root: Path, raw: RawSource, touched: forward.Impact) -> list[tuple[str, str]]:
    """Return (md5, path) of the DVC objects of the source and of its dependents."""
    paths = {artifact.path for outputs in touched.outputs.values() for artifact in outputs}
    return forward.objects_of(root, paths | set(raw.paths))


def _write_tombstone(root: Path, raw: RawSource, graph: Graph, reason: str) -> None:
    if raw.kind == "file":
        path = root / FILES
        files = dict(read_files(path).files)
        files[_below_data_folder(graph, raw.paths[0])] = reason
        values: dict[str, Any] = {"files": files}
    else:
        path = root / PAGES
        pages = read_pages(path)
        values = {"urls": dict(pages.urls), "domains": dict(pages.domains)}
        values["urls" if raw.kind == "url" else "domains"][raw.name] = reason
    # YAML has no comments to keep: the header that explains the file is written each time.
    header = TOMBSTONE_HEADERS[FILES if raw.kind == "file" else PAGES]
    write_text(path, header + yaml.safe_dump(values, allow_unicode=True, sort_keys=True))


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


def _own_text(graph: Graph, path: str) -> list[TextRows]:
    """Return the ways in which jobs read a raw file as own text; none for a WET file."""
    readings: list[TextRows] = []
    for job in graph.jobs.values():
        if job.rule == OWN_TEXT and any(file.path == path for file in job.inputs):
            settings = TextRows.model_validate(job.settings["corpus"])
            # Two runs may read the file with different columns; text of either is redacted.
            if settings not in readings:
                readings.append(settings)
    return readings


def _delete_or_redact(
    root: Path, name: str, withdrawal: Withdrawal, graph: Graph, original: str
) -> None:
    """Delete a raw file, or the text of its withdrawn pages.

    Args:
        root: the checkout.
        name: the file, or a copy of it.
        withdrawal: the withdrawal, which is updated.
        graph: lineage of the working tree.
        original: path of the raw file in `data.folder`.
    """
    path, raw = root / name, withdrawal.raw
    if not path.is_file():
        return
    if raw.kind == "file":
        path.unlink()
        withdrawal.deleted.append(name)
        return
    sha256_before = sha256_of(path)

    def is_withdrawn(url: str) -> bool:
        return url == raw.name if raw.kind == "url" else in_domain(url, raw.name)

    if readings := _own_text(graph, original):
        count = redact_rows(path, _below_data_folder(graph, original), readings, is_withdrawn)
    else:
        count = redact(path, is_withdrawn)
    withdrawal.redacted[name] = count
    if count:
        withdrawal.rewritten += _replace_hash(root, sha256_before, sha256_of(path))


def _replace_hash(root: Path, old_sha256: str, new_sha256: str) -> list[str]:
    """Replace the hash of a redacted file in every run file and inventory.

    Without this the rule `data` would refuse the redacted file, because the run file demands the
    old hash.
    """
    changed = []
    # Only tracked files: a copy outside git is not this project's to edit.
    for name in git(root, "ls-files", "-z", "--", "*.yaml", "*.yml").decode().split("\0"):
        path = root / name
        if name and path.is_file() and old_sha256 in (text := path.read_text(encoding="utf-8")):
            write_text(path, text.replace(old_sha256, new_sha256))
            changed.append(name)
    return changed


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


def _update_data_dvc(root: Path, graph: Graph) -> None:
    """Track the remaining raw files in `data.dvc`."""
    if not (root / RAW_DATA_FILE).is_file():
        return
    tracked = {Path(out.path) for out in Folder(root).lock().outputs if not out.stage}
    # Only folders that a run reads: others in `data.dvc` did not change.
    used = {Path(job.settings["data"]["folder"]) for job in graph.jobs.values() if job.rule == DATA}
    for folder in sorted(tracked & used):
        process = subprocess.run(
            [sys.executable, "-m", "dvc", "add", "--quiet", folder.as_posix()],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        if process.returncode:
            raise LineageError(
                f"dvc add {folder} failed: {process.stderr.strip()}; cure that and run it by hand, "
                f"{RAW_DATA_FILE} still names the withdrawn files"
            )


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
