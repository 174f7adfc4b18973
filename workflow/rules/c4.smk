"""
From WET files to the corpus: train Punkt, clean pages shard by shard, find duplicates, write by
language.

READS     {data.folder}/crawl/...                        WET files, or a list of their paths
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

import json
from fnmatch import fnmatch

from t5repro.config.stage_settings import engine_settings

# A resource and not a parameter: another engine writes the same bytes and reruns nothing. For the
# same reason no module of c4/spark/ is in the closure of a rule.
ENGINE = json.dumps(engine_settings(SETTINGS), sort_keys=True)


def part_suffixes():
    """Return what follows the number of a cleaning job in the names of its files."""
    parts = SETTINGS.c4.clean_parts
    for name in EXPERIMENTS:
        if (other := settings_at(name).c4.clean_parts) != parts:
            raise WorkflowError(
                f"c4.clean_parts is {parts}, but {other} in the experiment {name!r}; it must be "
                "equal in all: it divides files and changes no page"
            )
    return [f"-{part:03d}" for part in range(parts)] if parts > 1 else [""]


PARTS = part_suffixes()


def listed_path(name, key):
    """Return the path of the raw file in a setting; it must be in `data.sources`."""
    if name not in inventory.raw_files(SETTINGS):
        raise WorkflowError(
            f"{key} names {name!r}, which data.sources does not list; list it there with origin, "
            "licence and sha256"
        )
    return raw_path(name)


@cache
def crawl_files(patterns):
    """Return the crawl's files as the run file lists them, including withdrawn ones."""
    written = load.load_settings(config, keep_withdrawn=True)
    return sorted(
        name
        for name in inventory.raw_files(written)
        if any(fnmatch(name, pattern) for pattern in patterns)
    )


def wet_files(wildcards):
    """Return the WET files of one cleaning job."""
    c4 = settings_at(wildcards.node).c4
    if c4.crawl_paths:
        return [listed_path(c4.crawl_paths, "c4.crawl_paths")]
    files = crawl_files(tuple(c4.crawl))
    if len(files) < c4.clean_shards:
        raise WorkflowError(
            f"c4.clean_shards is {c4.clean_shards}, but c4.crawl {list(c4.crawl)} matches "
            f"{len(files)} files of data.sources; lower it, or list the files"
        )
    # A withdrawn file leaves its place empty: other jobs keep their files and need not run again.
    return available_paths(
        crawl_lists.files_of_shard(files, int(wildcards.shard), c4.clean_shards)
    )


def available_paths(names):
    """Return the paths of the files that are not withdrawn."""
    available = inventory.raw_files(SETTINGS)
    return [raw_path(name) for name in names if name in available]


def punkt_wet_files(wildcards):
    """Return the WET files for the training of Punkt."""
    c4 = settings_at(wildcards.node).c4
    if c4.crawl_paths:
        return [listed_path(c4.crawl_paths, "c4.crawl_paths")]
    files = crawl_files(tuple(c4.crawl))
    return available_paths(crawl_lists.evenly_spaced(files, c4.punkt_sample_files))


def wet_option(wildcards):
    return "--paths" if settings_at(wildcards.node).c4.crawl_paths else "--wet"


def bad_word_pairs(wildcards):
    lists = settings_at(wildcards.node).c4.bad_word_lists
    return pairs(
        {
            language: listed_path(lists[language], f"c4.bad_word_lists.{language}")
            for language in sorted(lists)
        }
    )


def bad_word_files(wildcards):
    return [pair.partition("=")[2] for pair in bad_word_pairs(wildcards)]


def select_files(wildcards):
    select = settings_at(wildcards.node).c4.select
    return [
        listed_path(name, f"c4.select.{key}")
        for key, name in (("domains", select.domains), ("urls", select.urls))
        if name
    ]


def select_options(wildcards):
    select = settings_at(wildcards.node).c4.select
    return [
        argument
        for key, name in (("domains", select.domains), ("urls", select.urls))
        if name
        for argument in (f"--{key}", raw_path(name))
    ]


def punkt_folder(node):
    return f"results/{RUN}/c4_punkt/{node_of('c4_punkt', node)}"


def punkt_files(wildcards):
    """Return the provided Punkt parameters, and the trained ones with their manifest."""
    c4 = settings_at(wildcards.node).c4
    provided = [
        listed_path(f"{folder}/{name}", f"c4.punkt_parameters.{language}")
        for language, folder in sorted(c4.punkt_parameters.items())
        for name in PUNKT_FILES
    ]
    if not languages_to_train(c4):
        return provided
    trained = files_at("c4_punkt", wildcards.node)
    return [*provided, f"{punkt_folder(wildcards.node)}/manifest.json", *trained]


def punkt_pairs(wildcards):
    """Return LANGUAGE=FOLDER of the Punkt parameters, provided and trained."""
    c4 = settings_at(wildcards.node).c4
    provided = {
        language: raw_path(path) for language, path in c4.punkt_parameters.items()
    }
    trained = {
        language: f"{punkt_folder(wildcards.node)}/{language}"
        for language in languages_to_train(c4)
    }
    return pairs(dict(sorted((provided | trained).items())))


def cleaned_shards(wildcards):
    """Return the cleaned pages of the crawl, or the rows of own text."""
    if settings_at(wildcards.node).corpus.files:
        return files_at("corpus", wildcards.node)
    node = node_of("c4_clean", wildcards.node)
    shards = settings_at(node).c4.clean_shards
    return [
        f"results/{RUN}/c4_clean/{node}/{shard:05d}{part}.parquet"
        for shard in range(shards)
        for part in PARTS
    ]


