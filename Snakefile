"""The whole chain, from the raw crawl to the report. The only graph: dvc and people follow it.

snakemake --profile local                      the bundled mini crawl (configs/demo.yaml)
snakemake --profile tpu                        the paper's baseline (configs/base.yaml)
snakemake --profile local --configfile FILE    another run file
"""

from itertools import chain

from snakemake.utils import min_version

min_version("9.27")


# Used with `--sdm apptainer` only: the image of the Containerfile (docs/install.md builds it).
container: "image.sif"


include: "workflow/rules/common.smk"


# In the paths of rules. Snakemake finds the rule of a file by the text before the first wildcard, so a
# wildcard for the run would compare every file with every output of every rule.
pathvars:
    results=f"results/{RUN}",
    logs=f"logs/{RUN}",


include: "workflow/rules/data.smk"
include: "workflow/rules/c4.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/vocab.smk"
include: "workflow/rules/tokens.smk"
include: "workflow/rules/sentences.smk"
include: "workflow/rules/preflight.smk"
include: "workflow/rules/pretrain.smk"
include: "workflow/rules/tasks.smk"
include: "workflow/rules/finetune.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/contamination.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/stages.smk"


wildcard_constraints:
    node="[a-z0-9_]+",
    task="[a-z0-9_]+",
    shard="[0-9]+",


rule all:
    """Everything that the run file asks for."""
    input:
        report=OUTPUTS["html"] if PLAN.tasks else [],
        # Named here, because Snakemake leaves a missing input alone if the outputs made of it are
        # there: what a failed rerun deleted would never be made again.
        manifests=PLAN.manifests,
        lost=sorted(chain.from_iterable(PLAN.lost.values())),
    default_target: True


SNAKEMAKE_RUN.use_storage()


onstart:
    start_on_this_machine()
    SNAKEMAKE_RUN.begin()


onsuccess:
    SNAKEMAKE_RUN.end()


onerror:
    SNAKEMAKE_RUN.fail()
