"""
Pre-train T5 on the corpus.

READS     results/{run}/tokens/{node}/manifest.json         and the id files that it lists, unless
                                                          given weights are used unchanged
          results/{run}/sentences/{node}/manifest.json      and the files that it lists, if the
                                                          objective is masked_lm
          {data.folder}/{pretrain.start_from}/...         weights to start from, if they are given
          logs/{run}/preflight/{node}.json                  proof that it fits, if devices.slice is set
WRITES    results/{run}/pretrain/{node}/weights.safetensors
          results/{run}/pretrain/{node}/optimizer.safetensors   slots and step, for fine-tuning
          results/{run}/pretrain/{node}/history.csv         losses and learning rate
SETTINGS  pretrain.*, model.*, vocab.*, devices.*, seed
CODE      src/t5repro/train/pretrain.py
"""


def start_files(wildcards):
    """Return the raw files of the checkpoint to start from."""
    return [
        raw_path(name) for name in inventory.start_files(settings_at(wildcards.node))
    ]


def start_option(wildcards):
    folder = settings_at(wildcards.node).pretrain.start_from
    return ["--start-from", raw_path(folder)] if folder else []


def trained_corpus(wildcards):
    """Return the manifest of the ids, unless given weights are used unchanged."""
    if not settings_at(wildcards.node).pretrain.reads_corpus:
        return []
    return [of("tokens", "manifest.json")(wildcards)]


def trained_ids(wildcards):
    """Return the ids, unless given weights are used unchanged."""
    return token_files(wildcards) if trained_corpus(wildcards) else []


def trained_sentences(wildcards):
    """Return the manifest of the sentences, if the rows consist of them."""
    if not settings_at(wildcards.node).pretrain.reads_sentences:
        return []
    return [of("sentences", "manifest.json")(wildcards)]


def sentence_files(wildcards):
    """Return the sentences and the word starts, if the rows consist of sentences."""
    return [
        of("sentences", name)(wildcards)
        for name in ("train.sentences", "validation.sentences", "word_starts")
        if trained_sentences(wildcards)
    ]


def corpus_options(wildcards, input):
    """Return the options of the corpus, unless given weights are used unchanged."""
    options = (("--tokens", input.tokens), ("--sentences", input.sentences))
    return [word for name, paths in options if paths for word in (name, *paths)]


for rule_name, nodes, files in rules_by_files("pretrain"):

    rule:
        """
        Train, or write initial weights if pretrain.steps is 0. An interrupted job resumes from
        work/, which is no output: Snakemake deletes the outputs of a failed job.
        """
        name:
            rule_name
        input:
            tokens=trained_corpus,
            ids=trained_ids,
            sentences=trained_sentences,
            sentence_files=sentence_files,
            preflight=ancient(preflight_of),
            start=start_files,
            code=code_of("pretrain"),
        output:
            files=[path for path in files if not path.endswith(".csv")],
            history=report(
                "<results>/pretrain/{node}/history.csv",
                category="Loss curves",
                labels={"stage": "pretrain", "experiment": "{node}"},
            ),
            manifest="<results>/pretrain/{node}/manifest.json",
        wildcard_constraints:
            node=nodes,
        log:
            "<logs>/pretrain/{node}.log",
        benchmark:
            "<logs>/pretrain/{node}.tsv"
        threads: training_threads
        resources:
            mem_mb=model_memory,
            runtime=10080,
            tpu_slices=1,
            resume=RESUME,
            loggers=LOGGERS,
        params:
            settings=settings_of("pretrain"),
            start=start_option,
            corpus=corpus_options,
            folder=subpath(output.manifest, parent=True),
            work=f"work/{RUN}/pretrain/{{node}}",
            monitor=f"logs/{RUN}/pretrain/{{node}}",
        shell:
            "t5repro pretrain"
            " --settings {params.settings:q}"
            " {params.corpus:q}"
            " {params.start:q}"
            " --folder {params.folder:q}"
            " --work {params.work:q}"
            " --monitor {params.monitor:q}"
            " --manifest {output.manifest:q}"
            " {resources.resume}"
            " --loggers {resources.loggers:q}"
            " --log {log:q}"
