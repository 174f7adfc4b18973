"""Fine-tune the pre-trained model on the mixture of tasks, or on each of its groups.

READS     results/{run}/pretrain/{node}/manifest.json       and the weights that it lists
          results/{run}/tasks/{task}/train.jsonl            every task of tasks.names
          results/{run}/tasks/{task}/validation.jsonl       only with run.samples.every_steps
          results/{run}/vocab/{node}/sentencepiece.model
          results/{run}/tokens/{node}/...                   ids, if the mixture contains the corpus
          results/{run}/finetune/{node}/...                 weights, with finetune.start_from
WRITES    results/{run}/finetune/{node}/weights.safetensors
          results/{run}/finetune/{node}/optimizer.safetensors
          results/{run}/finetune/{node}/history.csv         loss and learning rate
          results/{run}/finetune/{node}/step-{n}/weights.safetensors  kept steps
SETTINGS  finetune.*, pretrain.*, tasks.names, tasks.windows.*, tasks.options_first, model.*,
          vocab.*, devices.*, seed
CODE      src/t5repro/train/finetune.py
"""

for form in forms_of("finetune"):

    rule:
        """Start from the pre-trained weights, slots and step. Resumes as pretrain does."""
        name:
            form.name
        input:
            inputs_of("finetune"),
            code=code_of("finetune"),
        output:
            files=form.outputs["files"],
            earlier=form.outputs["earlier"],
            history=report(
                form.outputs["history"],
                category="Loss curves",
                labels={"stage": "finetune", "experiment": "{node}"},
            ),
            manifest=form.outputs["manifest"],
        wildcard_constraints:
            node="|".join(form.nodes),
        log:
            "<logs>/finetune/{node}.log",
        benchmark:
            "<logs>/finetune/{node}.tsv"
        threads: model_threads
        resources:
            mem_mb=model_memory("finetune"),
            runtime=10080,
            accelerators=1,
            resume_changed=needs.resume(SETTINGS),
            loggers=needs.loggers(SETTINGS),
            sample_every_steps=SETTINGS.run.samples.every_steps,
            sample_count=SETTINGS.run.samples.examples,
        params:
            **params_of("finetune"),
        shell:
            command_of("finetune")
