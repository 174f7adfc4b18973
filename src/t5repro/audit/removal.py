"""Carry out a planned withdrawal, so that a stopped one can be completed.

1. The plan is written to a journal, with the hash of every raw file.
2. A tombstone is written, which `data`, `c4_clean` and `corpus` apply from then on.
3. The raw text is deleted, or redacted in place, and the hashes in run files are replaced.
4. Every dependent artifact and index of a text is deleted, and its stage left out of `dvc.lock`, so
   that the next run of Snakemake rebuilds it without the source, and `dvc checkout` does not
   restore it. `data.dvc` has the hashes of redacted files.
5. If asked, the objects with the source in DVC's cache and on its remotes are deleted.
6. Of a list of requests a receipt is written.
7. The journal is deleted.

Each step can be repeated: a repetition ends in the same bytes, wherever the first try stopped.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from t5repro.audit.receipt import receipt_files, write_receipt
from t5repro.audit.text_index import delete_indexes
from t5repro.audit.withdrawal import RawFile, Withdrawal
from t5repro.c4.own_text.redact import redact_rows
from t5repro.c4.wet.redact import redact
from t5repro.config.sections.corpus import TextRows
from t5repro.config.withdrawn import (
    FILES,
    PAGES,
    UNFINISHED,
    WithdrawnPages,
    read_files,
    read_pages,
)
from t5repro.errors import ArtifactError, LineageError
from t5repro.files import read_json, sha256_of, write_text
from t5repro.lineage.dvc_cache import delete_remote_objects, md5_of
from t5repro.lineage.dvc_lock import LOCK_FILE, RAW_DATA_FILE
from t5repro.lineage.git import git
from t5repro.lineage.hashes import hash_file
from t5repro.lineage.leftovers import remove_leftovers

ALWAYS_WRITTEN = ("files", "urls", "domains")
TOMBSTONE_HEADERS = {
    FILES: "# Raw files that no run may use: path below data.folder -> why. "
    "`t5repro withdraw` writes this.\n",
    PAGES: "# Pages that no run may use: URL or domain -> why. `t5repro withdraw` writes this.\n",
}


def complete_unfinished(root: Path) -> Withdrawal | None:
    """Complete the withdrawal that was stopped in a checkout; return it, None if there is none.

    Raises:
        LineageError: its journal was altered.
    """
    path = root / UNFINISHED
    remove_leftovers([path])  # the caller has the run lock: no other process writes it
    if not path.exists():
        return None
    try:
        withdrawal = Withdrawal.from_json(read_json(path))
        _check_paths(withdrawal)
    except (ArtifactError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise LineageError(
            f"{path} is not the journal of a withdrawal ({error}); delete it and withdraw the "
            "source again"
        ) from error
    complete(root, withdrawal)
    return withdrawal


def _check_paths(withdrawal: Withdrawal) -> None:
    """Refuse a journal that names files outside the checkout, which no withdrawal writes."""
    if not set(withdrawal.entries) <= {FILES.as_posix(), PAGES.as_posix()}:
        raise ValueError(f"{list(withdrawal.entries)} are no lists of withdrawn sources")
    files = [file.path for file in withdrawal.files]
    for path in [*files, *withdrawal.pruned, *withdrawal.data_folders]:
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise ValueError(f"{path!r} is outside the checkout")


def complete(root: Path, withdrawal: Withdrawal) -> None:
    """Carry out a withdrawal that has a journal; what was done already stays as it is."""
    tombstones = [root / name for name in withdrawal.entries]
    changed_paths = [root / file.path for file in withdrawal.files]
    if withdrawal.receipt:
        changed_paths += [root / path for path in receipt_files(withdrawal.receipt)]
    remove_leftovers([*tombstones, root / LOCK_FILE, *changed_paths])
    # The tombstones come first: if a later step fails, no run can use the sources any more.
    for tombstone, entries in zip(tombstones, withdrawal.entries.values(), strict=True):
        write_tombstone(tombstone, entries)
    run_files = _tracked_yaml(root) if withdrawal.files else []
    remove_leftovers(run_files)
    pages = withdrawal.pages()
    for file in withdrawal.files:
        _delete_or_redact(root, file, withdrawal, pages, run_files)
    # Deleted and not rewritten: the next run makes them again without the source.
    for artifact in withdrawal.pruned:
        (root / artifact).unlink(missing_ok=True)
    delete_indexes(root)
    _leave_out_of_lock(root, withdrawal.stages)
    _update_raw_data(root, withdrawal.data_folders)
    _keep_present(root, withdrawal)
    if withdrawal.delete_cache:
        for cached in withdrawal.cache:
            (root / cached).unlink(missing_ok=True)
        withdrawal.cache_deleted = True
    if withdrawal.delete_remote:
        withdrawal.remote_states = delete_remote_objects(root, withdrawal.remote)
    if withdrawal.receipt:
        withdrawal.receipt_path = write_receipt(root, withdrawal)
    (root / UNFINISHED).unlink(missing_ok=True)


def write_tombstone(path: Path, entries: Mapping[str, Mapping[str, str]]) -> None:
    """Add sources to the list of withdrawn files or pages.

    Args:
        path: the list.
        entries: part of the list -> entry -> reason.
    """
    is_files = path.name == FILES.name
    values = read_files(path).model_dump() if is_files else read_pages(path).model_dump()
    for part, added in entries.items():
        values[part].update(added)
        for entry in added:
            values["lifted"].pop(entry, None)
    # Most lists have none of the parts that only lists of requests and liftings write.
    values = {key: part for key, part in values.items() if part or key in ALWAYS_WRITTEN}
    # YAML has no comments to keep: the header that explains the file is written each time.
    header = TOMBSTONE_HEADERS[FILES if is_files else PAGES]
    write_text(path, header + yaml.safe_dump(values, allow_unicode=True, sort_keys=True))


def _delete_or_redact(
    root: Path,
    file: RawFile,
    withdrawal: Withdrawal,
    pages: WithdrawnPages,
    run_files: Sequence[Path],
) -> None:
    """Delete a raw file, or the text of its withdrawn pages."""
    path = root / file.path
    if file.whole:
        path.unlink(missing_ok=True)
        withdrawal.deleted.append(file.path)
        return
    if not path.is_file():
        return
    if file.readings:
        readings = [TextRows.model_validate(values) for values in file.readings]
        count = redact_rows(path, file.name, readings, pages.holds)
    else:
        count = redact(path, pages.holds)
    withdrawal.redacted[file.path] = count
    # Compared with the plan, since an earlier try may have redacted the file.
    if (sha256 := sha256_of(path)) != file.sha256:
        for run_file in _replace_hash(run_files, file.sha256, sha256):
            if (name := run_file.relative_to(root).as_posix()) not in withdrawal.rewritten:
                withdrawal.rewritten.append(name)


def _keep_present(root: Path, withdrawal: Withdrawal) -> None:
    """Leave the objects with the present bytes of raw files out of those to delete."""
    raw_paths = [root / file.path for file in withdrawal.files if (root / file.path).is_file()]
    present = {hash_file(path).md5 for path in raw_paths}
    withdrawal.cache = [name for name in withdrawal.cache if md5_of(name) not in present]
    withdrawal.remote = [name for name in withdrawal.remote if md5_of(name) not in present]


def _tracked_yaml(root: Path) -> list[Path]:
    # Only tracked files: a copy outside git is not this project's to edit.
    names = git(root, "ls-files", "-z", "--", "*.yaml", "*.yml").decode().split("\0")
    return [root / name for name in names if name and (root / name).is_file()]


def _replace_hash(paths: Sequence[Path], old_sha256: str, new_sha256: str) -> list[Path]:
    """Replace the hash of a redacted file in every run file and inventory.

    Without this the rule `data` would refuse the redacted file, because the run file demands the
    old hash.
    """
    changed = []
    for path in paths:
        if old_sha256 in (text := path.read_text(encoding="utf-8")):
            write_text(path, text.replace(old_sha256, new_sha256))
            changed.append(path)
    return changed


def _leave_out_of_lock(root: Path, stages: Sequence[str]) -> None:
    """Remove stages from `dvc.lock`: with them `dvc checkout` would restore what was deleted."""
    lock = root / LOCK_FILE
    if not stages or not lock.is_file():
        return
    from dvc.utils.serialize import dumps_yaml, load_yaml

    content: dict[str, Any] = load_yaml(str(lock))
    entries = content.get("stages") or {}
    remaining = {name: entry for name, entry in entries.items() if name not in stages}
    if remaining != entries:
        write_text(lock, dumps_yaml({**content, "stages": remaining}))


def _update_raw_data(root: Path, folders: Sequence[str]) -> None:
    """Track the remaining raw files in `data.dvc`."""
    if not folders or not (root / RAW_DATA_FILE).is_file():
        return
    # Not `dvc add`: of a folder that `data.dvc` imports it would keep the hash of the source.
    # Relinking, DVC deletes a raw file before it copies it back: a kill would lose it.
    command = ("dvc", "commit", "--quiet", "--force", "--no-relink", RAW_DATA_FILE)
    process = subprocess.run(
        [sys.executable, "-m", *command], cwd=root, capture_output=True, text=True, check=False
    )
    if process.returncode:
        raise LineageError(
            f"{' '.join(command)} failed: {process.stderr.strip()}; cure that and repeat the "
            f"withdrawal, {RAW_DATA_FILE} still names the withdrawn files"
        )
