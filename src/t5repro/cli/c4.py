"""Subcommands of the corpus: the job of a rule, run here or on Apache Spark."""

import argparse
import contextlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from t5repro.cli.arguments import Argument, named_paths, optional_path, paths
from t5repro.lineage.input_hashes import Expected, verify_inputs

CRAWL = (
    Argument("wet", "WET files", {"type": Path, "nargs": "*", "default": []}, kind="raw"),
    optional_path("paths", "list of WET paths, instead of --wet", kind="raw"),
    optional_path("withdrawn", "list of withdrawn URLs and domains"),
    optional_path("work", "folder of the downloaded WET files of an unfinished job"),
)
PUNKT = named_paths(
    "punkt",
    "folder of Punkt parameters (punkt_tab layout)",
    "LANGUAGE",
    required=False,
    kind="either",
)
LISTS = (
    PUNKT,
    named_paths("bad_words", "list of bad words", "LANGUAGE", required=False, kind="raw"),
)
CLEANED = paths("cleaned", "outputs of c4_clean")
ENGINE = Argument(
    "engine",
    "`c4.engine` and `c4.spark` as JSON, or a run file that contains them",
    {"default": ""},
)


@contextlib.contextmanager
def _engine_of(
    arguments: argparse.Namespace, expected: Sequence[Expected], outputs: Iterable[Path]
) -> Iterator[tuple[Any, int]]:
    """Yield a Spark session and its number of partitions; None and 0 for the local engine.

    The job holds its lock, and its inputs are verified where it runs.
    """
    from t5repro.config.load import load_run_file
    from t5repro.config.sections.c4 import Engine
    from t5repro.config.stage_settings import engine_settings
    from t5repro.config.validation import parse_engine
    from t5repro.lineage.leftovers import exclusive

    text: str = arguments.engine or arguments.settings
    if text.endswith((".yaml", ".yml")):
        engine = Engine.model_validate(engine_settings(load_run_file(Path(text))))
    else:
        engine = parse_engine(arguments.engine or "{}")
    with exclusive(arguments.manifest, outputs):
        if engine.engine == "local":
            verify_inputs(expected)
            yield None, 0
            return
        from t5repro.c4.spark.session import session
        from t5repro.c4.spark.steps import sha256_of_files

        with session(engine.spark, arguments.stage) as spark:
            verify_inputs(expected, partial(sha256_of_files, spark))
            yield spark, engine.spark.partitions


def train_punkt(settings: Any, arguments: argparse.Namespace, values: dict[str, Any]) -> None:
    """Run the rule `c4_punkt`, which has one machine's work."""
    from t5repro.c4 import punkt

    path_list = values.pop("paths")
    punkt.train_punkt(punkt.PunktJob(settings, path_list=path_list, **values))


def clean_shard(
    settings: Any,
    arguments: argparse.Namespace,
    values: dict[str, Any],
    expected: Sequence[Expected],
) -> None:
    """Run the rule `c4_clean`."""
    from t5repro.c4 import clean

    select = {name: values.pop(name) for name in ("domains", "urls")}
    job = clean.CleanJob(
        settings,
        outputs=values.pop("output"),
        path_list=values.pop("paths"),
        select={name: path for name, path in select.items() if path is not None},
        **values,
    )
    with _engine_of(arguments, expected, job.outputs) as (spark, _):
        if spark is None:
            clean.clean_shard(job)
        else:
            from t5repro.c4.spark import steps

            steps.clean_shard(spark, job)


def deduplicate(
    settings: Any,
    arguments: argparse.Namespace,
    values: dict[str, Any],
    expected: Sequence[Expected],
) -> None:
    """Run the rule `c4_dedup`."""
    from t5repro.c4 import deduplicate as rule

    job = rule.DedupJob(settings, **values)
    with _engine_of(arguments, expected, ()) as (spark, partitions):
        if spark is None:
            rule.deduplicate(job)
        else:
            from t5repro.c4.spark import steps

            steps.deduplicate(spark, job, partitions=partitions)


def write_corpus(
    settings: Any,
    arguments: argparse.Namespace,
    values: dict[str, Any],
    expected: Sequence[Expected],
) -> None:
    """Run the rule `c4`."""
    from t5repro.c4 import write
    from t5repro.config.sections.c4 import corpus_files

    job = write.CorpusJob(settings, **values)
    outputs = [job.folder / name for name in corpus_files(settings.c4)]
    with _engine_of(arguments, expected, outputs) as (spark, partitions):
        if spark is None:
            write.write_corpus(job)
        else:
            from t5repro.c4.spark import steps

            steps.write_corpus(spark, job, partitions=partitions)
