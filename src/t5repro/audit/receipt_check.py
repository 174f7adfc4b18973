"""Checks a receipt of removals in any clone: its signer, and the absence of the named pages.

The list of signers counts as it was committed before the receipt: whoever adds a key and a receipt
in one commit has not signed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from t5repro.audit.find import raw_files
from t5repro.audit.receipt import MEANING, NOT_PROVEN, PREDICATE_TYPE
from t5repro.audit.removal_list import KINDS
from t5repro.audit.withdraw import own_text_of
from t5repro.audit.withdraw_list import item_hash
from t5repro.c4.own_text.rows import read_rows
from t5repro.c4.reasons import WITHDRAWN
from t5repro.c4.wet.redact import count_texts, is_wet
from t5repro.config.sections.corpus import TextRows
from t5repro.config.withdrawn import FILES, PAGES, WithdrawnPages, read_pages
from t5repro.data.crawl_lists import is_wat
from t5repro.errors import LineageError
from t5repro.files import read_file, sha256_of
from t5repro.lineage.dvc_cache import left_on_remotes, object_path
from t5repro.lineage.envelopes import SignedStatement, open_signed, signing_time
from t5repro.lineage.findings import SIGNATURE, WARNINGS, Finding
from t5repro.lineage.git import blob_hash, contents, git, project_prefix
from t5repro.lineage.graph import load_graph
from t5repro.lineage.store import RESULTS, Folder
from t5repro.lineage.withdrawal_history import check_withdrawals

LEFT = "still here"


@dataclass(frozen=True)
class ReceiptCheck:
    """The statements of a receipt, and whether they hold in this checkout.

    Attributes:
        receipt: the file.
        signer: name of its signer; empty if the signature does not count.
        signed_at: time, as the signer says.
        commit: the commit that added the receipt.
        requests: those that the receipt states; with an item, those about it.
        findings: statements that do not hold.
        searched: kind of files -> number of those that were searched.
    """

    receipt: str
    signer: str = ""
    signed_at: str = ""
    commit: str = ""
    requests: Sequence[Mapping[str, Any]] = ()
    findings: tuple[Finding, ...] = ()
    searched: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the check as plain JSON values."""
        return {**asdict(self), "holds": not self.findings, "notProven": list(NOT_PROVEN)}

    def to_text(self) -> str:
        """Return the check as human-readable text."""
        lines = [finding.line for finding in self.findings]
        if self.signer:
            pages = sum(request["pages"] for request in self.requests)
            lines.append(
                f"{self.signer} signed {len(self.requests)} requests, {pages} pages, at "
                f"{self.signed_at}; committed in {self.commit[:12]}"
            )
        lines += [f"searched: {count} {kind}" for kind, count in self.searched.items()]
        lines.append("does not hold" if self.findings else f"holds: {MEANING}")
        return "\n".join([*lines, *(f"not proven: {text}" for text in NOT_PROVEN)]) + "\n"


def check_receipt(root: Path, path: Path, *, item: str = "", salt: str = "") -> ReceiptCheck:
    """Check a receipt in a checkout of the project that it is about.

    Args:
        root: the checkout.
        path: the receipt, in the checkout or outside of it.
        item: URL, domain, file or other value of a request.
        salt: of that request, which its requester has.

    Raises:
        LineageError: the file cannot be read, or only one of item and salt is given.
    """
    if bool(item) != bool(salt):
        raise LineageError("--item and --salt belong together: the receipt has a hash of both")
    try:
        data = read_file(path)
    except OSError as error:
        raise LineageError(f"{path}: {error.strerror}; withdrawn/receipts has receipts") from error
    try:
        commit = _added_by(root, data)
        # The parent of its commit: a receipt cannot bring its own signer.
        statement = open_signed(root, data.decode("utf-8").strip(), f"{commit}^")
        if statement.kind != PREDICATE_TYPE:
            raise LineageError(f"signed by {statement.name}, but no receipt: {statement.kind}")
        predicate = statement.values["predicate"]
        signed_at = signing_time(statement, predicate["signedAt"])
        requests = list(predicate["requests"])
        _check_subjects(root, commit, statement)
        if item:
            requests = [_request_about(root, requests, item, salt)]
        findings = [*check_withdrawals(root), *_objects_left(root, predicate)]
    except (LineageError, KeyError, TypeError, ValueError, UnicodeDecodeError) as error:
        # One that is not whole attests nothing: no further question is asked.
        return ReceiptCheck(str(path), findings=(Finding(SIGNATURE, str(path), "", str(error)),))
    searched: dict[str, int] = {}
    # The lists of today and not of the receipt: a later withdrawal only adds to them.
    findings += _texts_left(root, read_pages(root / PAGES), searched)
    findings = [finding for finding in findings if finding.kind not in WARNINGS]
    return ReceiptCheck(
        str(path), statement.name, signed_at, commit, requests, tuple(findings), searched
    )


