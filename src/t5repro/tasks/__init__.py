"""Downstream tasks as text to text: reading, formatting, mixing (paper section 2.4).

A new task is a `Task` in one of the modules here and a row in `task_table`; rows of one's own need
neither (`tasks.own` in a run file). `registry.task_named` returns a task; `docs/decisions` lists
the formats in which the released code and the paper differ.
"""
