"""
Predict the targets of every task and score them.

READS     results/{run}/finetune/{node}/manifest.json       and the weights that it lists; for an
                                                            ensemble, those of its members
          results/{run}/tasks/{task}/{split}.jsonl          the split evaluate.split
          results/{run}/vocab/{node}/sentencepiece.model
WRITES    results/{run}/evaluate_predict/{node}/{task}.jsonl       also step-{n}/{task}.jsonl with
                                                                   evaluate.checkpoints: all
          results/{run}/evaluate_score/{node}/scores.json
SETTINGS  evaluate.*, finetune.method, finetune.adapter_width, tasks.names, tasks.text.*, tasks.own,
          model.*, vocab.*, devices.*
CODE      src/t5repro/evaluate/predict.py                   evaluate_predict
          src/t5repro/evaluate/score.py                     evaluate_score
"""


def evaluated_split(settings):
    return settings.evaluate.split


def predictions(wildcards):
    """Return the prediction files of the node's tasks."""
    node = node_of("evaluate_predict", wildcards.node)
    settings = settings_at(node)
    return [
        f"results/{RUN}/evaluate_predict/{node}/{task}.jsonl"
        for task in settings.tasks.names
        if settings.evaluate.split in inventory.task_files(SETTINGS, task)
    ]


def predicting_models(wildcards):
    """Return the manifests of the models that predict: the node's own, or an ensemble's."""
    experiments = settings_at(wildcards.node).evaluate.ensemble or [wildcards.node]
    return [
        f"results/{RUN}/finetune/{node_of('finetune', experiment)}/manifest.json"
        for experiment in experiments
    ]


def kept_steps(wildcards):
    """Return the option with the kept checkpoints to evaluate, if there are any."""
    settings = settings_at(wildcards.node)
    if settings.evaluate.checkpoints == "last":
        return []
    return ["--kept-steps", *map(str, settings.finetune.kept_steps)]


rule evaluate_predict:
    """Decode until EOS, greedily or by beam search."""
    input:
        weights=predicting_models,
        examples=examples_of(evaluated_split),
        vocabulary=of("vocab", "sentencepiece.model"),
        example_manifests=manifests_of(evaluated_split),
        vocabulary_manifest=of("vocab", "manifest.json"),
        code=code_of("evaluate_predict"),
    output:
        manifest="results/{run}/evaluate_predict/{node}/manifest.json",
    log:
        "logs/{run}/evaluate_predict/{node}.log",
    threads: training_threads
    resources:
        tpu_slices=1,
    params:
        settings=settings_of("evaluate_predict"),
        steps=kept_steps,
        folder=subpath(output.manifest, parent=True),
    shell:
        "t5repro evaluate_predict"
        " --settings {params.settings:q}"
        " --weights {input.weights:q}"
        " --examples {input.examples:q}"
        " --vocabulary {input.vocabulary:q}"
        " {params.steps:q}"
        " --folder {params.folder:q}"
        " --manifest {output.manifest:q}"
        " --log {log:q}"


rule evaluate_score:
    """Score the predictions and the trivial answers."""
    input:
        predicted=of("evaluate_predict", "manifest.json"),
        train=examples_of(train_split),
        train_manifests=manifests_of(train_split),
        code=code_of("evaluate_score"),
    output:
        scores="results/{run}/evaluate_score/{node}/scores.json",
        manifest="results/{run}/evaluate_score/{node}/manifest.json",
    log:
        "logs/{run}/evaluate_score/{node}.log",
    params:
        settings=settings_of("evaluate_score"),
        steps=kept_steps,
        predictions=predictions,
    shell:
        "t5repro evaluate_score"
        " --settings {params.settings:q}"
        " --predictions {params.predictions:q}"
        " --train {input.train:q}"
        " {params.steps:q}"
        " --output {output.scores:q}"
        " --manifest {output.manifest:q}"
        " --log {log:q}"
