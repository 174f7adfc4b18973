"""
Fine-tune the pre-trained model on the mixture of tasks, or on each of its groups.

READS     results/{run}/pretrain/{node}/manifest.json       and the weights that it lists
          results/{run}/tasks/{task}/train.jsonl            every task of tasks.names
          results/{run}/tasks/{task}/validation.jsonl       only with run.samples.every_steps
          results/{run}/vocab/{node}/sentencepiece.model
WRITES    results/{run}/finetune/{node}/weights.safetensors
          results/{run}/finetune/{node}/optimizer.safetensors
          results/{run}/finetune/{node}/history.csv         loss and learning rate
SETTINGS  finetune.*, pretrain.*, tasks.names, tasks.windows.*, model.*,
          vocab.*, devices.*, seed
CODE      src/t5repro/train/finetune.py
"""


def train_split(settings):
    return "train"


def sample_split(settings):
    """Return the split to predict from during the training; no task has one without a name."""
    return "validation" if SETTINGS.run.samples.every_steps else ""


def earlier_training(wildcards):
    """Return the rule of the training to start from, and the experiment or fine-tuning."""
    start = settings_at(wildcards.node).finetune.start_from
    if not start:
        return "pretrain", wildcards.node
    _, group = FINETUNINGS[wildcards.node]
    return "finetune", finetuning_named(settings_at(start), start, group)


def earlier_manifest(wildcards):
    stage, experiment = earlier_training(wildcards)
    return f"results/{RUN}/{stage}/{node_of(stage, experiment)}/manifest.json"


def earlier_files(wildcards):
    """Return the weights and the state of the optimizer to start from."""
    return files_at(*earlier_training(wildcards))[:2]


def drawn_corpus(wildcards):
    """Return the manifest of the ids if the mixture contains the corpus."""
    if not settings_at(wildcards.node).finetune.corpus_examples:
        return []
    return [of("tokens", "manifest.json")(wildcards)]


def drawn_ids(wildcards):
    """Return the ids if the mixture contains the corpus."""
    return token_files(wildcards) if drawn_corpus(wildcards) else []


for rule_name, nodes, files in rules_by_files("finetune"):

    rule:
        """Start from the pre-trained weights, slots and step. Resumes as pretrain does."""
        name:
            rule_name
        input:
            weights=earlier_manifest,
            trained=earlier_files,
            tokens=drawn_corpus,
            ids=drawn_ids,
            examples=examples_of(train_split),
            sample_examples=examples_of(sample_split),
            vocabulary=of("vocab", "sentencepiece.model"),
            example_manifests=example_manifests_of(train_split),
            sample_manifests=example_manifests_of(sample_split),
            vocabulary_manifest=of("vocab", "manifest.json"),
            code=code_of("finetune"),
        output:
            files=[path for path in files if not path.endswith(".csv")],
            history=report(
                "<results>/finetune/{node}/history.csv",
                category="Loss curves",
                labels={"stage": "finetune", "experiment": "{node}"},
            ),
            manifest="<results>/finetune/{node}/manifest.json",
        wildcard_constraints:
            node=nodes,
        log:
            "<logs>/finetune/{node}.log",
        benchmark:
            "<logs>/finetune/{node}.tsv"
        threads: training_threads
        resources:
            mem_mb=model_memory,
            runtime=10080,
            tpu_slices=1,
            resume=RESUME,
            loggers=LOGGERS,
            sample_every_steps=SETTINGS.run.samples.every_steps,
            sample_count=SETTINGS.run.samples.examples,
        params:
            settings=settings_of("finetune"),
            tokens=lambda wildcards, input: (
                ["--tokens", *input.tokens] if input.tokens else []
            ),
            folder=subpath(output.manifest, parent=True),
            work=f"work/{RUN}/finetune/{{node}}",
            monitor=f"logs/{RUN}/finetune/{{node}}",
        shell:
            "t5repro finetune"
            " --settings {params.settings:q}"
            " --weights {input.weights:q}"
            " --examples {input.examples:q}"
            " --sample-examples {input.sample_examples:q}"
            " --sample-every-steps {resources.sample_every_steps}"
            " --sample-count {resources.sample_count}"
            " --vocabulary {input.vocabulary:q}"
            " {params.tokens:q}"
            " --folder {params.folder:q}"
            " --work {params.work:q}"
            " --monitor {params.monitor:q}"
            " --manifest {output.manifest:q}"
            " {resources.resume}"
            " --loggers {resources.loggers:q}"
            " --log {log:q}"
