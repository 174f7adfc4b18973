"""Predict the targets of every task and score them.

READS     results/{run}/finetune/{node}/manifest.json       and the weights that it lists; for an
                                                            ensemble, those of its members
          results/{run}/tasks/{task}/{split}.jsonl          the split evaluate.split
          results/{run}/vocab/{node}/sentencepiece.model
WRITES    results/{run}/evaluate_predict/{node}/{task}.jsonl       also step-{n}/{task}.jsonl with
                                                                   evaluate.checkpoints: all
          results/{run}/evaluate_score/{node}/scores.json
SETTINGS  evaluate.*, finetune.method, finetune.adapter_width, finetune.answers, tasks.names,
          tasks.windows.*, tasks.options_first, tasks.text.*, tasks.own, model.*, vocab.*, devices.*
CODE      src/t5repro/evaluate/predict.py                   evaluate_predict
          src/t5repro/evaluate/score.py                     evaluate_score
"""

for form in forms_of("evaluate_predict"):

    rule:
        """Decode until EOS, greedily or by beam search."""
        name:
            form.name
        input:
            inputs_of("evaluate_predict"),
            code=code_of("evaluate_predict"),
        output:
            **form.outputs,
        wildcard_constraints:
            node="|".join(form.nodes),
        log:
            "<logs>/evaluate_predict/{node}.log",
        benchmark:
            "<logs>/evaluate_predict/{node}.tsv"
        threads: model_threads
        resources:
            mem_mb=model_memory("evaluate_predict"),
            runtime=1440,
            accelerators=1,
        params:
            **params_of("evaluate_predict"),
        shell:
            command_of("evaluate_predict")


rule evaluate_score:
    """Score the predictions and the trivial answers."""
    input:
        inputs_of("evaluate_score"),
        code=code_of("evaluate_score"),
    output:
        scores=report(
            outputs_of("evaluate_score")["scores"],
            category="Scores",
            labels={"experiment": "{node}"},
        ),
        manifest=outputs_of("evaluate_score")["manifest"],
    log:
        "<logs>/evaluate_score/{node}.log",
    benchmark:
        "<logs>/evaluate_score/{node}.tsv"
    resources:
        mem_mb=memory(1000),
        runtime=60,
    params:
        **params_of("evaluate_score"),
    shell:
        command_of("evaluate_score")
