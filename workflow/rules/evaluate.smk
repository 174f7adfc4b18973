"""
Predict the targets of every task and score them.

READS     results/{run}/finetune/{node}/manifest.json       and the weights that it lists; for an
                                                            ensemble, those of its members
          results/{run}/tasks/{task}/{split}.jsonl          the split evaluate.split
          results/{run}/vocab/{node}/sentencepiece.model
WRITES    results/{run}/evaluate_predict/{node}/{task}.jsonl       also step-{n}/{task}.jsonl with
                                                                   evaluate.checkpoints: all
          results/{run}/evaluate_score/{node}/scores.json
SETTINGS  evaluate.*, finetune.method, finetune.adapter_width, finetune.answers, tasks.names,
          tasks.windows.*, tasks.text.*, tasks.own, model.*, vocab.*, devices.*
CODE      src/t5repro/evaluate/predict.py                   evaluate_predict
          src/t5repro/evaluate/score.py                     evaluate_score
"""


def evaluated_split(settings):
    return settings.evaluate.split


def predicted(wildcards):
    """Return the manifests of the predictions of every group of tasks."""
    return [
        f"results/{RUN}/evaluate_predict/{node_of('evaluate_predict', name)}/manifest.json"
        for name in finetunings_of(wildcards.node)
    ]


def predicted_files(wildcards):
    """Return the predictions of every group of tasks, those of kept checkpoints included."""
    return [
        path
        for name in finetunings_of(wildcards.node)
        for path in files_at("evaluate_predict", name)
    ]


def last_predictions(experiment):
    """Return the predictions of an experiment with its last weights."""
    return [
        f"results/{RUN}/evaluate_predict/{node_of('evaluate_predict', name)}/{file}"
        for name in finetunings_of(experiment)
        for file in task_predictions(settings_at(name))
    ]


def predicting_finetunings(wildcards):
    """Return the fine-tunings whose models predict: the node's own, or an ensemble's."""
    _, group = FINETUNINGS[wildcards.node]
    members = settings_at(wildcards.node).evaluate.ensemble
    return [
        finetuning_named(settings_at(member), member, group) for member in members
    ] or [wildcards.node]


def predicting_models(wildcards):
    """Return the manifests of the models that predict."""
    return [
        f"results/{RUN}/finetune/{node_of('finetune', name)}/manifest.json"
        for name in predicting_finetunings(wildcards)
    ]


def predicting_weights(wildcards):
    """Return the weights that predict: the last ones, and kept ones that are evaluated."""
    steps = earlier_steps(settings_at(wildcards.node))
    names = ["", *(f"step-{step}/" for step in steps)]
    return [
        f"{manifest.removesuffix('manifest.json')}{name}weights.safetensors"
        for manifest in predicting_models(wildcards)
        for name in names
    ]


def kept_steps(wildcards):
    """Return the option with the kept checkpoints to evaluate, if there are any.

    It names those of all groups of tasks, if the node is that of an experiment.
    """
    settings = settings_at(wildcards.node)
    if settings.evaluate.checkpoints == "last":
        return []
    parts = [wildcards.node]
    if wildcards.node in EXPERIMENTS:
        parts = finetunings_of(wildcards.node)
    steps = {step for name in parts for step in settings_at(name).finetune.kept_steps}
    return ["--kept-steps", *map(str, sorted(steps))]


for rule_name, nodes, files in rules_by_files("evaluate_predict"):

    rule:
        """Decode until EOS, greedily or by beam search."""
        name:
            rule_name
        input:
            weights=predicting_models,
            trained=predicting_weights,
            examples=examples_of(evaluated_split),
            vocabulary=of("vocab", "sentencepiece.model"),
            example_manifests=example_manifests_of(evaluated_split),
            vocabulary_manifest=of("vocab", "manifest.json"),
            code=code_of("evaluate_predict"),
        output:
            files=files,
            manifest="<results>/evaluate_predict/{node}/manifest.json",
        wildcard_constraints:
            node=nodes,
        log:
            "<logs>/evaluate_predict/{node}.log",
        benchmark:
            "<logs>/evaluate_predict/{node}.tsv"
        threads: training_threads
        resources:
            mem_mb=model_memory,
            runtime=1440,
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
        predicted=predicted,
        predictions=predicted_files,
        train=examples_of(train_split),
        train_manifests=example_manifests_of(train_split),
        code=code_of("evaluate_score"),
    output:
        scores=report(
            "<results>/evaluate_score/{node}/scores.json",
            category="Scores",
            labels={"experiment": "{node}"},
        ),
        manifest="<results>/evaluate_score/{node}/manifest.json",
    log:
        "<logs>/evaluate_score/{node}.log",
    benchmark:
        "<logs>/evaluate_score/{node}.tsv"
    resources:
        mem_mb=memory(1000),
        runtime=60,
    params:
        settings=settings_of("evaluate_score"),
        steps=kept_steps,
        predictions=lambda wildcards: last_predictions(wildcards.node),
    shell:
        "t5repro evaluate_score"
        " --settings {params.settings:q}"
        " --predictions {params.predictions:q}"
        " --train {input.train:q}"
        " {params.steps:q}"
        " --output {output.scores:q}"
        " --manifest {output.manifest:q}"
        " --log {log:q}"
