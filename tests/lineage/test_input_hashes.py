"""A stage starts only if what it reads has the hashes of the manifests."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from t5repro.errors import ArtifactError, RawDataError
from t5repro.files import read_manifest, sha256_of, write_manifest
from t5repro.lineage.input_hashes import expected_files, expected_raw_files, verify_inputs


def stage(folder: Path, *names: str, manifest: str = "manifest.json", rule: str = "c4") -> Path:
    """Write files and their manifest; return the manifest."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"content of {name}")
    path = folder / manifest
    outputs = [folder / name for name in names]
    write_manifest(path, rule=rule, settings={}, inputs=[], outputs=outputs, counters={"rows": 12})
    return path


def test_files_as_their_stage_wrote_them_are_accepted(tmp_path: Path) -> None:
    manifest = stage(tmp_path, "a.parquet", "step-5/a.parquet", "b.csv")
    expected = list(expected_files(manifest, ("*.parquet", "step-*/*.parquet")))
    names = [file.path.relative_to(tmp_path).as_posix() for file in expected]
    assert names == ["a.parquet", "step-5/a.parquet"]
    verify_inputs(expected)


def test_an_altered_file_is_named_with_both_hashes_and_a_cure(tmp_path: Path) -> None:
    manifest = stage(tmp_path, "a.parquet")
    path, written = tmp_path / "a.parquet", sha256_of(tmp_path / "a.parquet")
    path.write_text("content of b.parquet")
    with pytest.raises(ArtifactError) as refused:
        verify_inputs(expected_files(path))
    message = str(refused.value)
    assert f"{path} has sha256 {sha256_of(path)}, but {manifest} expects {written}" in message
    assert "restore it with dvc checkout, or delete it and rerun its stage" in message


def test_every_flipped_bit_of_a_manifest_is_named(tmp_path: Path) -> None:
    manifest = stage(tmp_path, "a.parquet")
    data = manifest.read_bytes()
    for bit in random.Random(1).sample(range(8 * len(data)), 500):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        manifest.write_bytes(damaged)
        with pytest.raises(ArtifactError, match=r"manifest\.json (was altered|does not begin)"):
            read_manifest(manifest)


def test_a_job_that_shares_its_folder_has_a_manifest_of_its_own(tmp_path: Path) -> None:
    stage(tmp_path, "0.parquet", manifest="0.manifest.json")
    manifest = stage(tmp_path, "1.parquet", manifest="1.manifest.json")
    (file,) = expected_files(tmp_path / "1.parquet")
    assert file.manifest == manifest


def test_the_files_of_a_job_that_writes_several_share_its_manifest(tmp_path: Path) -> None:
    stage(tmp_path, "0.parquet", manifest="0.manifest.json")
    manifest = stage(tmp_path, "1-00.parquet", "1-01.parquet", manifest="1.manifest.json")
    (file,) = expected_files(tmp_path / "1-01.parquet")
    assert file == (
        tmp_path / "1-01.parquet",
        sha256_of(tmp_path / "1-01.parquet"),
        manifest,
        False,
    )


def test_all_files_of_a_folder_are_verified(tmp_path: Path) -> None:
    stage(tmp_path, "en/a.tab", "en/b.tab", "de/a.tab")
    files = [file.path for file in expected_files(tmp_path / "en")]
    assert files == [tmp_path / "en/a.tab", tmp_path / "en/b.tab"]


def test_the_folder_of_a_stage_stands_for_all_its_files(tmp_path: Path) -> None:
    stage(tmp_path, "0.parquet", "1.parquet")
    files = [file.path for file in expected_files(tmp_path)]
    assert files == [tmp_path / "0.parquet", tmp_path / "1.parquet"]


def test_a_folder_may_be_moved_with_its_manifest(tmp_path: Path) -> None:
    stage(tmp_path / "old", "a.ids", "step-5/a.ids")
    (tmp_path / "old").rename(tmp_path / "new")
    expected = list(expected_files(tmp_path / "new/manifest.json", ("*.ids",)))
    assert [file.path for file in expected] == [tmp_path / "new/a.ids"]
    verify_inputs(expected)


def test_a_missing_manifest_an_unlisted_file_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    manifest = stage(tmp_path, "a.ids")
    with pytest.raises(ArtifactError, match="does not list other.ids; rerun the stage"):
        list(expected_files(tmp_path / "other.ids"))
    expected = list(expected_files(manifest, ("*.ids",)))
    (tmp_path / "a.ids").unlink()
    with pytest.raises(ArtifactError, match=r"a\.ids is missing; run the stage that writes it"):
        verify_inputs(expected)
    manifest.unlink()
    with pytest.raises(ArtifactError, match=r"manifest\.json is missing; run the stage"):
        list(expected_files(tmp_path / "a.ids"))


def test_a_raw_file_is_what_the_rule_data_checked(tmp_path: Path) -> None:
    manifest = stage(tmp_path, "0.wet", "punkt/en/a.tab", rule="data")
    unlisted = tmp_path / "unlisted.wet"
    paths = [tmp_path / "0.wet", tmp_path / "punkt/en", unlisted]
    expected = list(expected_raw_files(paths, manifest))
    assert [file.path for file in expected] == [tmp_path / "0.wet", tmp_path / "punkt/en/a.tab"]
    verify_inputs(expected)
    (tmp_path / "0.wet").unlink()  # counted as a fault by its reader
    verify_inputs(expected)
    (tmp_path / "punkt/en/a.tab").write_text("other")
    with pytest.raises(RawDataError, match="get the file again, or run the stage data"):
        verify_inputs(expected)


def test_workers_of_a_cluster_may_hash_the_files(tmp_path: Path) -> None:
    manifest = stage(tmp_path, "a.ids")

    def hash_there(paths: Sequence[Path]) -> list[str]:
        return ["0" * 64 for _ in paths]

    with pytest.raises(ArtifactError, match="a.ids has sha256 0000"):
        verify_inputs(expected_files(manifest, ("*.ids",)), hash_there)
