"""The job of each stage: the files that it reads and writes, in the order of the data.

A job is a value; the entry module of its stage does it. The command of the stage
(`cli/job_options.py`) and the command line of its rule (`plan/commands.py`) are made from its
fields. To add an input: a field here, its files in `plan/inputs.py`, its use in the entry module.
"""
