"""
One name for each stage: `snakemake stage_vocab`, and for one node `stage_vocab-baseline`.

`dvc.yaml` runs its stages by these names.

READS     the outputs of the rule of the stage
"""


def manifests_of(rule_name, node):
    """Return the manifests of a stage: one, or one per shard of cleaning."""
    folder = f"results/{RUN}/{rule_name}/{node}"
    if rule_name == "c4_clean":
        shards = settings_at(node).c4.clean_shards
        return [f"{folder}/{shard:05d}.manifest.json" for shard in range(shards)]
    return [f"{folder}/manifest.json"]


WITHOUT_NODES = {
    "data": f"results/{RUN}/data/manifest.json",
    "report": f"results/{RUN}/report/manifest.json",
    **{
        f"tasks_{task}": f"results/{RUN}/tasks/{task}/manifest.json"
        for task in ALL_TASKS
    },
}
STAGE_TARGETS = {f"stage_{name}": [path] for name, path in WITHOUT_NODES.items()}

for rule_name in VERSIONED:
    if not BY_NAME[rule_name].per_experiment:
        continue
    for node_name in required_nodes(rule_name):
        STAGE_TARGETS[f"stage_{rule_name}-{node_name}"] = manifests_of(
            rule_name, node_name
        )
    STAGE_TARGETS[f"stage_{rule_name}"] = [
        path
        for node_name in required_nodes(rule_name)
        for path in manifests_of(rule_name, node_name)
    ]


def manifests_of_all_stages(wildcards):
    """Return the manifest of every job; a run without tasks ends with pre-training."""
    without_tasks = (f"stage_{rule}" for rule in (*OF_CORPUS, "vocab", "pretrain"))
    names = STAGE_TARGETS if ALL_TASKS else ("stage_data", *without_tasks)
    return sorted({path for name in names for path in STAGE_TARGETS.get(name, [])})


for target_name, target_files in STAGE_TARGETS.items():

    rule:
        name:
            target_name
        input:
            target_files,
