"""Downstream tasks as text to text: reading, formatting, scoring, mixing (paper section 2.4).

`registry.task_named` finds a task; `docs/decisions` says where a format follows the released
code against the paper's text.
"""
