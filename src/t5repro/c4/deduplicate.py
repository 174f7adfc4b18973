"""The rule `c4_dedup`: decide from hashes which pages and which text are duplicates."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from t5repro.c4 import tables
from t5repro.c4.dedup import removals
from t5repro.c4.dedup.duplicates import REMOVAL_ROW, duplicate_spans, duplicate_urls
from t5repro.c4.dedup.key_rows import add_removals, spill_units, spill_urls
from t5repro.c4.dedup.spill import RowSpill, spill_folder
from t5repro.c4.malloc import return_freed_memory
from t5repro.config.sections.c4 import DedupStage
from t5repro.files import by_name, write_manifest
from t5repro.progress import Progress


class DedupJob(NamedTuple):
    """The job of `c4_dedup`.

    Attributes:
        settings: settings of the rule.
        cleaned: outputs of `c4_clean`, in any order.
        output: Parquet file to write, columns `tables.DECISIONS`.
        manifest: manifest to write.
    """

    settings: DedupStage
    cleaned: Sequence[Path]
    output: Path
    manifest: Path

    def shards(self) -> list[Path]:
        """Return the cleaned files in the order of their numbers."""
        return by_name(self.cleaned)


def deduplicate(job: DedupJob) -> None:
    """Decide which pages and which units of text are duplicates.

    Raises:
        ArtifactError: a cleaned file is missing, damaged, or has no keys of the unit.
    """
    return_freed_memory()
    shards = job.shards()
    counts = removals.zero_counts()
    with spill_folder(job.output) as folder:
        with Progress("c4_dedup", total=2 * len(shards), unit="shards") as progress:
            older_pages = RowSpill(folder / "older_pages", REMOVAL_ROW, len(shards))
            for rows in spill_urls(shards, folder, progress).drain():
                add_removals(older_pages, duplicate_urls(rows))
            units = RowSpill(folder / "removed_units", REMOVAL_ROW, len(shards))
            unit = job.settings.c4.dedup.unit
            for rows in spill_units(shards, unit, older_pages, folder, progress).drain():
                counts["units"] += len(rows)
                add_removals(units, duplicate_spans(rows))
        with removals.decisions_writer(job.output, counts, tables.shard_list(shards)) as writer:
            for shard in range(len(shards)):
                batch = removals.decisions_of(shard, older_pages.read(shard), units.read(shard))
                counts.update(removals.counts_of(batch))
                writer.write_batch(batch)
    write_dedup_manifest(job, shards, counts)


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
        outputs=[job.output],
        counters=counts,
    )
