"""The plan of a run: its nodes, what each reads and writes, and the settings that its jobs receive.

A **node** is the output of a rule for one or more experiments. Experiments share a node if their
settings of the rule and of all earlier rules are equal; the node has the name of the first of them.

- `run_plan`: `RunPlan`, which the rule files and everything else ask;
- `nodes`: which nodes there are, and which nodes each of them reads;
- `inputs`, `outputs`, `options`: files and words of the command line of each rule, by role;
- `paths`, `raw`: paths of the files of nodes, and of raw files, which `data.sources` must list;
- `memory`: of a training or a prediction, by a formula;
- `resources`: memory and cores of the jobs, and what reaches them without being a parameter.

Nothing here touches artifacts or needs Snakemake; `tests/plan` compares the plan with the graph
that Snakemake builds.
"""
