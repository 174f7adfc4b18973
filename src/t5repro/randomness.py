"""Named, seeded random streams, one for each use.

A stream is a function of the run's seed and of its name, never of the draws of another stream:
adding a draw somewhere cannot change a number elsewhere.
"""

import hashlib

import numpy as np

DRAW_BITS = 24  # of a random number that a step reads as an integer: as many as float32 has


def _digest(seed: int, name: tuple[str | int, ...]) -> bytes:
    # A separator that no name contains: ("a", "bc") and ("ab", "c") are two streams.
    text = "\x1f".join([str(seed), *(str(part) for part in name)])
    return hashlib.sha256(text.encode()).digest()


def stream(seed: int, *name: str | int) -> np.random.Generator:
    """Return the NumPy generator for the use `name`, the same on every machine.

    Args:
        seed: the run's seed.
        name: words and numbers that identify the use, such as ``"pretrain", "epoch", 3``.
    """
    key = int.from_bytes(_digest(seed, name)[:16], "little")
    return np.random.Generator(np.random.Philox(key=key))


def seed_pair(seed: int, *name: str | int) -> tuple[int, int]:
    """Return two non-negative int32 for TensorFlow's stateless operations."""
    digest = _digest(seed, name)
    return (
        int.from_bytes(digest[:4], "little") & 0x7FFFFFFF,
        int.from_bytes(digest[4:8], "little") & 0x7FFFFFFF,
    )


def single_seed(seed: int, *name: str | int) -> int:
    """Return one non-negative int32 for a library that takes a single number."""
    return seed_pair(seed, *name)[0]


def repeat_seed(seed: int, repeat: int) -> int:
    """Return the seed of a repetition of a stage; repetition 0 has the run's seed."""
    return single_seed(seed, "repeat", repeat) if repeat else seed
