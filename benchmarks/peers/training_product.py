"""The machine's matrix product, 4096 cubed in float32: python training_product.py SHAPE STEPS."""

import json
import os
import sys
import time
from statistics import median

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
SIDE = 4096


def main(steps: int) -> None:
    """Multiply and print the time of a product."""
    import tensorflow as tf

    first, second = (tf.random.normal((SIDE, SIDE), seed=seed) for seed in (0, 1))
    multiply = tf.function(tf.matmul)
    multiply(first, second).numpy()
    spent = []
    for _ in range(steps):
        started = time.perf_counter()
        multiply(first, second).numpy()
        spent.append(time.perf_counter() - started)
    print(json.dumps({"seconds": median(spent), "flops": 2 * SIDE**3}))


if __name__ == "__main__":
    main(int(sys.argv[2]))
