"""One name for each stage: `snakemake stage_vocab`, and for one node `stage_vocab-baseline`.

`dvc.yaml` runs its stages by these names.

READS     the outputs of the rule of the stage
"""

for target_name, target_files in PLAN.targets.items():

    rule:
        name:
            f"stage_{target_name}"
        input:
            target_files,
