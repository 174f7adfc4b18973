"""A withdrawal: its changes, and the remaining copies of the source."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from t5repro.config.withdrawn import PAGES, WithdrawnPages

MAX_REQUESTS_SHOWN = 20
Entries = Mapping[str, Mapping[str, Mapping[str, str]]]  # list -> its part -> entry -> reason


@dataclass(frozen=True)
class RawFile:
    """A raw file, or a copy of it, as it was before the withdrawal.

    Attributes:
        path: of the file.
        name: its path below `data.folder`, which run files use.
        sha256: its hash.
        readings: how jobs read it as own text; empty for a WET file.
        whole: whether the file itself is withdrawn, and not only some of its pages.
    """

    path: str
    name: str
    sha256: str
    readings: list[dict[str, Any]]
    whole: bool = False


@dataclass
class Withdrawal:
    """The plan of a withdrawal, its changes, and the copies that remain.

    As JSON it is the journal from which a stopped withdrawal is completed, without any file that
    the withdrawal deletes.

    Attributes:
        kind: file, url, domain or list.
        name: of the source, or path of the list.
        entries: list of withdrawn sources -> its part -> entry -> reason: the additions.
        raw: the source, as JSON.
        touched: its dependents, before any deletion, as JSON.
        scores: score files among them.
        asked: the source as the user named it.
        reason: why it is withdrawn.
        files: the raw files before the withdrawal.
        deleted: deleted raw files.
        redacted: raw file -> number of redacted pages.
        rewritten: committed files in which the hash of a redacted file was replaced.
        pruned: artifacts to delete.
        stages: stages of `dvc.lock` that have them; left out, or `dvc checkout` would restore them.
        data_folders: tracked folders of raw files.
        cache: objects of DVC's local cache that contain the source or depend on it.
        delete_cache: whether they are to be deleted.
        cache_deleted: whether they were deleted.
        remote: names of the same objects below a DVC remote, if one is configured.
        delete_remote: whether they are to be deleted there.
        remote_states: remote -> what became of them there.
        by_hand: other copies, for the user to delete.
        dry_run: whether nothing was changed.
        receipt: of a list: the receipt's statements on each request, from before any deletion.
        receipt_path: the receipt, once it is written.
    """

    kind: str
    name: str
    entries: Entries
    raw: Mapping[str, Any]
    touched: Mapping[str, Any]
    scores: list[str]
    asked: str = ""
    reason: str = ""
    files: list[RawFile] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    redacted: dict[str, int] = field(default_factory=dict)
    rewritten: list[str] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    data_folders: list[str] = field(default_factory=list)
    cache: list[str] = field(default_factory=list)
    delete_cache: bool = False
    cache_deleted: bool = False
    remote: list[str] = field(default_factory=list)
    delete_remote: bool = False
    remote_states: dict[str, str] = field(default_factory=dict)
    by_hand: list[str] = field(default_factory=list)
    dry_run: bool = False
    receipt: dict[str, Any] = field(default_factory=dict)
    receipt_path: str = ""

    def order(self, asked: str, reason: str, *, delete_cache: bool, delete_remote: bool) -> None:
        """Set what the user asked for."""
        self.asked, self.reason = asked, reason
        self.delete_cache, self.delete_remote = delete_cache, delete_remote

    def to_json(self) -> dict[str, Any]:
        """Return the withdrawal as plain JSON values."""
        return {**asdict(self), "tombstone": ", ".join(self.entries)}

    def journal(self) -> dict[str, Any]:
        """Return the values that `from_json` takes."""
        return asdict(self)

    def pages(self) -> WithdrawnPages:
        """Return the withdrawn pages."""
        return WithdrawnPages.model_validate(self.entries.get(PAGES.as_posix(), {}))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Withdrawal":
        """Return the withdrawal of these values."""
        return cls(**{**values, "files": [RawFile(**file) for file in values["files"]]})

    def to_text(self) -> str:
        """Return the withdrawal as human-readable text."""
        files = sum(len(artifacts) for artifacts in self.touched["outputs"].values())
        lines = [
            *(["dry run, nothing is changed:"] if self.dry_run else []),
            *self._request_lines(),
            f"{self.kind} {self.name}: {len(self.touched['jobs'])} jobs and {files} files "
            "depend on it",
            *(f"  score: {path}" for path in self.scores),
            f"tombstone: {', '.join(self.entries)}",
            *(f"deleted: {path}" for path in self.deleted),
            *(f"redacted: {path}, {count} pages" for path, count in self.redacted.items()),
            *(f"hash replaced in: {path}" for path in self.rewritten),
            f"pruned: {len(self.pruned)} artifacts",
            f"dvc.lock: {len(self.stages)} stages left out, until they are built again",
            f"cache: {len(self.cache)} objects "
            + (
                "deleted"
                if self.cache_deleted
                else "still contain it (--delete-cache deletes them)"
            ),
            *(f"  {path}" for path in self.cache[:20] if not self.cache_deleted),
            *self._remote_lines(),
            *(f"by hand: {line}" for line in self.by_hand),
            *([f"receipt: {self.receipt_path}"] if self.receipt_path else []),
            "next: t5repro dvc generate; snakemake, which rebuilds and seals the pruned artifacts; "
            "then commit everything git status shows",
        ]
        return "\n".join(lines) + "\n"

    def _request_lines(self) -> list[str]:
        """Return a line for each of the first requests that pages match, and the sums."""
        requests = self.receipt.get("requests", [])
        with_matches = [request for request in requests if request["pages"] or request["files"]]
        lines = [
            f"  {request['request']} ({request['kind']}): {request['pages']} pages in "
            f"{len(request['files'])} raw files; {len(request['scores'])} scores depend on "
            f"them; read in {sum(request['steps'].values())} steps of pre-training"
            for request in with_matches[:MAX_REQUESTS_SHOWN]
        ]
        if len(with_matches) > MAX_REQUESTS_SHOWN:
            lines.append(f"  and {len(with_matches) - MAX_REQUESTS_SHOWN} more (--json lists all)")
        if not requests:
            return []
        return [
            f"{len(requests)} requests, {len(with_matches)} of them name something here",
            *lines,
        ]

    def _remote_lines(self) -> list[str]:
        if self.remote_states:
            return [f"remote {name}: {state}" for name, state in self.remote_states.items()]
        if not self.remote:
            return []
        count = f"remote: {len(self.remote)} objects to delete there (--json lists all)"
        return [count, *(f"  {name}" for name in self.remote[:5])]
