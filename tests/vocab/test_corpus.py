from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from t5repro.errors import ArtifactError
from t5repro.files import write_json
from t5repro.vocab.corpus import pages_in, read_pages, shards_of


def test_the_shards_of_a_language_and_split_are_found_beside_the_manifest(write_corpus):
    manifest = write_corpus({"en": ["a", "b", "c"], "de": ["d"]}, shards=2)
    shards = shards_of(manifest, "en", "train")
    assert [path.name for path in shards] == [
        "en-train-00000-of-00002.parquet",
        "en-train-00001-of-00002.parquet",
    ]
    assert pages_in(shards) == 3
    assert shards_of(manifest, "en", "validation") == []


def test_a_language_with_a_region_is_told_from_the_language(write_corpus):
    manifest = write_corpus({"zh": ["a"], "zh-cn": ["b", "c"]})
    assert pages_in(shards_of(manifest, "zh", "train")) == 1
    assert pages_in(shards_of(manifest, "zh-cn", "train")) == 2


def test_pages_come_with_their_address(write_corpus):
    manifest = write_corpus({"en": ["a", "b"]})
    (shard,) = shards_of(manifest, "en", "train")
    assert list(read_pages(shard)) == [[("en.example/0", "a"), ("en.example/1", "b")]]


def test_a_missing_shard_is_named_with_the_rule_that_writes_it(write_corpus):
    manifest = write_corpus({"en": ["a"]})
    (manifest.parent / "en-train-00000-of-00001.parquet").unlink()
    with pytest.raises(ArtifactError, match=r"en-train-00000-of-00001.parquet is listed .* c4"):
        shards_of(manifest, "en", "train")


def test_a_manifest_without_outputs_is_refused(tmp_path: Path):
    write_json(tmp_path / "manifest.json", {"rule": "c4"})
    with pytest.raises(ArtifactError, match="not the manifest of a corpus"):
        shards_of(tmp_path / "manifest.json", "en", "train")


def test_a_damaged_shard_is_named(tmp_path: Path):
    broken = tmp_path / "en-train-00000-of-00001.parquet"
    broken.write_bytes(b"not parquet at all")
    with pytest.raises(ArtifactError, match=r"en-train-00000-of-00001.parquet cannot be read"):
        list(read_pages(broken))
    with pytest.raises(ArtifactError, match=r"en-train-00000-of-00001.parquet cannot be read"):
        pages_in([broken])


def test_a_shard_without_text_is_refused(tmp_path: Path):
    shard = tmp_path / "en-train-00000-of-00001.parquet"
    pq.write_table(pa.table({"url": ["a"]}), shard)
    with pytest.raises(ArtifactError, match=r"cannot be read as pages with url and text"):
        list(read_pages(shard))
