"""Bytes that jobs read and write. Sizes of raw files that are absent are assumed."""

import fnmatch
from collections.abc import Iterable, Mapping
from pathlib import Path

from t5repro.config.own_text import files_of_tasks, text_files
from t5repro.config.schema import Settings
from t5repro.config.task_files import raw_files, task_files
from t5repro.data.paths import raw_path
from t5repro.estimate.work import examples_of
from t5repro.model.sizes import parameter_count
from t5repro.plan.memory import TRAININGS, WEIGHT_BYTES, slots_per_weight
from t5repro.plan.nodes import Key
from t5repro.plan.run_plan import Node

WET_FILE_BYTES = 131e6  # the mean of CC-MAIN-2019-09, as in `t5repro crawl plan`
WET_FILES = 56_000  # of CC-MAIN-2019-18, unless the list of paths is present
ABSENT_FILE_BYTES = 10e6  # a raw file of a task that was not fetched yet
TEXT_PER_CORPUS_BYTE = 3  # characters in a byte of compressed Parquet; the demo has 2.8
SCORED_BYTES = 440  # prediction and example, in the demo's records
PREDICTION_BYTES = 200
REPORTED_BYTES = 0.5e6  # scores, predictions and histories of an experiment


def input_bytes(node: Node, written: Mapping[Key, float], row_counts: Mapping[str, int]) -> float:
    """Return the bytes that a job without the model reads.

    Args:
        node: the node.
        written: node -> bytes that it writes, for all nodes of earlier stages.
        row_counts: task -> rows to predict, where they are known.
    """
    settings = node.settings
    if node.rule == "data":
        return _present(settings, raw_files(settings))
    if node.rule in ("c4_punkt", "c4_clean"):
        sample = settings.c4.punkt_sample_files * WET_FILE_BYTES
        crawl = crawl_bytes(settings)
        return min(crawl, sample) if node.rule == "c4_punkt" else crawl
    if node.rule == "corpus":
        train, validation = text_files(
            settings.corpus, set(raw_files(settings)), files_of_tasks(settings)
        )
        return _bytes_of(settings, [*train, *validation])
    if node.rule == "tasks":
        files = {name for names in task_files(settings, node.name).values() for name in names}
        return _bytes_of(settings, files)
    if node.rule == "evaluate_score":
        return SCORED_BYTES * _examples(settings, row_counts)
    if node.rule == "report":
        return REPORTED_BYTES * len(node.experiments)
    return sum(written.get(key, 0.0) for key in node.upstream)


def output_bytes(node: Node, read: float, share: float, row_counts: Mapping[str, int]) -> float:
    """Return the bytes that a node writes.

    Args:
        node: the node.
        read: bytes that it reads.
        share: bytes that its rule writes for a byte read.
        row_counts: task -> rows to predict, where they are known.
    """
    settings = node.settings
    if node.rule in TRAININGS:
        weights = WEIGHT_BYTES * parameter_count(settings.model, settings.vocab.embedding_rows)
        training = getattr(settings, node.rule)
        return weights * (1 + slots_per_weight(training.optimizer) + len(training.kept_steps))
    if node.rule == "evaluate_predict":
        return PREDICTION_BYTES * _examples(settings, row_counts)
    if node.rule == "vocab_sample":
        return min(settings.vocab.sample_chars, TEXT_PER_CORPUS_BYTE * read)
    return read * share


def crawl_bytes(settings: Settings) -> float:
    """Return the bytes of the WET files of a run."""
    c4 = settings.c4
    if c4.crawl_paths:
        return WET_FILES * WET_FILE_BYTES
    names = [
        name
        for name in raw_files(settings)
        if any(fnmatch.fnmatch(name, pattern) for pattern in c4.crawl)
    ]
    return _bytes_of(settings, names, absent=WET_FILE_BYTES)


def absent_files(settings: Settings) -> list[str]:
    """Return the listed raw files with assumed sizes."""
    return [name for name in raw_files(settings) if _size(settings, name, -1.0) < 0]


def _examples(settings: Settings, row_counts: Mapping[str, int]) -> int:
    return sum(examples_of(settings.tasks.names, settings.evaluate, row_counts).values())


def _bytes_of(
    settings: Settings, names: Iterable[str], *, absent: float = ABSENT_FILE_BYTES
) -> float:
    return sum(_size(settings, name, absent) for name in names)


def _present(settings: Settings, names: Iterable[str]) -> float:
    return sum(_size(settings, name, 0.0) for name in names)


def _size(settings: Settings, name: str, absent: float) -> float:
    """Return the bytes of a raw file: in the folder of data, or where it will be copied from."""
    # The rule `data` copies from `data.source`, so an absent file may be there.
    source = Path(settings.data.source) / name if settings.data.source else None
    for path in (raw_path(settings.data, name), source):
        if path is not None and path.is_file():
            return float(path.stat().st_size)
    return absent
