"""Downstream tasks as text to text: reading, formatting, mixing (paper section 2.4).

`registry.task_named` returns a task; `docs/decisions` lists the formats in which the released code
and the paper differ.
"""
