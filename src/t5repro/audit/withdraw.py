"""Take a raw source out of everything that was made of it.

A tombstone is written, which `data` and `c4_clean` obey from then on; the raw text is deleted or
redacted in place; every artifact that was made of it is pruned, so that the next run of Snakemake
makes it again without. What a program must not delete by itself is listed: objects of caches and
remotes, and files that git's history keeps.
"""

import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from t5repro.audit.raw import Raw, find_raw
from t5repro.c4.wet.redact import redact
from t5repro.config.withdrawn import FILES, PAGES, in_domain, read_files, read_pages
from t5repro.errors import LineageError
from t5repro.files import sha256_of, write_text
from t5repro.lineage import impact as forward
from t5repro.lineage.graph import DATA, Graph, load_graph
from t5repro.lineage.store import FROZEN, RESULTS, Folder, git

HEADS = {
    FILES: "# Raw files that no run may use: path below data.folder -> why. "
    "`t5repro withdraw` writes this.\n",
    PAGES: "# Pages that no run may use: URL or domain -> why. `t5repro withdraw` writes this.\n",
}


@dataclass
class Withdrawal:
    """What a withdrawal did, and what is left for a person.

    Attributes:
        raw: the source.
        touched: what was made of it, before anything was deleted.
        scores: score files among that.
        tombstone: file that now names it.
        deleted: raw files that are gone.
        redacted: raw file -> pages whose text is gone.
        rewritten: committed files in which the hash of a redacted file was replaced.
        pruned: artifacts that were deleted.
        cache: objects of DVC's local cache that hold it or what was made of it.
        cache_deleted: whether they were deleted.
        remote: the same objects, as remotes name them.
        by_hand: what else may hold it.
    """

    raw: Raw
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

    def to_json(self) -> dict[str, Any]:
        """Return the withdrawal as plain JSON values."""
        done = {
            name: value for name, value in asdict(self).items() if name not in ("raw", "touched")
        }
        return {**done, "raw": self.raw.to_json(), "touched": self.touched.to_json()}

    def to_text(self) -> str:
        """Return the withdrawal for a person."""
        files = sum(len(items) for items in self.touched.outputs.values())
        lines = [
            f"{self.raw.kind} {self.raw.name}: {len(self.touched.jobs)} jobs and {files} files "
            "were made of it",
            *(f"  score: {path}" for path in self.scores),
            f"tombstone: {self.tombstone}",
            *(f"deleted: {path}" for path in self.deleted),
            *(f"redacted: {path}, {count} pages" for path, count in self.redacted.items()),
            *(f"hash replaced in: {path}" for path in self.rewritten),
            f"pruned: {len(self.pruned)} artifacts",
            f"cache: {len(self.cache)} objects "
            f"{'deleted' if self.cache_deleted else 'still hold it (--delete-cache deletes them)'}",
            *(f"  {path}" for path in self.cache[:20] if not self.cache_deleted),
            f"remote: {len(self.remote)} objects to delete there (--json lists all)",
            *(f"  {name}" for name in self.remote[:5]),
            *(f"by hand: {line}" for line in self.by_hand),
            "next: t5repro dvc generate; snakemake, which makes and seals what was pruned; then "
            "commit everything git status shows",
        ]
        return "\n".join(lines) + "\n"


def withdraw(
    root: Path, wanted: str, *, reason: str, dry_run: bool = False, delete_cache: bool = False
) -> Withdrawal:
    """Withdraw a raw file, a URL or a domain.

    Args:
        root: the checkout.
        wanted: what to withdraw.
        reason: why; goes into the tombstone.
        dry_run: change nothing.
        delete_cache: delete the objects of DVC's local cache.

    Raises:
        LineageError: there is no such source, or no reason.
    """
    if not reason.strip():
        raise LineageError("--reason is empty; say why the source is withdrawn, such as a ticket")
    graph = load_graph(Folder(root))
    raw = find_raw(graph, root, wanted)
    touched = forward.impact(graph, raw.starts, state="the working tree")
    scores = [item.path for item in touched.outputs.get("scores", ())]
    objects = _objects(root, graph, raw, touched)
    cached = forward.in_cache(root, objects)
    done = Withdrawal(
        raw,
        touched,
        tuple(path for path in scores if path.endswith("scores.json")),
        (FILES if raw.kind == "file" else PAGES).as_posix(),
        cache=[
            path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
            for path in cached
        ],
        remote=forward.remote_objects(objects),
        by_hand=_by_hand(root, raw, graph),
    )
    if dry_run:
        return done
    _write_tombstone(root, raw, graph, reason.strip())
    for path in raw.paths:
        for copy in [path, *_sources(root, graph, path)]:
            _take_out(root, raw, copy, done)
    _prune(root, touched, done)
    _freeze(root, graph)
    if delete_cache:
        for held in cached:
            held.unlink(missing_ok=True)
        done.cache_deleted = True
    return done


