"""Reads the corpus that the `c4` rule wrote: pages by language and split.

The manifest of `c4` lists the shards, which are in the same folder.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from t5repro.config.corpus_files import corpus_file
from t5repro.errors import ArtifactError
from t5repro.files import read_json

PAGES_PER_BATCH = 512


def shards_of(corpus: Path, language: str, split: str) -> list[Path]:
    """Return the Parquet files of one language and split, by name.

    Args:
        corpus: the manifest of `c4`.
        language: its code.
        split: ``train`` or ``validation``.

    Raises:
        ArtifactError: the manifest is missing or damaged, or a file that it lists is missing.
    """
    manifest = read_json(corpus)
    try:
        names = sorted(Path(output["path"]).name for output in manifest["outputs"])
    except (KeyError, TypeError) as error:
        raise ArtifactError(
            f"{corpus} is not the manifest of a corpus (no list of outputs); rerun the rule c4"
        ) from error
    shards = []
    for name in names:
        file = corpus_file(name)
        if file and (file.language, file.split) == (language, split):
            path = corpus.parent / name
            if not path.is_file():
                raise ArtifactError(f"{path} is listed in {corpus} but missing; rerun the rule c4")
            shards.append(path)
    return shards


def pages_in(shards: list[Path]) -> int:
    """Return the number of pages in the shards, read from their footers.

    Raises:
        ArtifactError: a file is not Parquet.
    """
    pages = 0
    for path in shards:
        with _readable(path), pq.ParquetFile(path) as file:
            pages += file.metadata.num_rows
    return pages


def read_pages(shard: Path) -> Iterator[list[tuple[str, str]]]:
    """Yield the pages of a shard as (url, text), in lists of `PAGES_PER_BATCH`.

    Raises:
        ArtifactError: the file is not Parquet or lacks a column.
    """
    with _readable(shard), pq.ParquetFile(shard, pre_buffer=False) as file:
        for batch in file.iter_batches(PAGES_PER_BATCH, columns=["url", "text"]):
            urls, texts = batch.column("url").to_pylist(), batch.column("text").to_pylist()
            yield list(zip(urls, texts, strict=True))


@contextlib.contextmanager
def _readable(shard: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, KeyError) as error:
        raise ArtifactError(
            f"{shard} cannot be read as pages with url and text ({error}); rerun the rule c4"
        ) from error
