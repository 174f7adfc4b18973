"""A small crawl written by hand, with everything that the chain makes of it up to the ids.

| record | URL | cleaning | corpus |
|---|---|---|---|
| 0.warc.wet.gz 0 | http://a.example/one | kept | row 0 |
| 0.warc.wet.gz 1 | http://a.example/two | few_sentences | – |
| 1.warc.wet.gz 0 | http://b.example/old (older copy) | kept | superseded |
| 1.warc.wet.gz 1 | http://b.example/old | kept | row 1 |
"""

import gzip
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from made_graphs import RESULT, manifest, write

from t5repro.config.schema import Settings
from t5repro.config.stage_settings import stage_settings

ONE, TWO, OLD = "http://a.example/one", "http://a.example/two", "http://b.example/old"
EARLY, LATE = "2019-04-18T00:00:00Z", "2019-04-19T00:00:00Z"
WET_FILES = ("0.warc.wet.gz", "1.warc.wet.gz")
PAGES = (
    [(0, ONE, EARLY, None), (1, TWO, EARLY, "few_sentences")],
    [(0, OLD, EARLY, None), (1, OLD, LATE, None)],
)
CORPUS = f"{RESULT}/c4/a/en-train-00000-of-00001.parquet"
IDS = f"{RESULT}/tokens/a/train.ids"
RUN_FILE = "configs/run.yaml"
NO_EMPTY_TEXTS: dict[str, Any] = {"empty_documents": 0}


def wet_record(url: str, timestamp: str, text: str) -> str:
    return (
        f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: {url}\r\n"
        f"WARC-Date: {timestamp}\r\nContent-Length: {len(text)}\r\n\r\n{text}\r\n\r\n"
    )


def write_parquet(root: Path, path: str, rows: list[dict]) -> str:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), root / path)
    return path


def crawl_run(root: Path, *, counts: dict[str, Any] = NO_EMPTY_TEXTS) -> Path:
    """Write the run into a new git repository."""
    root.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "--quiet", root], check=True)
    crawl, cleaned = [], []
    for wet_file, pages in zip(WET_FILES, PAGES, strict=True):
        path = f"data/crawl/{wet_file}"
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        records = (wet_record(url, time, f"Secret of {url} {time}.") for _, url, time, _ in pages)
        (root / path).write_bytes(gzip.compress("".join(records).encode(), mtime=0))
        crawl.append(path)
        shard = write_parquet(
            root,
            f"{RESULT}/c4_clean/a/{wet_file[0]}.parquet",
            [
                {"file": wet_file, "record": record, "url": url, "timestamp": time, "reason": why}
                for record, url, time, why in pages
            ],
        )
        manifest(
            root,
            f"{RESULT}/c4_clean/a/{wet_file[0]}.manifest.json",
            rule="c4_clean",
            inputs=[path],
            outputs=[shard],
        )
        cleaned.append(shard)
    manifest(
        root,
        f"{RESULT}/data/manifest.json",
        rule="data",
        outputs=crawl,
        settings={"data": {"folder": "data", "source": ""}},
    )
    removals = [
        write_parquet(
            root, f"{RESULT}/c4_dedup/a/{shard}.parquet", [{"row": 0, "duplicate_url": older}]
        )
        for shard, older in enumerate((False, True))
    ]
    manifest(
        root,
        f"{RESULT}/c4_dedup/a/manifest.json",
        rule="c4_dedup",
        inputs=cleaned,
        outputs=removals,
    )
    write_parquet(root, CORPUS, [{"url": ONE, "timestamp": EARLY}, {"url": OLD, "timestamp": LATE}])
    manifest(
        root,
        f"{RESULT}/c4/a/manifest.json",
        rule="c4",
        inputs=[*cleaned, *removals],
        outputs=[CORPUS],
    )
    write(root, IDS, "ids")
    tokens = f"{RESULT}/tokens/a/manifest.json"
    manifest(
        root,
        tokens,
        rule="tokens",
        inputs=[CORPUS],
        outputs=[IDS],
        settings={"tokens": {"languages": ["en"]}},
        counters={"train": counts},
    )
    return root


def trained_and_scored(root: Path, ids: str, settings: Settings, tasks: Sequence[str]) -> None:
    """Write a pre-training on some ids, and scores made from it."""
    weights, scores = f"{RESULT}/pretrain/a/weights.safetensors", f"{RESULT}/evaluate_score/a"
    write(root, weights, "weights")
    manifest(
        root,
        f"{RESULT}/pretrain/a/manifest.json",
        rule="pretrain",
        inputs=[ids],
        outputs=[weights],
        settings=stage_settings(settings, "pretrain"),
    )
    write(root, f"{scores}/scores.json", json.dumps({"tasks": {task: {} for task in tasks}}))
    manifest(
        root,
        f"{scores}/manifest.json",
        rule="evaluate_score",
        inputs=[weights],
        outputs=[f"{scores}/scores.json"],
    )
