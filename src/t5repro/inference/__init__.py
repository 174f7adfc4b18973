"""A finished run in Python: its models answer texts, its scores are tables.

The public names are exported by the package: ``t5repro.load``, `Run`, `Model`, `Prediction`.
"""
