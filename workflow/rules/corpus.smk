"""The user's own text in place of a crawl: rows of Parquet, JSON lines or plain text.

READS     {data.folder}/...                              files of corpus.files
          withdrawn/pages.yaml                           URLs, ids and domains to leave out
WRITES    results/{run}/corpus/{node}/*.parquet          a row per page, as those of c4_clean
SETTINGS  corpus.*, c4.*
CODE      src/t5repro/c4/own_text/read.py                corpus
"""

for form in forms_of("corpus"):

    rule:
        """Read own text, check every row, and write it as pages."""
        name:
            form.name
        input:
            inputs_of("corpus"),
            code=code_of("corpus"),
        output:
            **form.outputs,
        wildcard_constraints:
            node="|".join(form.nodes),
        log:
            "<logs>/corpus/{node}.log",
        benchmark:
            "<logs>/corpus/{node}.tsv"
        threads: 2
        resources:
            mem_mb=memory(2000),
            runtime=1440,
        params:
            **params_of("corpus"),
        shell:
            command_of("corpus")
