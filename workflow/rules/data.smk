"""
Bring the raw inputs into place and check them against the run file.

READS     data.source, or the origins in data.sources when data.download allows the network
WRITES    {data.folder}/...                    every raw file (frozen by data.dvc)
          results/{run}/data/manifest.json     their hashes
SETTINGS  data.*
CODE      src/t5repro/data/
"""

RAW_FILES = [raw_path(name) for name in inventory.raw_files(SETTINGS)]

# What is in place is no output of ours: Snakemake deletes the outputs of a job that fails.
TO_BRING = [raw_path(name) for name in raw.files_to_bring(SETTINGS.data)]


if TO_BRING:

    rule data_fetch:
        """Copy or download what is not in place. Archives stay in work/ between runs."""
        output:
            raw=TO_BRING,
        log:
            f"logs/{RUN}/data_fetch.log",
        params:
            settings=settings_of("data"),
        shell:
            "t5repro data_fetch"
            " --settings {params.settings:q}"
            " --downloads work/downloads"
            " --log {log:q}"


rule data:
    """Hash every raw file; a file that is not the one named stops the run."""
    input:
        raw=RAW_FILES,
        code=code_of("data"),
    output:
        manifest="results/{run}/data/manifest.json",
    log:
        "logs/{run}/data.log",
    params:
        settings=settings_of("data"),
    shell:
        "t5repro data"
        " --settings {params.settings:q}"
        " --manifest {output.manifest:q}"
        " --log {log:q}"
