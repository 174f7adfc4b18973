"""
Downstream tasks as text to text, and as segments for an encoder only.

READS     {data.folder}/{tasks.folder}/...                  original download files
WRITES    results/{run}/tasks/{task}/{split}.jsonl          inputs, targets, fields of the metric
SETTINGS  tasks.text.*, tasks.own, tasks.segments
CODE      src/t5repro/tasks/build.py
"""


def splits_of(task):
    """Return split -> raw files of a task."""
    return {
        split: [raw_path(name) for name in names]
        for split, names in inventory.task_files(SETTINGS, task).items()
    }


ALL_TASKS = sorted(
    {task for name in EXPERIMENTS for task in settings_at(name).tasks.names}
)

for task_name in ALL_TASKS:

    rule:
        """Read one task's original files and write its examples."""
        name:
            f"tasks_{task_name}"
        input:
            raw=[path for paths in splits_of(task_name).values() for path in paths],
            data=f"results/{RUN}/data/manifest.json",
            code=code_of("tasks"),
        output:
            examples=[
                f"results/{RUN}/tasks/{task_name}/{split}.jsonl"
                for split in splits_of(task_name)
            ],
            manifest=f"results/{RUN}/tasks/{task_name}/manifest.json",
        log:
            f"logs/{RUN}/tasks/{task_name}.log",
        benchmark:
            f"logs/{RUN}/tasks/{task_name}.tsv"
        resources:
            mem_mb=memory(1000),
            runtime=60,
        params:
            settings=settings_of("tasks"),
            task=task_name,
            files=[
                f"{split}={path}"
                for split, paths in splits_of(task_name).items()
                for path in paths
            ],
            folder=subpath(output.manifest, parent=True),
        shell:
            "t5repro tasks"
            " --settings {params.settings:q}"
            " --task {params.task}"
            " --files {params.files:q}"
            " --data {input.data:q}"
            " --folder {params.folder:q}"
            " --manifest {output.manifest:q}"
            " --log {log:q}"
