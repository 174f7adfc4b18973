"""The corpus as ids, the input of pre-training.

READS     results/{run}/c4/{node}/manifest.json             and the Parquet files that it lists
          results/{run}/vocab/{node}/sentencepiece.model
WRITES    results/{run}/tokens/{node}/{split}.ids           ids of all documents, end to end
          results/{run}/tokens/{node}/{split}.offsets       start of each document
SETTINGS  tokens.*
CODE      src/t5repro/vocab/encode.py
"""


rule tokens:
    """Encode every document of the languages of pre-training."""
    input:
        inputs_of("tokens"),
        code=code_of("tokens"),
    output:
        **outputs_of("tokens"),
    log:
        "<logs>/tokens/{node}.log",
    benchmark:
        "<logs>/tokens/{node}.tsv"
    threads: 8
    resources:
        mem_mb=memory(2000),
        runtime=1440,
    params:
        **params_of("tokens"),
    shell:
        command_of("tokens")
