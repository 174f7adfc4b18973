"""Writes the receipt of a list of removals: the requests, their pages, and the deleted files.

It is an in-toto statement in a DSSE envelope, signed by the key that signs seals. An item stands
there as a salted hash, so a receipt can be shown to anyone; the salts stay in `SALTS`, which git
ignores, for the requesters.
"""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t5repro.audit.withdrawal import Withdrawal
from t5repro.config.withdrawn import FOLDER, PAGES
from t5repro.errors import LineageError
from t5repro.files import sha256_of, write_text
from t5repro.lineage.dvc_cache import md5_of
from t5repro.lineage.envelopes import STATEMENT_TYPE, signed_envelope
from t5repro.lineage.signatures import ENDING, configured_key
from t5repro.lineage.store import WORK

RECEIPTS = FOLDER / "receipts"
SALTS = Path(WORK) / "removal_salts"
PREDICATE_TYPE = "urn:t5repro:withdrawal:1"
MEANING = "withdrawn from future training and from the places named here"
NOT_PROVEN = (
    "that no other copy exists",
    "that other clones have pulled this commit and pruned their caches",
    "that a remote that was not reached, or keeps versions, has lost the objects",
    "that git's history, backups and earlier archives have lost them",
    "that weights trained before, here or elsewhere, carry no trace of them",
)
SALT_COLUMNS = ("line", "request", "kind", "value", "salt")


def receipt_files(facts: Mapping[str, Any]) -> tuple[Path, Path]:
    """Return the paths of a receipt and of its salts."""
    return RECEIPTS / f"{facts['id']}{ENDING}", SALTS / f"{facts['id']}.csv"


def write_receipt(root: Path, withdrawal: Withdrawal) -> str:
    """Write and sign the receipt of a withdrawal that was carried out; return its path.

    Raises:
        LineageError: the key that was there when the withdrawal was planned is gone.
    """
    facts = withdrawal.receipt
    path, salts_path = receipt_files(facts)
    salts = io.StringIO(newline="")
    csv.writer(salts, lineterminator="\n").writerows([SALT_COLUMNS, *facts["salts"]])
    write_text(root / salts_path, salts.getvalue())
    payload = json.dumps(_statement(root, withdrawal), sort_keys=True).encode()
    write_text(root / path, signed_envelope(payload, _signer(root, facts["signer"])) + "\n")
    return path.as_posix()


def _signer(root: Path, fingerprint: str) -> Any:
    if not fingerprint:
        return None
    from t5repro.lineage.keys import read_named_signer  # an extra

    key = configured_key(root)
    signer = read_named_signer(key, root) if key else None
    if signer is None or signer.public_key.keyid != fingerprint:
        raise LineageError(
            f"the receipt is to be signed by the key {fingerprint}, which is not configured now; "
            "configure it and repeat the withdrawal"
        )
    return signer


def _statement(root: Path, withdrawal: Withdrawal) -> dict[str, Any]:
    facts = withdrawal.receipt
    raw_files = [
        {
            "path": file.path,
            "before": file.sha256,
            "after": sha256_of(root / file.path) if (root / file.path).is_file() else None,
            "pages": withdrawal.redacted.get(file.path, 0),
        }
        for file in withdrawal.files
    ]
    subjects = [(name, sha256_of(root / name)) for name in sorted(withdrawal.entries)]
    subjects += [(str(file["path"]), str(file["after"])) for file in raw_files if file["after"]]
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": sha256}} for name, sha256 in subjects],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            **{name: facts[name] for name in ("id", "signedAt", "version", "list", "requests")},
            "meaning": MEANING,
            "rawFiles": raw_files,
            "texts": sorted(withdrawal.entries.get(PAGES.as_posix(), {}).get("texts", {})),
            "artifacts": [{"path": path, "sha256": sha256} for path, sha256 in facts["artifacts"]],
            "cache": {
                "objects": [md5_of(name) for name in withdrawal.cache],
                "deleted": withdrawal.cache_deleted,
            },
            "remotes": {
                "objects": [md5_of(name) for name in withdrawal.remote],
                "states": withdrawal.remote_states,
            },
            "stillHeld": withdrawal.by_hand,
            "notProven": list(NOT_PROVEN),
        },
    }
