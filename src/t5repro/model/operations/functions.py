"""Functions of one value, reductions, norms, softmax, gathers, random numbers, NumPy and SciPy."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from t5repro.model.operations.operation import (
    MAKER,
    Operation,
    integers,
    normal,
    positive,
    value_and_gradient,
)

VALUES = 5003  # prime: the last vector of a kernel is not full
X = functools.partial(normal, "x", VALUES)
Y = functools.partial(normal, "y", VALUES)
P = functools.partial(positive, "p", VALUES)
EPSILON = 1e-6
MATRICES = ((37, 128), (64, 512), (33, 2176), (5, 32128), (512, 48))
GATHERS = ((2176, 128, 1500), (256, 32, 64))  # ids, features, gathered rows
SHAPES = ((16, 1, 128), (16, 4, 1, 48), (3,))  # of dropout noise

ELEMENTWISE: dict[str, tuple[Callable[..., Any], tuple[Callable[[], Any], ...]]] = {
    "sqrt": (tf.sqrt, (P,)),
    "sqrt_over_x": (lambda p: tf.sqrt(p) / p, (P,)),
    "x_over_3": (lambda x: x / 3.0, (X,)),
    "x_over_y": (lambda x, y: x / y, (X, Y)),
    "divide_no_nan": (lambda p: tf.math.divide_no_nan(1.0, p), (P,)),
    "exp": (tf.exp, (X,)),
    "log": (tf.math.log, (P,)),
    "tanh": (tf.tanh, (X,)),
    "sigmoid": (tf.sigmoid, (X,)),
    "pow_minus_0.8": (lambda p: tf.pow(p, -0.8), (P,)),
    "pow_0.5": (lambda p: tf.pow(p, 0.5), (P,)),
    "square": (tf.square, (X,)),
    "relu": (tf.nn.relu, (X,)),
    "gelu_tanh": (functools.partial(tf.nn.gelu, approximate=True), (X,)),
    "multiply_add": (lambda x, y, p: x * y + p, (X, Y, P)),
    "to_int": (lambda x: tf.cast(x * 1000, tf.int32), (X,)),
}
# Computed from RSQRTPS or RCPPS, if necessary after a rewriting by Grappler.
APPROXIMATE: dict[str, tuple[Callable[..., Any], tuple[Callable[[], Any], ...]]] = {
    "rsqrt": (tf.math.rsqrt, (P,)),
    "reciprocal": (tf.math.reciprocal, (P,)),
    "one_over_x": (lambda p: 1.0 / p, (P,)),
    "ones_over_x": (lambda p: tf.ones_like(p) / p, (P,)),
    "one_over_sqrt": (lambda p: 1.0 / tf.sqrt(p), (P,)),
    "x_over_sqrt": (lambda x, p: x / tf.sqrt(p), (X, P)),
    "pow_-0.5": (lambda p: tf.pow(p, -0.5), (P,)),
    "gelu_erf": (functools.partial(tf.nn.gelu, approximate=False), (X,)),
}
REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum_last": lambda a: tf.reduce_sum(a, -1),
    "sum_first": lambda a: tf.reduce_sum(a, 0),
    "sum_all": tf.reduce_sum,
    "mean_last": lambda a: tf.reduce_mean(tf.square(a), -1),
    "mean_first": lambda a: tf.reduce_mean(tf.square(a), 0),
    "mean_all": lambda a: tf.reduce_mean(tf.square(a)),
    "max": lambda a: tf.reduce_max(a, -1),
}


def elementwise() -> Iterator[Operation]:
    """Yield functions of one value; in the graph of a step, and as the decay of a step count."""
    for varies_with, functions in (("", ELEMENTWISE), (MAKER, APPROXIMATE)):
        for name, (function, inputs) in functions.items():
            yield Operation(f"elementwise/{name}", function, inputs, varies_with=varies_with)
    for step in (3, 11, 300, 1001):
        yield Operation(
            f"scalar/pow/{step}", lambda s: tf.pow(s, -0.8), (functools.partial(np.float32, step),)
        )


def rows_of_matrices() -> Iterator[Operation]:
    """Yield sums, norms, softmax and the loss, each over the rows of matrices."""
    for rows, width in MATRICES:
        shape = f"{rows}x{width}"
        matrix = functools.partial(normal, f"r{rows}", rows, width)
        functions: dict[str, Callable[..., Any]] = {
            **{f"reduce/{name}": function for name, function in REDUCTIONS.items()},
            "softmax": tf.nn.softmax,
            "softmax/4d": functools.partial(_softmax_of_four_axes, shape=(1, rows, 1, width)),
            "softmax/gradient": value_and_gradient(lambda a: tf.nn.softmax(a) ** 2),
            "norm/inverse_root": value_and_gradient(_normalised(lambda m: tf.sqrt(m) / m)),
            "norm/rsqrt": value_and_gradient(_normalised(tf.math.rsqrt)),
            "gelu/gradient": value_and_gradient(functools.partial(tf.nn.gelu, approximate=True)),
            "tanh/gradient": value_and_gradient(tf.tanh),
        }
        for name, function in functions.items():
            yield Operation(
                f"{name}/{shape}",
                function,
                (matrix,),
                varies_with=MAKER if name == "norm/rsqrt" else "",
            )
        yield Operation(
            f"softmax/cross_entropy/{shape}",
            value_and_gradient(_cross_entropy),
            (matrix, functools.partial(integers, rows, width, rows)),
        )


def gathers() -> Iterator[Operation]:
    """Yield gathers of rows, their gradient, and sums by row."""
    for ids, width, count in GATHERS:
        table = functools.partial(normal, f"t{ids}", ids, width)
        upstream = functools.partial(normal, f"u{ids}", count, width)
        rows = functools.partial(integers, ids, ids // 3, count)
        for name, function, makers in (
            ("gradient", _gathered_gradient, (table, rows, upstream)),
            (
                "segment_sum",
                functools.partial(tf.math.unsorted_segment_sum, num_segments=ids),
                (upstream, rows),
            ),
            ("bias", lambda t, r: tf.gather(t, r[:32] % 32, axis=1), (table, rows)),
        ):
            yield Operation(f"gather/{name}/{ids}", function, makers)


def random_numbers() -> Iterator[Operation]:
    """Yield the draws of dropout."""
    for shape in SHAPES:
        yield Operation(
            f"random/uniform/{len(shape)}",
            functools.partial(tf.random.stateless_uniform, shape),
            (functools.partial(np.array, [7, 11], np.int32),),
        )


def arrays() -> Iterator[Operation]:
    """Yield functions of NumPy and SciPy, which metrics, sampling and initial values call."""
    functions: dict[str, tuple[Callable[..., Any], tuple[Callable[[], Any], ...]]] = {
        "numpy/exp": (np.exp, (X,)),
        "numpy/log": (np.log, (P,)),
        "numpy/tanh": (np.tanh, (X,)),
        "numpy/power": (lambda p: np.power(p, np.float32(-0.8)), (P,)),
        "numpy/sum": (lambda x, p: np.array([x.sum(), (p * p).mean()]), (X, P)),
        "numpy/exp64": (lambda x: np.exp(x.astype("f8")), (X,)),
        "numpy/log64": (lambda p: np.log(p.astype("f8")), (P,)),
        "numpy/power64": (lambda p: np.power(p.astype("f8"), -0.3), (P,)),
        "numpy/dot64": (lambda x, y: np.dot(x.astype("f8"), y.astype("f8")), (X, Y)),
        "numpy/matmul": (
            np.matmul,
            (functools.partial(normal, "ma", 64, 200), functools.partial(normal, "mb", 200, 64)),
        ),
        "scipy/pearsonr": (_pearson_correlations, (X, Y)),
    }
    for name, (function, makers) in functions.items():
        yield Operation(name, function, makers, library="numpy")


def _normalised(inverse_root: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return RMS norm without a scale."""

    def normalise(x: Any) -> Any:
        return x * inverse_root(tf.reduce_mean(tf.square(x), -1, keepdims=True) + EPSILON)

    return normalise


def _softmax_of_four_axes(x: Any, *, shape: tuple[int, ...]) -> Any:
    return tf.nn.softmax(tf.reshape(x, shape))


def _cross_entropy(logits: Any, labels: Any) -> Any:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def _gathered_gradient(table: Any, rows: Any, upstream: Any) -> Any:
    gathered = value_and_gradient(lambda table: tf.reduce_sum(tf.gather(table, rows) * upstream))
    return gathered(table)[1]


def _pearson_correlations(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    from scipy.stats import pearsonr

    x, y = x.astype("f8"), y.astype("f8")
    lengths = (50, 200, 1500, VALUES)
    return np.array([pearsonr(x[:count], x[:count] + y[:count]).statistic for count in lengths])
