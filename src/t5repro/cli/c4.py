"""The command line of C4: turns arguments into the job of a rule, and chooses the engine."""

import argparse
import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def on_spark(arguments: argparse.Namespace) -> Iterator[tuple[Any, int]]:
    """Yield a Spark session and its number of partitions; None and 0 for the local engine."""
    from t5repro.config.load import load_run_file
    from t5repro.config.sections.c4 import Engine
    from t5repro.config.stage_settings import engine_settings
    from t5repro.config.validation import parse_engine

    text: str = arguments.engine or arguments.settings
    if text.endswith((".yaml", ".yml")):
        engine = Engine.model_validate(engine_settings(load_run_file(Path(text))))
    else:
        engine = parse_engine(arguments.engine or "{}")
    if engine.engine == "local":
        yield None, 0
        return
    from t5repro.c4.spark.session import session

    with session(engine.spark, arguments.command) as spark:
        yield spark, engine.spark.partitions


def train_punkt(arguments: argparse.Namespace, settings: Any) -> None:
    """Run the rule `c4_punkt`."""
    from t5repro.c4 import punkt

    punkt.train_punkt(
        punkt.PunktJob(
            settings,
            arguments.folder,
            arguments.manifest,
            wet=arguments.wet,
            path_list=arguments.paths,
            withdrawn=arguments.withdrawn,
        )
    )


def clean_shard(
    arguments: argparse.Namespace, settings: Any, lists: Mapping[str, Mapping[str, Path]]
) -> None:
    """Run the rule `c4_clean`."""
    from t5repro.c4 import clean

    select = {"domains": arguments.domains, "urls": arguments.urls}
    job = clean.CleanJob(
        settings,
        arguments.output,
        arguments.manifest,
        wet=arguments.wet,
        path_list=arguments.paths,
        shard=arguments.shard,
        select={name: path for name, path in select.items() if path is not None},
        withdrawn=arguments.withdrawn,
        **lists,
    )
    with on_spark(arguments) as (spark, _):
        if spark is None:
            clean.clean_shard(job)
        else:
            from t5repro.c4.spark import steps

            steps.clean_shard(spark, job)


def deduplicate(arguments: argparse.Namespace, settings: Any) -> None:
    """Run the rule `c4_dedup`."""
    from t5repro.c4 import deduplicate as rule

    job = rule.DedupJob(settings, arguments.cleaned, arguments.output, arguments.manifest)
    with on_spark(arguments) as (spark, partitions):
        if spark is None:
            rule.deduplicate(job)
        else:
            from t5repro.c4.spark import steps

            steps.deduplicate(spark, job, partitions=partitions)


def write_corpus(
    arguments: argparse.Namespace, settings: Any, lists: Mapping[str, Mapping[str, Path]]
) -> None:
    """Run the rule `c4`."""
    from t5repro.c4 import write

    job = write.CorpusJob(
        settings,
        arguments.cleaned,
        arguments.decisions,
        arguments.folder,
        arguments.manifest,
        **lists,
    )
    with on_spark(arguments) as (spark, partitions):
        if spark is None:
            write.write_corpus(job)
        else:
            from t5repro.c4.spark import steps

            steps.write_corpus(spark, job, partitions=partitions)
