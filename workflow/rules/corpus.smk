"""
The user's own text in place of a crawl: rows of Parquet, JSON lines or plain text.

READS     {data.folder}/...                              files of corpus.files
          withdrawn/pages.yaml                           URLs, ids and domains to leave out
WRITES    results/{run}/corpus/{node}/*.parquet          a row per page, as those of c4_clean
SETTINGS  corpus.*, c4.*
CODE      src/t5repro/c4/own_text/read.py                corpus
"""

@cache
def own_text_files(node):
    """Return the raw files of own text for training and for validation."""
    corpus = settings_at(node).corpus
    if not corpus.files:
        raise WorkflowError(
            "corpus.files is empty: this run makes its corpus from the crawl; name files there, or "
            "ask for the stage c4"
        )
    try:
        names = text_files(
            corpus, set(inventory.raw_files(SETTINGS)), files_of_tasks(SETTINGS)
        )
    except T5ReproError as error:
        raise WorkflowError(str(error)) from None
    return [[raw_path(name) for name in part] for part in names]


for rule_name, nodes, files in rules_by_files("corpus"):

    rule:
        """Read own text, check every row, and write it as pages."""
        name:
            rule_name
        input:
            files=lambda wildcards: own_text_files(wildcards.node)[0],
            validation_files=lambda wildcards: own_text_files(wildcards.node)[1],
            bad_words=bad_word_files,
            punkt=punkt_files,
            withdrawn="withdrawn/pages.yaml",
            data="<results>/data/manifest.json",
            code=code_of("corpus"),
        output:
            files=files,
            manifest="<results>/corpus/{node}/manifest.json",
        wildcard_constraints:
            node=nodes,
        log:
            "<logs>/corpus/{node}.log",
        benchmark:
            "<logs>/corpus/{node}.tsv"
        threads: 2
        resources:
            mem_mb=memory(2000),
            runtime=1440,
        params:
            settings=settings_of("corpus"),
            root=SETTINGS.data.folder,
            bad_words=bad_word_pairs,
            punkt=punkt_pairs,
            folder=subpath(output.manifest, parent=True),
        shell:
            "t5repro corpus"
            " --settings {params.settings:q}"
            " --files {input.files:q}"
            " --validation-files {input.validation_files:q}"
            " --root {params.root:q}"
            " --bad-words {params.bad_words:q}"
            " --punkt {params.punkt:q}"
            " --data {input.data:q}"
            " --withdrawn {input.withdrawn:q}"
            " --folder {params.folder:q}"
            " --manifest {output.manifest:q}"
            " --log {log:q}"
