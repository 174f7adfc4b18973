"""Fetch the raw inputs and check them against the run file.

READS     data.source, or the origins in data.sources if data.download allows it
WRITES    {data.folder}/...                    every raw file (versioned by data.dvc)
          results/{run}/data/manifest.json     their hashes
SETTINGS  data.*
CODE      src/t5repro/data/fetch.py            data_fetch
          src/t5repro/data/check.py            data
"""

TO_FETCH = SNAKEMAKE_RUN.to_fetch

if TO_FETCH:

    rule data_fetch:
        """Copy or download missing files. Archives are kept in work/ between runs."""
        output:
            raw=TO_FETCH,
        localrule: SNAKEMAKE_RUN.uses_storage
        log:
            f"logs/{RUN}/data_fetch.log",
        benchmark:
            f"logs/{RUN}/data_fetch.tsv"
        resources:
            mem_mb=memory(500),
            runtime=1440,
        params:
            settings=settings_of("data"),
        shell:
            "t5repro stage data_fetch"
            " --settings {params.settings:q}"
            " --downloads work/downloads"
            " --log {log:q}"


rule data:
    """Hash every raw file; a difference from the run file stops the run."""
    input:
        inputs_of("data"),
        code=code_of("data"),
    output:
        **outputs_of("data"),
    log:
        "<logs>/data.log",
    benchmark:
        "<logs>/data.tsv"
    resources:
        mem_mb=memory(500),
        runtime=240,
    params:
        **params_of("data"),
    shell:
        command_of("data")
