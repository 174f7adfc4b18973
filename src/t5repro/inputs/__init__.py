"""From ids and examples to batches (paper sections 2.1, 3.1.2 and 3.3; packing: spec of mesh).

`sequences` decides with NumPy which pieces of text share a row; `mixture` which task comes next;
`pipeline` makes the batches with tf.data. Batch n is a function of the data, the seed and n.
"""
