"""The vocabulary: a sample of the corpus by language, and SentencePiece trained on it.

READS     results/{run}/c4/{node}/manifest.json             and the Parquet files that it lists
WRITES    results/{run}/vocab_sample/{node}/sample.txt
          results/{run}/vocab/{node}/sentencepiece.model    with the sentinels
          results/{run}/vocab/{node}/sentencepiece.vocab    readable list of pieces
SETTINGS  vocab.*
CODE      src/t5repro/vocab/sample.py                       vocab_sample
          src/t5repro/vocab/train.py                        vocab
"""


rule vocab_sample:
    """Draw text from each language in the proportions of vocab.language_parts."""
    input:
        inputs_of("vocab_sample"),
        code=code_of("vocab_sample"),
    output:
        **outputs_of("vocab_sample"),
    log:
        "<logs>/vocab_sample/{node}.log",
    benchmark:
        "<logs>/vocab_sample/{node}.tsv"
    resources:
        mem_mb=memory(1000),
        runtime=240,
    params:
        **params_of("vocab_sample"),
    shell:
        command_of("vocab_sample")


rule vocab:
    """Train the unigram vocabulary and append the sentinels, or use vocab.model_file."""
    input:
        inputs_of("vocab"),
        code=code_of("vocab"),
    output:
        **outputs_of("vocab"),
    log:
        "<logs>/vocab/{node}.log",
    benchmark:
        "<logs>/vocab/{node}.tsv"
    threads: 16
    resources:
        mem_mb=memory(needs.vocabulary_megabytes),
        runtime=480,
    params:
        **params_of("vocab"),
    shell:
        command_of("vocab")
