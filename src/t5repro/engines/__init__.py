"""The library that computes: TensorFlow or JAX, behind Keras and one interface.

`devices` sets the engine of a run file up; `engine` says what an engine does for a model. Only
`tensorflow_engine` and `jax_engine` import their library. `t5repro certificate --engine` repeats a
run on the other one (`versions/other_engine.py`).
"""
