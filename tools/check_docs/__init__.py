"""Checks that every file, module, command and setting that a text names exists.

Texts are the documents, the comments of run files, the heads of rule files, and the docstrings,
comments and messages of Python files. Each kind of name has one check:

path        a tracked file or folder; a path below `results/` needs a rule of that name
module      a dotted name below `t5repro`, with the attribute that it ends in
setting     a field of the pydantic models, with a value that the field allows
command     `t5repro`, `make`, `snakemake` and `python FILE`: subcommands, options, targets
link        a relative link of a document, with its anchor
decision    `D-` and three digits
test        a function named `test_…`

Names of other projects' files and deliberate placeholders are in `ALLOWED`, each with a reason.
"""
