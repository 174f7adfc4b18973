"""Unsupervised objectives (paper section 3.3): a noise mask, and a corruption of each side.

`masks` draws the noise, `corruption` turns tokens and mask into inputs and targets, `table`
combines both into the objectives of the paper. Everything is TensorFlow operations over a batch of
segments, so that it runs inside tf.data on any host; `lengths` is the arithmetic behind it, in
plain Python and NumPy.
"""
