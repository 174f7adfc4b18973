"""The rule `c4_dedup`: decide from hashes which pages and which text are duplicates."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.c4 import tables
from t5repro.c4.dedup import removals
from t5repro.c4.dedup.duplicates import REMOVAL_ROW, duplicate_spans, duplicate_urls
from t5repro.c4.dedup.key_rows import add_removals, spill_units, spill_urls
from t5repro.c4.dedup.spill import RowSpill, spill_folder
from t5repro.c4.malloc import return_freed_memory
from t5repro.errors import ArtifactError
from t5repro.files import by_name, write_manifest
from t5repro.jobs.corpus import DedupJob
from t5repro.progress import Progress


def cleaned_files(job: DedupJob) -> list[Path]:
    """Return the cleaned files in the order of their numbers.

    Raises:
        ArtifactError: two of them have one name.
    """
    shards = by_name(job.cleaned)
    name, count = Counter(path.name for path in shards).most_common(1)[0]
    if count > 1:
        raise ArtifactError(
            f"{count} cleaned files are called {name}, the name of the decisions about each; "
            "rename all but one"
        )
    return shards


def deduplicate(job: DedupJob) -> None:
    """Decide which pages and which units of text are duplicates.

    Raises:
        ArtifactError: a cleaned file is missing, damaged, or has no keys of the unit.
    """
    return_freed_memory()
    shards = cleaned_files(job)
    compared = np.zeros(len(shards), dtype=np.int64)
    counts = removals.zero_counts()
    with spill_folder(job.manifest) as folder:
        with Progress("c4_dedup", total=2 * len(shards), unit="shards") as progress:
            older_pages = RowSpill(folder / "older_pages", REMOVAL_ROW, len(shards))
            for rows in spill_urls(shards, folder, progress).drain():
                add_removals(older_pages, duplicate_urls(rows))
            units = RowSpill(folder / "removed_units", REMOVAL_ROW, len(shards))
            unit = job.settings.c4.dedup.unit
            for rows in spill_units(shards, unit, older_pages, folder, progress).drain():
                compared += np.bincount(rows["shard"], minlength=len(shards))
                add_removals(units, duplicate_spans(rows))
        for shard, path in enumerate(shards):
            counts += removals.write_decisions(
                folder / path.name,
                tables.name_and_pages(path),
                {"units": int(compared[shard])},
                removals.decisions_of(older_pages.read(shard), units.read(shard)),
            )
        publish_decisions(job, folder)
    write_dedup_manifest(job, shards, counts)


def publish_decisions(job: DedupJob, folder: Path) -> None:
    """Move the complete decisions to the folder of the job, and delete an earlier run's decisions.

    Args:
        job: the job.
        folder: contains the decisions about each cleaned file, on the same file system.
    """
    names = [path.name for path in cleaned_files(job)]
    job.folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        os.replace(folder / name, job.folder / name)
    for path in job.folder.glob("*.parquet"):
        if path.name not in names:
            path.unlink()


def write_dedup_manifest(
    job: DedupJob, shards: Sequence[Path | Mapping[str, Any]], counts: Mapping[str, int]
) -> None:
    """Write the manifest of deduplication.

    Args:
        job: the job.
        shards: cleaned files or their descriptions (`files.describe_file`), ordered.
        counts: compared and removed pages and units.
    """
    write_manifest(
        job.manifest,
        rule="c4_dedup",
        settings=job.settings.model_dump(mode="json"),
        inputs=shards,
        outputs=[job.folder / path.name for path in cleaned_files(job)],
        counters=counts,
    )