def cleaned_manifests(wildcards):
    if settings_at(wildcards.node).corpus.files:
        return [of("corpus", "manifest.json")(wildcards)]
    node = node_of("c4_clean", wildcards.node)
    shards = settings_at(node).c4.clean_shards
    return [
        f"results/{RUN}/c4_clean/{node}/{shard:05d}.manifest.json"
        for shard in range(shards)
    ]


for rule_name, nodes, files in rules_by_files("c4_punkt"):

    rule:
        """Learn sentence boundaries from pages of the crawl, language by language."""
        name:
            rule_name
        input:
            wet=punkt_wet_files,
            withdrawn="withdrawn/pages.yaml",
            data="<results>/data/manifest.json",
            code=code_of("c4_punkt"),
        output:
            files=files,
            manifest="<results>/c4_punkt/{node}/manifest.json",
        wildcard_constraints:
            node=nodes,
        log:
            "<logs>/c4_punkt/{node}.log",
        benchmark:
            "<logs>/c4_punkt/{node}.tsv"
        resources:
            mem_mb=memory(2000),
            runtime=240,
        params:
            settings=settings_of("c4_punkt"),
            wet=wet_option,
            folder=subpath(output.manifest, parent=True),
            work=f"work/{RUN}/c4_punkt/{{node}}",
        shell:
            "t5repro c4_punkt"
            " --settings {params.settings:q}"
            " {params.wet} {input.wet:q}"
            " --data {input.data:q}"
            " --withdrawn {input.withdrawn:q}"
            " --folder {params.folder:q}"
            " --work {params.work:q}"
            " --manifest {output.manifest:q}"
            " --log {log:q}"


rule c4_clean:
    """Clean the pages of one shard of the crawl."""
    input:
        wet=wet_files,
        bad_words=bad_word_files,
        punkt=punkt_files,
        withdrawn="withdrawn/pages.yaml",
        select=select_files,
        data="<results>/data/manifest.json",
        code=code_of("c4_clean"),
    output:
        pages=[f"<results>/c4_clean/{{node}}/{{shard}}{part}.parquet" for part in PARTS],
        manifest="<results>/c4_clean/{node}/{shard}.manifest.json",
    log:
        "<logs>/c4_clean/{node}/{shard}.log",
    benchmark:
        "<logs>/c4_clean/{node}/{shard}.tsv"
    threads: 2
    resources:
        mem_mb=memory(2000),
        runtime=1440,
        engine=ENGINE,
    params:
        settings=settings_of("c4_clean"),
        wet=wet_option,
        bad_words=bad_word_pairs,
        punkt=punkt_pairs,
        select=select_options,
        work=f"work/{RUN}/c4_clean/{{node}}/{{shard}}",
    shell:
        "t5repro c4_clean"
        " --settings {params.settings:q}"
        " --engine {resources.engine:q}"
        " {params.wet} {input.wet:q}"
        " --shard {wildcards.shard}"
        " --bad-words {params.bad_words:q}"
        " --punkt {params.punkt:q}"
        " {params.select:q}"
        " --data {input.data:q}"
        " --withdrawn {input.withdrawn:q}"
        " --work {params.work:q}"
        " --output {output.pages:q}"
        " --manifest {output.manifest:q}"
        " --log {log:q}"


for rule_name, nodes, files in rules_by_files("c4_dedup"):

    rule:
        """Find duplicate pages and duplicate text, from hashes alone."""
        name:
            rule_name
        input:
            cleaned=cleaned_shards,
            cleaned_manifests=cleaned_manifests,
            code=code_of("c4_dedup"),
        output:
            files=files,
            manifest="<results>/c4_dedup/{node}/manifest.json",
        wildcard_constraints:
            node=nodes,
        log:
            "<logs>/c4_dedup/{node}.log",
        benchmark:
            "<logs>/c4_dedup/{node}.tsv"
        resources:
            mem_mb=memory(4000),
            runtime=1440,
            engine=ENGINE,
        params:
            settings=settings_of("c4_dedup"),
            folder=subpath(output.manifest, parent=True),
        shell:
            "t5repro c4_dedup"
            " --settings {params.settings:q}"
            " --engine {resources.engine:q}"
            " --cleaned {input.cleaned:q}"
            " --folder {params.folder:q}"
            " --manifest {output.manifest:q}"
            " --log {log:q}"


for rule_name, nodes, files in rules_by_files("c4"):

    rule:
        """Remove duplicates, detect languages, drop pages with bad words, write the corpus."""
        name:
            rule_name
        input:
            cleaned=cleaned_shards,
            decisions=of("c4_dedup", "manifest.json"),
            removals=files_of("c4_dedup"),
            cleaned_manifests=cleaned_manifests,
            bad_words=bad_word_files,
            punkt=punkt_files,
            data="<results>/data/manifest.json",
            code=code_of("c4"),
        output:
            files=files,
            manifest="<results>/c4/{node}/manifest.json",
        wildcard_constraints:
            node=nodes,
        log:
            "<logs>/c4/{node}.log",
        benchmark:
            "<logs>/c4/{node}.tsv"
        resources:
            mem_mb=memory(4000),
            runtime=1440,
            engine=ENGINE,
        params:
            settings=settings_of("c4"),
            bad_words=bad_word_pairs,
            punkt=punkt_pairs,
            decisions=subpath(input.decisions, parent=True),
            folder=subpath(output.manifest, parent=True),
        shell:
            "t5repro c4"
            " --settings {params.settings:q}"
            " --engine {resources.engine:q}"
            " --cleaned {input.cleaned:q}"
            " --decisions {params.decisions:q}"
            " --bad-words {params.bad_words:q}"
            " --punkt {params.punkt:q}"
            " --data {input.data:q}"
            " --folder {params.folder:q}"
            " --manifest {output.manifest:q}"
            " --log {log:q}"
