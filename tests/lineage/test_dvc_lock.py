"""The content of `dvc.lock`."""

import pytest
from dvc.utils.serialize import dumps_yaml
from hypothesis import example, given
from hypothesis import strategies as st

from t5repro.errors import LineageError
from t5repro.lineage.dvc_lock import parse_lock, parse_yaml

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


def test_settings_below_a_key_read_as_the_dotted_settings_of_older_locks() -> None:
    form = "schema: '2.0'\nstages:\n  a:\n    cmd: run\n    params:\n      resolved.json:\n%s"
    dotted = parse_lock((form % "        a.c4.shards: 4\n        a.seed: 1\n").encode())
    nested = parse_lock((form % "        a: {c4: {shards: 4}, seed: 1}\n").encode())
    assert dotted.stages["a"].params == nested.stages["a"].params == {"a.c4.shards": 4, "a.seed": 1}
    assert dotted.stages["a"].tracked_params == ("a.c4.shards", "a.seed")
    assert nested.stages["a"].tracked_params == ("a",)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="ascii", exclude_categories=["Cc"]))
)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), SCALARS))
@example({"filters": "off", "unit": "no", "length": "12:30", "epsilon": 1e-06, "code": "0123"})
@example({"md5": "12345678901234567890123456789e12", "shards": "1_000", "octal": "0o17"})
def test_values_that_dvc_writes_are_read_as_dvc_reads_them(values: dict[str, object]) -> None:
    read = parse_yaml(dumps_yaml({"params": values}).encode())
    assert read == {"params": values}
    assert {name: type(value) for name, value in read["params"].items()} == {
        name: type(value) for name, value in values.items()
    }


@pytest.mark.parametrize("path", ["../../../etc", "/etc", "results/../../etc"])
def test_a_path_out_of_the_checkout_is_refused(path: str) -> None:
    outs = f"outs: [{{path: {path}, md5: '0'}}]"
    with pytest.raises(LineageError, match=r"dvc.lock is not in DVC's format .* is outside the"):
        parse_lock(f"schema: '2.0'\nstages: {{a: {{cmd: x, {outs}}}}}".encode())
    with pytest.raises(LineageError, match=r"data.dvc is not in DVC's format .* is outside the"):
        parse_lock(None, outs.encode())


MARKS = "<<<<<<< HEAD\nouts: []\n=======\nouts: [1]\n>>>>>>> other\n"


@pytest.mark.parametrize("name", ["dvc.lock", "data.dvc"])
def test_a_conflict_of_git_is_named_with_a_cure_that_git_carries_out(name: str) -> None:
    data = MARKS.encode()
    cure = f"^{name} has the marks of a conflict of git: .* --ours {name} .* run snakemake"
    with pytest.raises(LineageError, match=cure):
        parse_lock(*((data,) if name == "dvc.lock" else (None, data)))


def test_a_text_about_conflicts_is_no_conflict() -> None:
    entry = f"{{cmd: 'echo <<<<<<< ', params: {{r.json: {{x: {'<' * 8}}}}}}}"
    lock = f"schema: '2.0'\nstages: {{a: {entry}}}\n"
    assert parse_lock(lock.encode()).stages["a"].params == {"x": "<" * 8}