def _objects(root: Path, graph: Graph, raw: Raw, touched: forward.Impact) -> list[tuple[str, str]]:
    """Return the objects of everything that was made of the source, and of the source."""
    names = {item.path for items in touched.outputs.values() for item in items}
    return forward.objects_of(root, names | set(raw.paths))


def _write_tombstone(root: Path, raw: Raw, graph: Graph, reason: str) -> None:
    if raw.kind == "file":
        path = root / FILES
        files = dict(read_files(path).files)
        files[_below_data(graph, raw.paths[0])] = reason
        values: dict[str, Any] = {"files": files}
    else:
        path = root / PAGES
        pages = read_pages(path)
        values = {"urls": dict(pages.urls), "domains": dict(pages.domains)}
        values["urls" if raw.kind == "url" else "domains"][raw.name] = reason
    head = HEADS[FILES if raw.kind == "file" else PAGES]
    write_text(path, head + yaml.safe_dump(values, allow_unicode=True, sort_keys=True))


def _data_settings(graph: Graph, path: str) -> dict[str, Any]:
    """Return the `data` settings of the run that uses a raw file."""
    for job in graph.jobs.values():
        if job.rule == DATA and any(item.path == path for item in job.outputs):
            found: dict[str, Any] = job.settings["data"]
            return found
    raise LineageError(f"{path}: no run's data manifest names it; run the rule data")


def _below_data(graph: Graph, path: str) -> str:
    """Return the name of a raw file as run files have it: below `data.folder`."""
    folder = Path(_data_settings(graph, path)["folder"])
    return Path(path).relative_to(folder).as_posix()


def _sources(root: Path, graph: Graph, path: str) -> list[str]:
    """Return the bundled copy of a raw file, if it lies in the checkout."""
    source = _data_settings(graph, path)["source"]
    if not source:
        return []
    copy = Path(source) / _below_data(graph, path)
    inside = not copy.is_absolute() and ".." not in copy.parts
    return [copy.as_posix()] if inside and (root / copy).is_file() else []


def _take_out(root: Path, raw: Raw, name: str, done: Withdrawal) -> None:
    """Delete a raw file, or the text of its withdrawn pages."""
    path = root / name
    if not path.is_file():
        return
    if raw.kind == "file":
        path.unlink()
        done.deleted.append(name)
        return
    before = sha256_of(path)
    if raw.kind == "url":
        count = redact(path, lambda url: url == raw.name)
    else:
        count = redact(path, lambda url: in_domain(url, raw.name))
    done.redacted[name] = count
    if count:
        done.rewritten += _replace_hash(root, before, sha256_of(path))


def _replace_hash(root: Path, before: str, after: str) -> list[str]:
    """Put the hash of a redacted file in place of the old one, in every run file and inventory."""
    changed = []
    for name in git(root, "ls-files", "-z", "--", "*.yaml", "*.yml").decode().split("\0"):
        path = root / name
        if name and path.is_file() and before in (text := path.read_text(encoding="utf-8")):
            write_text(path, text.replace(before, after))
            changed.append(name)
    return changed


def _prune(root: Path, touched: forward.Impact, done: Withdrawal) -> None:
    """Delete every artifact that was made of the source."""
    for items in touched.outputs.values():
        for item in items:
            path = root / item.path
            if item.path.startswith(f"{RESULTS}/") and ".." not in path.parts and path.is_file():
                path.unlink()
                done.pruned.append(item.path)


def _freeze(root: Path, graph: Graph) -> None:
    """Bring `data.dvc` up to what is left of the raw files."""
    if not (root / FROZEN).is_file():
        return
    folders = {Path(out.path) for out in Folder(root).lock().outputs if not out.stage}
    used = {Path(job.settings["data"]["folder"]) for job in graph.jobs.values() if job.rule == DATA}
    for folder in sorted(folders & used):
        ran = subprocess.run(
            [sys.executable, "-m", "dvc", "add", "--quiet", folder.as_posix()],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            raise LineageError(
                f"dvc add {folder} failed: {ran.stderr.strip()}; cure that and run it by hand, "
                f"{FROZEN} still names the withdrawn files"
            )


def _by_hand(root: Path, raw: Raw, graph: Graph) -> list[str]:
    """Return what may hold the source and is not ours to delete."""
    lines = []
    for path in raw.paths:
        for copy in [path, *_sources(root, graph, path)]:
            if git(root, "ls-files", "--", copy):
                lines.append(f"git's history keeps {copy}; git filter-repo takes it out")
        data = _data_settings(graph, path)
        if Path(data["source"] or ".").is_absolute():
            lines.append(f"{data['source']} has a copy of {path}")
    if (root / "work/downloads").is_dir():
        lines.append("work/downloads may hold the archive it came in")
    return list(dict.fromkeys(lines))
