"""The jobs of the corpus that run here or on Apache Spark."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from t5repro.jobs.contamination import ContaminationJob
from t5repro.jobs.corpus import CleanJob, CorpusJob, DedupJob
from t5repro.lineage.input_hashes import Expected, verify_inputs
from t5repro.lineage.leftovers import exclusive


@contextlib.contextmanager
def _engine_of(
    stage: str, job: Any, expected: Sequence[Expected], outputs: Iterable[Path]
) -> Iterator[tuple[Any, int]]:
    """Yield a Spark session and its number of partitions; None and 0 for the local engine.

    The job holds its lock, and its inputs are verified where it runs.
    """
    engine = job.engine
    with exclusive(job.manifest, outputs):
        if engine.engine == "local":
            verify_inputs(expected)
            yield None, 0
            return
        from t5repro.c4.spark.session import session
        from t5repro.c4.spark.steps import sha256_of_files

        with session(engine.spark, stage) as spark:
            verify_inputs(expected, partial(sha256_of_files, spark))
            yield spark, engine.spark.partitions


def _clean_shard(job: CleanJob, expected: Sequence[Expected]) -> None:
    from t5repro.c4 import clean

    with _engine_of("c4_clean", job, expected, job.pages) as (spark, _):
        if spark is None:
            clean.clean_shard(job)
        else:
            from t5repro.c4.spark import steps

            steps.clean_shard(spark, job)


def _deduplicate(job: DedupJob, expected: Sequence[Expected]) -> None:
    from t5repro.c4 import deduplicate

    with _engine_of("c4_dedup", job, expected, ()) as (spark, partitions):
        if spark is None:
            deduplicate.deduplicate(job)
        else:
            from t5repro.c4.spark import steps

            steps.deduplicate(spark, job, partitions=partitions)


def _write_corpus(job: CorpusJob, expected: Sequence[Expected]) -> None:
    from t5repro.c4 import write
    from t5repro.config.sections.c4 import corpus_files

    outputs = [job.folder / name for name in corpus_files(job.settings.c4)]
    with _engine_of("c4", job, expected, outputs) as (spark, partitions):
        if spark is None:
            write.write_corpus(job)
        else:
            from t5repro.c4.spark import steps

            steps.write_corpus(spark, job, partitions=partitions)


def _find_contamination(job: ContaminationJob, expected: Sequence[Expected]) -> None:
    from t5repro.contamination.rows_in_corpus import find_contamination, write_found

    with _engine_of("contamination", job, expected, [job.found]) as (spark, _):
        if spark is None:
            find_contamination(job)
        else:
            from t5repro.contamination.spark import search_parts

            write_found(job, partial(search_parts, spark))


ON_ENGINE: Mapping[str, Callable[[Any, Sequence[Expected]], None]] = {
    "c4_clean": _clean_shard,
    "c4_dedup": _deduplicate,
    "c4": _write_corpus,
    "contamination": _find_contamination,
}
