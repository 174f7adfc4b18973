"""
Fine-tune the pre-trained model on the mixture of tasks.

READS     results/{run}/pretrain/{node}/manifest.json       and the weights that it lists
          results/{run}/tasks/{task}/train.jsonl            every task of tasks.names
          results/{run}/vocab/{node}/sentencepiece.model
WRITES    results/{run}/finetune/{node}/weights.safetensors
          results/{run}/finetune/{node}/optimizer.safetensors
          results/{run}/finetune/{node}/history.csv         loss and learning rate
SETTINGS  finetune.*, pretrain.*, tasks.names, model.*, vocab.*, devices.*, seed
CODE      src/t5repro/train/finetune.py
"""


def train_split(settings):
    return "train"


def earlier_training(wildcards):
    """Return the manifest of the training to start from."""
    start = settings_at(wildcards.node).finetune.start_from
    if start:
        return f"results/{RUN}/finetune/{node_of('finetune', start)}/manifest.json"
    return of("pretrain", "manifest.json")(wildcards)


def drawn_corpus(wildcards):
    """Return the manifest of the ids if the mixture contains the corpus."""
    if not settings_at(wildcards.node).finetune.corpus_examples:
        return []
    return [of("tokens", "manifest.json")(wildcards)]


rule finetune:
    """Start from the pre-trained weights, slots and step. Resumes as pretrain does."""
    input:
        weights=earlier_training,
        tokens=drawn_corpus,
        examples=examples_of(train_split),
        vocabulary=of("vocab", "sentencepiece.model"),
        example_manifests=manifests_of(train_split),
        vocabulary_manifest=of("vocab", "manifest.json"),
        code=code_of("finetune"),
    output:
        weights="results/{run}/finetune/{node}/weights.safetensors",
        optimizer="results/{run}/finetune/{node}/optimizer.safetensors",
        history="results/{run}/finetune/{node}/history.csv",
        manifest="results/{run}/finetune/{node}/manifest.json",
    log:
        "logs/{run}/finetune/{node}.log",
    threads: training_threads
    resources:
        tpu_slices=1,
        resume=RESUME,
    params:
        settings=settings_of("finetune"),
        tokens=lambda wildcards, input: (
            ["--tokens", *input.tokens] if input.tokens else []
        ),
        folder=subpath(output.manifest, parent=True),
    shell:
        "t5repro finetune"
        " --settings {params.settings:q}"
        " --weights {input.weights:q}"
        " --examples {input.examples:q}"
        " --vocabulary {input.vocabulary:q}"
        " {params.tokens:q}"
        " --folder {params.folder:q}"
        " --work work/{wildcards.run}/finetune/{wildcards.node}"
        " --monitor logs/{wildcards.run}/finetune/{wildcards.node}"
        " --manifest {output.manifest:q}"
        " {resources.resume}"
        " --log {log:q}"
