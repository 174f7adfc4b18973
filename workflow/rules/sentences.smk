"""The sentences of the corpus in its ids, for systems that pre-train on rows of whole sentences.

READS     results/{run}/c4/{node}/manifest.json             and the Parquet files that it lists
          results/{run}/tokens/{node}/manifest.json         and the id files that it lists
          results/{run}/vocab/{node}/sentencepiece.model
          results/{run}/c4_punkt/{node}/{language}/...      Punkt parameters
          {data.folder}/...                                 Punkt parameters, if they are given
WRITES    results/{run}/sentences/{node}/{split}.sentences  first id of each sentence
          results/{run}/sentences/{node}/word_starts        whether each piece begins a word
SETTINGS  tokens.*, c4.punkt_parameters, c4.punkt_training, c4.punkt_language
CODE      src/t5repro/c4/sentence_starts.py
"""


rule sentences:
    """Split every document into sentences; only experiments with masked_lm need it."""
    input:
        inputs_of("sentences"),
        code=code_of("sentences"),
    output:
        **outputs_of("sentences"),
    log:
        "<logs>/sentences/{node}.log",
    benchmark:
        "<logs>/sentences/{node}.tsv"
    threads: 8
    resources:
        mem_mb=memory(2000),
        runtime=1440,
    params:
        **params_of("sentences"),
    shell:
        command_of("sentences")
