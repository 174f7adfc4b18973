"""
The corpus as ids, the input of pre-training.

READS     results/{run}/c4/{node}/manifest.json             and the Parquet files that it lists
          results/{run}/vocab/{node}/sentencepiece.model
WRITES    results/{run}/tokens/{node}/{split}.ids           ids of all documents, end to end
          results/{run}/tokens/{node}/{split}.offsets       start of each document
SETTINGS  tokens.*
CODE      src/t5repro/vocab/encode.py
"""


def token_files(wildcards):
    """Return the ids and offsets that a training reads."""
    folder = f"results/{RUN}/tokens/{node_of('tokens', wildcards.node)}"
    return [
        f"{folder}/{split}.{kind}"
        for split in ("train", "validation")
        for kind in ("ids", "offsets")
    ]


rule tokens:
    """Encode every document of the languages of pre-training."""
    input:
        corpus=of("c4", "manifest.json"),
        pages=files_of("c4"),
        vocabulary=of("vocab", "sentencepiece.model"),
        vocabulary_manifest=of("vocab", "manifest.json"),
        code=code_of("tokens"),
    output:
        train_ids="<results>/tokens/{node}/train.ids",
        train_offsets="<results>/tokens/{node}/train.offsets",
        validation_ids="<results>/tokens/{node}/validation.ids",
        validation_offsets="<results>/tokens/{node}/validation.offsets",
        manifest="<results>/tokens/{node}/manifest.json",
    log:
        "<logs>/tokens/{node}.log",
    benchmark:
        "<logs>/tokens/{node}.tsv"
    threads: 8
    resources:
        mem_mb=memory(2000),
        runtime=1440,
    params:
        settings=settings_of("tokens"),
        folder=subpath(output.manifest, parent=True),
    shell:
        "t5repro tokens"
        " --settings {params.settings:q}"
        " --corpus {input.corpus:q}"
        " --vocabulary {input.vocabulary:q}"
        " --folder {params.folder:q}"
        " --manifest {output.manifest:q}"
        " --log {log:q}"
