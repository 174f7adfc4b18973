"""Croissant: the corpus of a run as a data set that machine learning tools load.

One record set per language and split; every Parquet file with its SHA-256. The properties of
Croissant RAI are from counts of the manifests and from the rows.
"""

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

import mlcroissant
import pyarrow
import pyarrow.parquet
from mlcroissant import DataType, FileObject, FileSet, Metadata, RecordSet

from t5repro.config.corpus_files import corpus_file
from t5repro.errors import LineageError
from t5repro.export.corpus_facts import (
    CLEANED,
    RULE,
    contents_of,
    corpus_of,
    dropped,
    language_counts,
    origins_of,
    rule_counts,
    shards_of,
    signal_counts,
)
from t5repro.export.facts import Run, check_files, manifest_hash
from t5repro.lineage.graph import Artifact, Job

RESPONSIBLE = "http://mlcommons.org/croissant/RAI/1.0"
CHANGING = ("withdrawn", "clean_lines", "dedup_text")  # rules that change or remove texts
BIASES = [
    "A list of words drops pages; Dodge et al. (2021) find that such a list drops texts of and "
    "about minorities more often than others."
]
MAINTENANCE = (
    "Pages are withdrawn on request: t5repro withdraw --list FILE drops them, rebuilds the corpus "
    "and writes a receipt."
)
PARQUET = "application/x-parquet"  # the name in the library of the standard
TYPES = {"int64": DataType.INTEGER, "double": DataType.FLOAT, "bool": DataType.BOOL}


def document(run: Run, folder: Path, license_text: str | None = None) -> dict[str, Any]:
    """Return the Croissant document of a run's corpus.

    Args:
        run: with one corpus.
        folder: folder of the document, in the checkout; files are named relative to it.
        license_text: licence of the corpus, or its address; without it the field is absent.

    Raises:
        LineageError: the run has no corpus or several, a file was altered, or the folder is
            outside the checkout.
    """
    job = corpus_of(run, "Croissant")
    if not folder.resolve().is_relative_to(run.root.resolve()):
        raise LineageError(
            f"--output in {folder}: outside the checkout, and the document names files relative to "
            "itself, so it would reveal folders of this machine; write it inside"
        )
    shards = shards_of(job)
    check_files(run, shards)
    sets: dict[str, list[Artifact]] = {}
    for artifact in shards:
        sets.setdefault(_set_name(artifact.path), []).append(artifact)
    distribution: list[Any] = []
    records = []
    up = PurePosixPath(os.path.relpath(run.root.resolve(), folder.resolve()))
    for name, artifacts in sorted(sets.items()):
        artifacts.sort(key=lambda artifact: artifact.path)
        files = [_file(up, artifact) for artifact in artifacts]
        distribution += files
        source = files[0].id
        if len(files) > 1:
            source = f"{name}-files"
            distribution.append(_file_set(up, source, name, artifacts))
        schema = pyarrow.parquet.read_schema(run.root / artifacts[0].path)
        records.append(_record_set(name, source, len(files) > 1, schema))
    values = _json(
        Metadata(
            name=f"{run.name}-{RULE}",
            description=_description(job),
            version=f"0.0.0+{manifest_hash(job)[:12]}",
            license=[license_text] if license_text else None,
            date_published=run.ended(job) if job.record else None,
            distribution=distribution,
            record_sets=records,
            **_responsible(run, job),
        )
    )
    # The library writes its own version only.
    return {**values, "conformsTo": [values["conformsTo"], RESPONSIBLE]}


