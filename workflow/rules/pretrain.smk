"""Pre-train T5 on the corpus.

READS     results/{run}/tokens/{node}/manifest.json         and the id files that it lists, unless
                                                          given weights are used unchanged
          results/{run}/sentences/{node}/manifest.json      and the files that it lists, if the
                                                          objective is masked_lm
          {data.folder}/{pretrain.start_from}/...         weights to start from, if they are given
          results/{run}/pretrain/{earlier node}/...         with pretrain.from_experiment
          logs/{run}/preflight/{node}.json                  proof that it fits, if devices.slice is set
WRITES    results/{run}/pretrain/{node}/weights.safetensors
          results/{run}/pretrain/{node}/optimizer.safetensors   slots and step, for fine-tuning
          results/{run}/pretrain/{node}/history.csv         losses and learning rate
SETTINGS  pretrain.*, model.*, vocab.*, devices.*, seed
CODE      src/t5repro/train/pretrain.py
"""

for form in forms_of("pretrain"):

    rule:
        """
        Train, or write initial weights if pretrain.steps is 0. An interrupted job resumes from
        work/, which is no output: Snakemake deletes the outputs of a failed job.
        """
        name:
            form.name
        input:
            inputs_of("pretrain"),
            code=code_of("pretrain"),
        output:
            files=form.outputs["files"],
            earlier=form.outputs["earlier"],
            history=report(
                form.outputs["history"],
                category="Loss curves",
                labels={"stage": "pretrain", "experiment": "{node}"},
            ),
            manifest=form.outputs["manifest"],
        wildcard_constraints:
            node="|".join(form.nodes),
        log:
            "<logs>/pretrain/{node}.log",
        benchmark:
            "<logs>/pretrain/{node}.tsv"
        threads: model_threads
        resources:
            mem_mb=model_memory("pretrain"),
            runtime=10080,
            accelerators=1,
            resume_changed=needs.resume(SETTINGS),
            loggers=needs.loggers(SETTINGS),
        params:
            **params_of("pretrain"),
        shell:
            command_of("pretrain")
