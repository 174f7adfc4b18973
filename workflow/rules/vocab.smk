"""
The vocabulary: a sample of the corpus by language, and SentencePiece trained on it.

READS     results/{run}/c4/{node}/manifest.json             and the Parquet files that it lists
WRITES    results/{run}/vocab_sample/{node}/sample.txt
          results/{run}/vocab/{node}/sentencepiece.model    with the sentinels
          results/{run}/vocab/{node}/sentencepiece.vocab    readable list of pieces
SETTINGS  vocab.*
CODE      src/t5repro/vocab/sample.py                       vocab_sample
          src/t5repro/vocab/train.py                        vocab
"""


def vocabulary_source(wildcards):
    """Return the sample to train on, or the raw file of a vocabulary that is used unchanged."""
    if files := inventory.vocabulary_files(settings_at(wildcards.node)):
        return raw_path(files[0])
    return of("vocab_sample", "sample.txt")(wildcards)


def sample_manifest(wildcards):
    """Return the manifest of the sample, unless the vocabulary is a raw file."""
    trains = not inventory.vocabulary_files(settings_at(wildcards.node))
    return [of("vocab_sample", "manifest.json")(wildcards)] if trains else []


def vocabulary_option(wildcards):
    return (
        "--model-file" if settings_at(wildcards.node).vocab.model_file else "--sample"
    )


rule vocab_sample:
    """Draw text from each language in the proportions of vocab.language_parts."""
    input:
        corpus=of("c4", "manifest.json"),
        pages=files_of("c4"),
        code=code_of("vocab_sample"),
    output:
        sample="<results>/vocab_sample/{node}/sample.txt",
        manifest="<results>/vocab_sample/{node}/manifest.json",
    log:
        "<logs>/vocab_sample/{node}.log",
    benchmark:
        "<logs>/vocab_sample/{node}.tsv"
    resources:
        mem_mb=memory(1000),
        runtime=240,
    params:
        settings=settings_of("vocab_sample"),
    shell:
        "t5repro vocab_sample"
        " --settings {params.settings:q}"
        " --corpus {input.corpus:q}"
        " --output {output.sample:q}"
        " --manifest {output.manifest:q}"
        " --log {log:q}"


rule vocab:
    """Train the unigram vocabulary and append the sentinels, or use vocab.model_file."""
    input:
        sample=vocabulary_source,
        manifest=sample_manifest,
        code=code_of("vocab"),
    output:
        model="<results>/vocab/{node}/sentencepiece.model",
        pieces="<results>/vocab/{node}/sentencepiece.vocab",
        manifest="<results>/vocab/{node}/manifest.json",
    log:
        "<logs>/vocab/{node}.log",
    benchmark:
        "<logs>/vocab/{node}.tsv"
    threads: 16
    resources:
        mem_mb=sample_memory,
        runtime=480,
    params:
        settings=settings_of("vocab"),
        option=vocabulary_option,
    shell:
        "t5repro vocab"
        " --settings {params.settings:q}"
        " {params.option} {input.sample:q}"
        " --model {output.model:q}"
        " --pieces {output.pieces:q}"
        " --manifest {output.manifest:q}"
        " --log {log:q}"