def _added_by(root: Path, data: bytes) -> str:
    """Return the commit of HEAD's history that added a file with these bytes.

    Raises:
        LineageError: there is none.
    """
    head = git(root, "rev-parse", "HEAD").decode().strip()
    blob = blob_hash(data, head)
    log = git(root, "log", "--full-history", "--format=%H", f"--find-object={blob}", "HEAD")
    commits = log.decode().split()
    if not commits:
        raise LineageError(
            "no commit of this history has added it: it is altered, or of another repository, or "
            "not committed yet"
        )
    # The first that added it, in case a branch brought it twice.
    return commits[-1]


def _check_subjects(root: Path, commit: str, statement: SignedStatement) -> None:
    """Check that the commit of the receipt has the lists of withdrawn sources that it attests.

    Raises:
        LineageError: a list is another one.
    """
    prefix = project_prefix(root)
    signed = {
        subject["name"]: subject["digest"]["sha256"] for subject in statement.values["subject"]
    }
    for name in (FILES.as_posix(), PAGES.as_posix()):
        data = contents(root, [f"{commit}:{prefix}{name}"])[f"{commit}:{prefix}{name}"]
        # At the commit of the receipt; later commits may extend the lists.
        if name in signed and sha256(data or b"").hexdigest() != signed[name]:
            raise LineageError(f"commit {commit[:12]} has another {name} than the receipt attests")


def _request_about(
    root: Path, requests: Sequence[Mapping[str, Any]], value: str, salt: str
) -> Mapping[str, Any]:
    """Return the request about an item, whose entry the lists still have.

    Raises:
        LineageError: there is none, or its entry is gone.
    """
    lists = read_pages(root / PAGES).model_dump()
    for kind, (part, entry_of) in KINDS.items():
        try:
            # The salt does not say the kind, so the item is tried as each.
            entry = entry_of(value)
        except ValueError:
            continue  # an item of another kind
        for request in requests:
            if request["kind"] == kind and request["item"] == item_hash(salt, kind, entry):
                # Files are listed by hash, which `_objects_left` looks up.
                if part != "files" and entry not in lists[part]:
                    raise LineageError(f"{value}: no list of withdrawn sources names it any more")
                return request
    raise LineageError(f"no request of it is about {value} with this salt")


def _objects_left(root: Path, predicate: Mapping[str, Any]) -> Iterator[Finding]:
    """Report named files and objects that are here with the bytes of before."""
    deleted = [(artifact["path"], artifact["sha256"]) for artifact in predicate["artifacts"]]
    deleted += [
        (file["path"], file["before"])
        for file in predicate["rawFiles"]
        if file["before"] != file["after"]
    ]
    for name, digest in deleted:
        # Signed is not harmless: a path is checked before it is opened.
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise LineageError(f"{name!r} is outside the checkout")
        if (root / name).is_file() and sha256_of(root / name) == digest:
            message = "has the bytes from before the withdrawal; delete it"
            yield Finding(LEFT, name, "", message)
    cache = predicate["cache"]
    # Deleted files are still bytes in the cache and on remotes, under their hashes.
    for md5 in cache["objects"]:
        if (path := object_path(root, md5)).is_file():
            message = "DVC's cache has it; t5repro withdraw --list FILE --delete-cache deletes it"
            yield Finding(LEFT, str(path), "", message)
    for remote, state in left_on_remotes(root, predicate["remotes"]["objects"]).items():
        if state:
            yield Finding(LEFT, f"remote {remote}", "", state)


def _texts_left(root: Path, pages: WithdrawnPages, searched: dict[str, int]) -> Iterator[Finding]:
    """Report texts of withdrawn pages in raw files, cleaned shards and corpora."""
    tables = sorted((root / RESULTS).rglob("*.parquet"))
    searched["cleaned shards and corpus files"] = len(tables)
    for path in tables:
        for url in _kept_urls(path):
            if pages.holds(url):
                name = path.relative_to(root).as_posix()
                yield Finding(LEFT, name, "", f"has {url}; delete it and run snakemake")
    graph = load_graph(Folder(root))
    raw = {file.path for file in raw_files(graph) if (root / file.path).is_file()}
    searched["raw files"] = len(raw)
    for name in sorted(raw):
        if count := _raw_texts(root / name, name, own_text_of(graph, name), pages):
            message = f"has the text of {count} withdrawn pages; repeat the withdrawal"
            yield Finding(LEFT, name, "", message)


def _kept_urls(path: Path) -> list[str]:
    """Return the addresses of the pages of a Parquet file that cleaning did not withdraw."""
    with pq.ParquetFile(path) as file:
        names = [name for name in ("url", "reason") if name in file.schema_arrow.names]
        # Tables without addresses, such as counts, hold no page.
        rows = file.read(names).to_pylist() if "url" in names else []
    return [row["url"] for row in rows if row["url"] and row.get("reason") != WITHDRAWN]


def _raw_texts(path: Path, name: str, readings: Sequence[TextRows], pages: WithdrawnPages) -> int:
    """Return the number of withdrawn pages of which a raw file has the text."""
    if readings:
        # Own text may be read twice, with other columns; a row has one id in both.
        rows = (row for settings in readings for row in read_rows(path, name, settings))
        return len({row.id for row in rows if row.text and pages.holds(row.id)})
    return count_texts(path, pages.holds) if is_wet(path) or is_wat(name) else 0
