"""The library that computes: TensorFlow or JAX, behind Keras and one interface.

`devices` sets the engine of a run file up, `replicas` asks it how many devices share a batch, and
`compiled` compiles functions and feeds batches with it. Only `tensorflow_engine` and `jax_engine`
import their library.
"""
