"""Settings of a run: their definitions, the loading of run files, and the generated files.

Definitions:

* `schema` composes the `sections`, one module per section of a run file; `field` is their base.
* `presets`: named fragments of settings, which `use` names.
* `stage_settings` selects the settings of one stage, `task_files` the raw files of a task.

Loading (`load`):

* `layers` has the order in which settings replace each other.
* `origins` reads YAML and keeps the line of every setting, `tree` expands dotted keys and merges.
* `run_file` expands the short forms of a run file: included sources, `for_each`.
* `validation` turns errors into messages, with the names and former names of `setting_names`.
* `withdrawn_files` removes raw files listed by `withdrawn`.
* `experiments` applies the changes of each experiment; `plan/nodes.py` finds the nodes that they
  share.

Generated files (`generate`): `baseline` for ``configs/base.yaml``, `decisions` for the register.
"""
