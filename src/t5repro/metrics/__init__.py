"""Metrics: pure functions from answers and predictions to percentages (paper section 2.4).

`registry` lists every metric by name and says how to add one.
"""
