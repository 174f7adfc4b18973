"""Search the corpus for evaluated rows.

READS     results/{run}/c4/{node}/manifest.json             and the Parquet files that it lists
          results/{run}/tokens/{node}/manifest.json         and the ids that it lists
          results/{run}/vocab/{node}/sentencepiece.model
          results/{run}/tasks/{task}/{split}.jsonl          the split evaluate.split, and train
WRITES    results/{run}/contamination/{node}/rows_in_corpus.json
SETTINGS  contamination.*, tokens.*, tasks.names, tasks.text.*, tasks.own, evaluate.split
CODE      src/t5repro/contamination/rows_in_corpus.py
"""


rule contamination:
    """Find evaluated rows in the pages and in the training rows of other tasks."""
    input:
        inputs_of("contamination"),
        code=code_of("contamination"),
    output:
        **outputs_of("contamination"),
    log:
        "<logs>/contamination/{node}.log",
    benchmark:
        "<logs>/contamination/{node}.tsv"
    threads: 8
    resources:
        mem_mb=memory(4000),
        runtime=1440,
        engine=needs.engine(SETTINGS),
    params:
        **params_of("contamination"),
    shell:
        command_of("contamination")
