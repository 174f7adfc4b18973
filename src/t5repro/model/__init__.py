"""The networks of T5, decoding, and files of weights (paper sections 2.1, 3.2 and 3.7).

`transformer` assembles `layers`, `attention` and `adapters`; `decode` and `beam` generate answers.
`checkpoints` reads and writes weights, `foreign_weights` reads formats of other libraries.
"""
