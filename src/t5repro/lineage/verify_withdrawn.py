"""Checks that no file is left of what was made before a source was withdrawn."""

from collections.abc import Iterator
from pathlib import Path

from t5repro.config.withdrawn import FILES, PAGES, read_files, read_pages
from t5repro.errors import SettingsError
from t5repro.files import sha256_of
from t5repro.lineage.dvc_lock import Lock
from t5repro.lineage.findings import LINK, Finding
from t5repro.lineage.graph import Graph, Job
from t5repro.lineage.store import RESULTS

CURE = "delete it and run snakemake, which builds it without what is withdrawn"


def cure_of_raw(root: Path, cure: str) -> str:
    """Return how a raw file that is not as tracked is cured.

    Args:
        root: the checkout.
        cure: one with DVC, which could bring back what is withdrawn.
    """
    try:
        withdrawn = bool(read_pages(root / PAGES) or read_files(root / FILES).files)
    except SettingsError:
        withdrawn = True  # unknown
    if withdrawn:
        return (
            "sources are withdrawn, so it may be redacted: then repeat the withdrawal, which "
            "tracks what is left; if it is not, delete it and run snakemake, which fetches it"
        )
    return cure


def check_made_before(root: Path, graph: Graph, lock: Lock) -> Iterator[Finding]:
    """Report results that may contain a withdrawn source; nothing if none is withdrawn.

    They are the outputs of jobs that read another list of withdrawn pages, and of jobs whose inputs
    a withdrawal has deleted: neither present, nor the output of a job, nor tracked.
    """
    try:
        pages, files = read_pages(root / PAGES), read_files(root / FILES)
    except SettingsError:
        return  # reported by `check_withdrawals`
    if pages:
        sha256 = sha256_of(root / PAGES)
        for job in graph.jobs.values():
            if _list_read(job) not in ("", sha256):
                message = f"{job.name} read another {PAGES} than is here; {CURE}"
                yield Finding(LINK, job.manifest, job.name, message)
    if pages or files.files:
        tracked = tuple(output.path for output in lock.outputs)
        for name, artifact in graph.broken:
            if (
                artifact.path.startswith(f"{RESULTS}/")
                and not artifact.path.startswith(tracked)
                and not any(output.key in graph.producer for output in graph.by_path[artifact.path])
                and not (root / artifact.path).exists()
            ):
                message = f"{name} read {artifact.path}, which is gone; {CURE}"
                yield Finding(LINK, graph.jobs[name].manifest, name, message)


def _list_read(job: Job) -> str:
    """Return the SHA-256 of the list of withdrawn pages that a job read; empty if it read none."""
    end = job.record.end if job.record else None
    inputs = end.inputs if end else ()
    return next((file.sha256 for file in inputs if file.path == PAGES.as_posix()), "")
