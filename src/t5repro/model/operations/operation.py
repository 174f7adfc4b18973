"""One operation with reproducible inputs, and the hash of its result."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

Array = Any  # a NumPy array or scalar of any type
HASH_DIGITS = 32  # of the SHA-256, in hexadecimal
MAKER = "maker"
L2_CACHE = "L2 cache"


@dataclass(frozen=True)
class Operation:
    """A function and its inputs.

    Attributes:
        name: path-like, unique; the key in a reference file.
        function: takes tensors, returns one or several tensors; for `library` ``numpy``, takes and
            returns arrays.
        inputs: makers of the arrays that the function takes.
        multiply_adds: multiplications with additions in a product; the measure of its duration.
        varies_with: the property of the CPU that changes the result, `MAKER` or `L2_CACHE`; empty
            if the bytes are equal on every x86-64 CPU with AVX2 and FMA. Training and decoding do
            not use an operation that varies.
        library: ``tensorflow`` or ``numpy``.
    """

    name: str
    function: Callable[..., Any]
    inputs: tuple[Callable[[], Array], ...]
    multiply_adds: int = 0
    varies_with: str = ""
    library: str = "tensorflow"

    def sha256(self) -> str:
        """Run the operation, optimised by Grappler as in training, and return its hash."""
        inputs = [make() for make in self.inputs]
        if self.library == "numpy":
            return sha256_of_arrays([self.function(*inputs)])
        graph = tf.function(self.function, jit_compile=False, autograph=False)
        # Tensors of NumPy arrays, not constants in the graph: Grappler would fold those.
        results = tf.nest.flatten(graph(*map(tf.convert_to_tensor, inputs)))
        return sha256_of_arrays(result.numpy() for result in results)


def sha256_of_arrays(arrays: Iterable[Array]) -> str:
    """Return the first digits of a SHA-256 over types, shapes and bytes."""
    digest = hashlib.sha256()
    for array in map(np.ascontiguousarray, arrays):
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:HASH_DIGITS]


def normal(label: str, *shape: int) -> np.ndarray:
    """Return float32 values from N(0, 1), which depend only on label and shape."""
    seed = int.from_bytes(hashlib.sha256(label.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def positive(label: str, *shape: int) -> np.ndarray:
    """Return float32 values above 0.001."""
    return np.abs(normal(label, *shape)) + np.float32(1e-3)


def integers(seed: int, below: int, count: int) -> np.ndarray:
    """Return int64 numbers from 0 to `below` - 1."""
    return np.random.default_rng(seed).integers(0, below, count)


def value_and_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that also returns the gradient of its summed result by its first input."""

    # Grappler orders equal factors by the names of their nodes: another name of this argument
    # would give gelu other bytes than those of the references.
    def both(a: Any, *constants: Any) -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            tape.watch(a)
            result = function(a, *constants)
        return result, tf.convert_to_tensor(tape.gradient(result, a))

    return both
