"""Unsupervised objectives (paper section 3.3): which tokens are noise, and what becomes of them.

`masks` draws the noise, `corruption` makes a pair of inputs and targets from tokens and mask.
Everything is TensorFlow operations over a batch of segments, so that it runs inside tf.data on
any host; `lengths` is the arithmetic behind it, in plain Python and NumPy.
"""