def _responsible(run: Run, job: Job) -> dict[str, Any]:
    """Return the properties of Croissant RAI 1.0 that counts answer; the others are absent.

    Nothing is said about personal data but that they were not looked for, and nothing about labels,
    which a corpus has not.
    """
    contents = contents_of(run, job)
    crawl, own = (origins_of(run, (rule,)) for rule in CLEANED)
    period = [datetime.fromisoformat(time) for time in (contents.first, contents.last) if time]
    raw = "; ".join(
        f"{origin.origin}: "
        + ", ".join(f"{file.path} sha256 {file.sha256}" for file in origin.files)
        for origin in (*crawl, *own)
    )
    rules = rule_counts(job)
    counted = [
        f"{rule['rule']}: {rule['kept']} of {rule['in']} {rule['unit']} kept; dropped "
        f"{json.dumps(rule['dropped'], sort_keys=True)}"
        for rule in rules
    ]
    changes = [text for text in counted if text.startswith(CHANGING)]
    faults = job.counters.get("faults")
    types = (["Web Scraping"] if crawl else []) + (["Others"] if own else [])
    limitations = [f"Only pages in: {', '.join(names)}."] if (names := language_counts(job)) else []
    if signals := signal_counts(job):
        counts = json.dumps(signals, sort_keys=True)
        limitations.append(
            f"Signals of pages that were read, mentions and no licences among them: {counts}."
        )
    values = {
        "data_collection": raw and "Files of a crawl and of own text; see the raw data.",
        "data_collection_type": types,
        "data_collection_raw_data": raw,
        "data_collection_timeframe": period,
        "data_collection_missing_data": faults
        and f"records lost: {json.dumps(faults, sort_keys=True)}",
        "data_preprocessing_protocol": counted,
        "data_manipulation_protocol": "; ".join(changes),
        "data_limitations": limitations,
        "data_biases": BIASES if dropped(job, "bad_words") else [],
        "data_use_cases": ["pre-training of language models"],
        "personal_sensitive_information": ["not examined"],
        "data_release_maintenance_plan": MAINTENANCE,
    }
    return {name: value for name, value in values.items() if value}


def _json(metadata: Metadata) -> dict[str, Any]:
    values: dict[str, Any] = metadata.to_json()
    return values


def _set_name(path: str) -> str:
    file = corpus_file(path)
    return f"{file.language}-{file.split}" if file else PurePosixPath(path).stem


def _file(up: PurePosixPath, artifact: Artifact) -> FileObject:
    name = PurePosixPath(artifact.path).name
    return FileObject(
        id=name,
        name=name,
        content_url=str(up / artifact.path),
        content_size=f"{artifact.length} B",
        encoding_formats=[PARQUET],
        sha256=artifact.sha256,
    )


def _file_set(up: PurePosixPath, name: str, stem: str, artifacts: list[Artifact]) -> FileSet:
    if ".." in up.parts:
        raise LineageError(
            f"{stem} has {len(artifacts)} files, and Croissant finds several only below its "
            "document; "
            "write it into the checkout's own folder: --output croissant.json"
        )
    folder = PurePosixPath(artifacts[0].path).parent
    return FileSet(
        id=name, name=name, includes=[f"{folder}/{stem}-*.parquet"], encoding_formats=[PARQUET]
    )


def _record_set(name: str, source: str, several: bool, schema: pyarrow.Schema) -> RecordSet:
    location = {"file_set": source} if several else {"file_object": source}
    fields = [
        mlcroissant.Field(
            id=f"{name}/{column.name}",
            name=column.name,
            data_types=[TYPES.get(str(column.type), DataType.TEXT)],
            source=mlcroissant.Source(**location, extract=mlcroissant.Extract(column=column.name)),
        )
        for column in schema
    ]
    language, _, split = name.partition("-")
    return RecordSet(
        id=name, name=name, description=f"pages in {language}, for {split}", fields=fields
    )


def _description(job: Job) -> str:
    languages = job.counters.get("languages")
    if not isinstance(languages, Mapping):
        return "Cleaned and deduplicated web pages."
    counts = ", ".join(
        f"{name} {counted['train_pages'] + counted['validation_pages']}"
        for name, counted in sorted(languages.items())
    )
    return f"Cleaned and deduplicated web pages, by language: {counts}."
