"""Downstream tasks as text to text, and as segments for an encoder only.

READS     {data.folder}/{tasks.folder}/...                  original download files
WRITES    results/{run}/tasks/{task}/{split}.jsonl          inputs, targets, fields of the metric
SETTINGS  tasks.text.*, tasks.own, tasks.segments
CODE      src/t5repro/tasks/build.py
"""

for task_name in PLAN.tasks:

    rule:
        """Read one task's original files and write its examples."""
        name:
            f"tasks_{task_name}"
        input:
            inputs_of("tasks", task_name),
            code=code_of("tasks"),
        output:
            **outputs_of("tasks", task_name),
        log:
            f"logs/{RUN}/tasks/{task_name}.log",
        benchmark:
            f"logs/{RUN}/tasks/{task_name}.tsv"
        resources:
            mem_mb=memory(1000),
            runtime=60,
        params:
            **params_of("tasks", task_name),
        shell:
            command_of("tasks")
