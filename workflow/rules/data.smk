"""
Fetch the raw inputs and check them against the run file.

READS     data.source, or the origins in data.sources if data.download allows it
WRITES    {data.folder}/...                    every raw file (versioned by data.dvc)
          results/{run}/data/manifest.json     their hashes
SETTINGS  data.*
CODE      src/t5repro/data/fetch.py            data_fetch
          src/t5repro/data/check.py            data
"""

RAW_FILES = [raw_path(name) for name in inventory.raw_files(SETTINGS)]

# Existing files are not outputs of the rule: Snakemake deletes the outputs of a failed job.
TO_FETCH = [raw_path(name) for name in fetch.files_to_fetch(SETTINGS.data)]
if workflow.remote_exec and STORAGE:  # the rule runs where Snakemake was started
    TO_FETCH = []


if TO_FETCH:

    rule data_fetch:
        """Copy or download missing files. Archives are kept in work/ between runs."""
        output:
            raw=TO_FETCH,
        localrule: STORAGE
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
            "t5repro data_fetch"
            " --settings {params.settings:q}"
            " --downloads work/downloads"
            " --log {log:q}"


rule data:
    """Hash every raw file; a difference from the run file stops the run."""
    input:
        raw=RAW_FILES,
        code=code_of("data"),
    output:
        manifest="<results>/data/manifest.json",
    log:
        "<logs>/data.log",
    benchmark:
        "<logs>/data.tsv"
    resources:
        mem_mb=memory(500),
        runtime=240,
    params:
        settings=settings_of("data"),
    shell:
        "t5repro data"
        " --settings {params.settings:q}"
        " --manifest {output.manifest:q}"
        " --log {log:q}"
