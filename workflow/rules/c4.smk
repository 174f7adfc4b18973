"""From WET files to the corpus: train Punkt, clean pages shard by shard, find duplicates, write by
language.

READS     {data.folder}/crawl/...                        WET files, or a list of their paths; WAT files
                                                         on demand
          results/{run}/corpus/{node}/...                rows of own text, if the run has it
          withdrawn/pages.yaml                           URLs and domains to leave out
          {data.folder}/...                              lists of bad words, domains, addresses;
                                                         Punkt parameters
WRITES    results/{run}/c4_punkt/{node}/{language}/...   Punkt parameters
          results/{run}/c4_clean/{node}/{shard}.parquet  cleaned pages and hash rows
          results/{run}/c4_dedup/{node}/{shard}.parquet  removals of a cleaned file
          results/{run}/c4/{node}/{language}-{split}-{i}-of-{n}.parquet
SETTINGS  c4.*
CODE      src/t5repro/c4/punkt.py                        c4_punkt
          src/t5repro/c4/clean.py                        c4_clean
          src/t5repro/c4/deduplicate.py                  c4_dedup
          src/t5repro/c4/write.py                        c4
"""

for form in forms_of("c4_punkt"):

    rule:
        """Learn sentence boundaries from pages of the crawl, language by language."""
        name:
            form.name
        input:
            inputs_of("c4_punkt"),
            code=code_of("c4_punkt"),
        output:
            **form.outputs,
        wildcard_constraints:
            node="|".join(form.nodes),
        log:
            "<logs>/c4_punkt/{node}.log",
        benchmark:
            "<logs>/c4_punkt/{node}.tsv"
        resources:
            mem_mb=memory(2000),
            runtime=240,
        params:
            **params_of("c4_punkt"),
        shell:
            command_of("c4_punkt")


rule c4_clean:
    """Clean the pages of one shard of the crawl."""
    input:
        inputs_of("c4_clean"),
        code=code_of("c4_clean"),
    output:
        **outputs_of("c4_clean"),
    log:
        "<logs>/c4_clean/{node}/{shard}.log",
    benchmark:
        "<logs>/c4_clean/{node}/{shard}.tsv"
    threads: 2
    resources:
        mem_mb=memory(2000),
        runtime=1440,
        engine=needs.engine(SETTINGS),
    params:
        **params_of("c4_clean"),
    shell:
        command_of("c4_clean")


for form in forms_of("c4_dedup"):

    rule:
        """Find duplicate pages and duplicate text, from hashes alone."""
        name:
            form.name
        input:
            inputs_of("c4_dedup"),
            code=code_of("c4_dedup"),
        output:
            **form.outputs,
        wildcard_constraints:
            node="|".join(form.nodes),
        log:
            "<logs>/c4_dedup/{node}.log",
        benchmark:
            "<logs>/c4_dedup/{node}.tsv"
        resources:
            mem_mb=memory(4000),
            runtime=1440,
            engine=needs.engine(SETTINGS),
        params:
            **params_of("c4_dedup"),
        shell:
            command_of("c4_dedup")


for form in forms_of("c4"):

    rule:
        """Remove duplicates, detect languages, drop pages with bad words, write the corpus."""
        name:
            form.name
        input:
            inputs_of("c4"),
            code=code_of("c4"),
        output:
            **form.outputs,
        wildcard_constraints:
            node="|".join(form.nodes),
        log:
            "<logs>/c4/{node}.log",
        benchmark:
            "<logs>/c4/{node}.tsv"
        resources:
            mem_mb=memory(4000),
            runtime=1440,
            engine=needs.engine(SETTINGS),
        params:
            **params_of("c4"),
        shell:
            command_of("c4")
