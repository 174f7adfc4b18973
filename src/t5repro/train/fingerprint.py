"""The fingerprint of a training: one digest for each part that decides its result.

A checkpoint records it. A training resumes by itself from checkpoints of its own fingerprint only;
for every other checkpoint the digests show which parts differ.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from t5repro.engines.engine import engine
from t5repro.files import describe_file
from t5repro.model.checkpoints import Arrays

PARTS = ("settings", "inputs", "code", "libraries")
UNKNOWN = "unknown"  # in place of the parts, for a checkpoint that records a single digest or none
FORMAT = 2  # of the loop's arrays in a checkpoint; format 1 has one array `fingerprint`


@dataclass(frozen=True)
class Fingerprint:
    """SHA-256 of each part, in hexadecimal.

    Attributes:
        digests: a digest for each of `PARTS`, or one for `UNKNOWN`.
    """

    digests: Mapping[str, str]

    @property
    def value(self) -> str:
        """One SHA-256 for all parts."""
        if UNKNOWN in self.digests:
            return self.digests[UNKNOWN]
        return hashlib.sha256("".join(self.digests[name] for name in PARTS).encode()).hexdigest()

    def differing_parts(self, running: "Fingerprint") -> tuple[str, ...]:
        """Return the parts with different digests; ``("unknown",)`` if either has no parts."""
        if UNKNOWN in self.digests or UNKNOWN in running.digests:
            return (UNKNOWN,)
        return tuple(name for name in PARTS if self.digests[name] != running.digests[name])

    def as_arrays(self) -> Arrays:
        """Return the arrays that a checkpoint records."""
        digests = {
            f"fingerprint/{name}": np.frombuffer(bytes.fromhex(digest), np.uint8)
            for name, digest in self.digests.items()
        }
        return {"format": np.asarray(FORMAT), **digests}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> "Fingerprint":
        """Return the fingerprint that a checkpoint's arrays record, of either format."""
        if int(arrays.get("format", 1)) == FORMAT:
            return cls({name: arrays[f"fingerprint/{name}"].tobytes().hex() for name in PARTS})
        digest = arrays.get("fingerprint", np.zeros(32, np.uint8))
        return cls({UNKNOWN: digest.tobytes().hex()})


def fingerprint_of(
    rule: str, settings: Mapping[str, Any], identity: Sequence[Path], code: Mapping[str, str]
) -> Fingerprint:
    """Return the fingerprint of a training as its settings, inputs, code and libraries are now.

    Args:
        rule: ``pretrain`` or ``finetune``; also the name of its entry module.
        settings: all settings of the stage.
        identity: small files that change whenever an input does.
        code: source file -> hash, for every file that the training runs.

    Raises:
        ArtifactError: a file of `identity` is missing.
    """
    contents = {
        "settings": {"rule": rule, "settings": settings},
        "inputs": [describe_file(path)["sha256"] for path in identity],
        "code": dict(code),
        "libraries": {"keras": keras.__version__, **engine().libraries()},
    }
    return Fingerprint(
        {
            name: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
            for name, value in contents.items()
        }
    )
