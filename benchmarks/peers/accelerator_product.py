"""The card's own limits: a matrix product in bfloat16 on JAX."""

import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

import accelerator_shapes as shared
import jax
import jax.numpy as jnp


def main() -> None:
    """Measure the product."""
    job = shared.job()
    size = min(8192, job.shape.ids)  # a rehearsal has few ids
    key = jax.random.key(0)
    a, b = (jax.random.normal(part, (size, size), jnp.bfloat16) for part in jax.random.split(key))
    product = jax.jit(jnp.matmul)
    result = shared.train(job.shape, job.steps, lambda _: product(a, b), jax.block_until_ready)
    del result["positions"]
    shared.tell({**result, "flops": 2 * size**3})


if __name__ == "__main__":
    main()
