"""Matrix products, forward and backward, of the shapes of the demo, the tests and T5-small."""

import functools
from collections.abc import Iterator

import tensorflow as tf

from t5repro.model.operations.operation import L2_CACHE, Operation, normal

PRODUCTS = {  # name -> rows, summed features, features of the result
    "demo_qkv": (2048, 128, 384),
    "demo_qkv_dec": (768, 128, 384),
    "demo_o": (2048, 128, 128),
    "demo_wi": (2048, 128, 512),
    "demo_wo": (2048, 512, 128),
    "demo_wo_dec": (768, 512, 128),
    "demo_q_dec": (768, 128, 128),
    "demo_kv_mem": (2048, 128, 256),
    "demo_logits": (768, 128, 2176),
    "tiny_qkv": (2048, 192, 576),
    "tiny_o": (2048, 192, 192),
    "tiny_wi": (2048, 192, 768),
    "tiny_wo": (2048, 768, 192),
    "tiny_logits": (640, 192, 4096),
    "small_qkv": (4096, 512, 1536),
    "small_wi": (4096, 512, 2048),
    "small_wo": (4096, 2048, 512),
    "small_o": (4096, 512, 512),
    "small_o_dec": (912, 512, 512),
    "mini_qkv": (64, 32, 96),
    "mini_wo": (64, 128, 32),
    "mini_logits": (32, 32, 256),
    # The blocks of oneDNN's AVX2 kernels have 192, 256 or 384 summed features.
    **{f"k{k}": (48, k, 40) for k in (64, 191, 192, 193, 256, 383, 384, 385, 512, 768, 769, 1536)},
    **{f"k{k}": (160, k, 136) for k in (2048, 4096, 8192, 16384)},
    **{f"row1_k{k}": (1, k, 300) for k in (128, 512, 2048)},
    **{f"beam_k{k}": (64, k, 2176) for k in (128, 512)},
}
# oneDNN divides sums of one row, and odd rows of 64 columns or fewer, among threads by L2 size.
VARYING = {
    **{f"matmul/row1_k{k}/forward": L2_CACHE for k in (512, 2048)},
    "matmul/k769/to_weight": L2_CACHE,
}
ATTENTIONS = {  # name -> rows, heads, queries, keys, features of a head
    "demo_enc": (16, 4, 128, 128, 32),
    "demo_dec": (16, 4, 48, 48, 32),
    "demo_cross": (16, 4, 48, 128, 32),
    "tiny_enc": (16, 3, 128, 128, 64),
    "tiny_cross": (16, 3, 40, 128, 64),
    "small_enc": (8, 8, 512, 512, 64),
    "small_cross": (8, 8, 114, 512, 64),
    "mini_enc": (2, 2, 32, 32, 16),
    "long": (1, 2, 64, 2048, 64),
    "decode": (64, 4, 1, 40, 32),
}
EINSUMS = {"demo_wi": (128, 512), "demo_emb": (2176, 128), "small_wi": (512, 2048)}


def products() -> Iterator[Operation]:
    """Yield the product of each layer, and the two products of its gradient."""
    for name, (rows, summed, features) in PRODUCTS.items():
        x = functools.partial(normal, f"{name}x", rows, summed)
        weight = functools.partial(normal, f"{name}w", summed, features)
        upstream = functools.partial(normal, f"{name}g", rows, features)
        for direction, function, arrays in (
            ("forward", tf.matmul, (x, weight)),
            ("to_input", functools.partial(tf.matmul, transpose_b=True), (upstream, weight)),
            ("to_weight", functools.partial(tf.matmul, transpose_a=True), (x, upstream)),
        ):
            path = f"matmul/{name}/{direction}"
            yield Operation(
                path,
                function,
                arrays,
                multiply_adds=rows * summed * features,
                varies_with=VARYING.get(path, ""),
            )


def attentions() -> Iterator[Operation]:
    """Yield the batched products of attention: logits, weighted values, gradient of the values."""
    for name, (rows, heads, queries, keys, features) in ATTENTIONS.items():
        query, result = (
            functools.partial(normal, f"{name}{letter}", rows, heads, queries, features)
            for letter in "qo"
        )
        key, value = (
            functools.partial(normal, f"{name}{letter}", rows, heads, keys, features)
            for letter in "kv"
        )
        weights = functools.partial(normal, f"{name}a", rows, heads, queries, keys)
        for direction, function, arrays in (
            ("logits", _logits, (query, key)),
            ("logits_adj", functools.partial(tf.matmul, transpose_b=True), (query, key)),
            ("read", tf.matmul, (weights, value)),
            ("to_values", functools.partial(tf.matmul, transpose_a=True), (weights, result)),
        ):
            yield Operation(
                f"attention/{name}/{direction}",
                function,
                arrays,
                multiply_adds=rows * heads * queries * keys * features,
            )


def einsums() -> Iterator[Operation]:
    """Yield the product of a matrix with a vector, by which Adafactor avoids a large array."""
    for name, (rows, summed) in EINSUMS.items():
        matrix = functools.partial(normal, name, rows, summed)
        vector = functools.partial(normal, f"{name}v", summed)
        yield Operation(
            f"einsum/{name}",
            functools.partial(tf.einsum, "ab,b->a"),
            (matrix, vector),
            multiply_adds=rows * summed,
        )


def _logits(query: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
    return tf.matmul(query, tf.transpose(key, (0, 1, 3, 2)))
