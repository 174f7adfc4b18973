"""The content of `dvc.lock`."""

from t5repro.lineage.dvc_lock import parse_lock

LOCK_WITH_GENERATED_FILES = b"""
schema: '2.0'
stages:
  settings:
    cmd: t5repro dvc settings
    outs:
    - {path: configs/resolved/demo.json, md5: aa}
    - {path: configs/resolved/code, md5: bb.dir}
  vocab-baseline:
    cmd: snakemake stage_vocab-baseline
    outs:
    - {path: results/demo/vocab/baseline, md5: cc.dir}
"""


def test_generated_files_that_git_tracks_are_no_objects_of_dvcs_cache() -> None:
    lock = parse_lock(LOCK_WITH_GENERATED_FILES)
    assert [output.path for output in lock.cached_outputs] == ["results/demo/vocab/baseline"]
    assert len(lock.outputs) == 3
