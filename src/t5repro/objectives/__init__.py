"""Unsupervised objectives (paper section 3.3): a noise mask, and a corruption of each side.

`masks` draws the noise, `corruption` turns tokens and mask into inputs and targets, `table`
combines both into the objectives of the paper. Everything is NumPy over a batch of segments, so
that every engine trains on the same bits; `lengths` is the arithmetic behind it.
"""
