"""A run file proposed for a file of rows and a model to start from (`t5repro tasks new`).

| module | content |
|---|---|
| `rows` | the columns and rows of a file, as text |
| `proposal` | columns, labels, metrics and split of the task |
| `start` | weights and vocabulary of a finished run or a published checkpoint |
| `run_file` | the run file: lengths, steps, hashes, YAML |
"""
