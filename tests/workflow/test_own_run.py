"""A run of the user's own run file is versioned as the demo is."""

from pathlib import Path

import pytest
import yaml
from clones import commit, copy_clone, run_in, snakemake
from task_chain import STAGE

pytestmark = pytest.mark.workflow
RUN_FILE = "configs/mine.yaml"


def test_a_users_run_is_versioned_after_one_command(chain_once: Path, tmp_path: Path) -> None:
    # The demo's lock has the examples of one task.
    folder = copy_clone(chain_once, tmp_path / "clone")
    values = yaml.safe_load((folder / "configs/demo.yaml").read_text(encoding="utf-8"))
    values["run"] = {"name": "mine"}
    (folder / RUN_FILE).write_text(yaml.safe_dump(values), encoding="utf-8")
    run = ("--configfile", RUN_FILE, "--", f"stage_{STAGE}")
    ran = snakemake(folder, *run)
    assert ran.returncode == 0, ran.stdout
    assert "t5repro dvc generate --run-file FILE makes it version another run" in ran.stdout
    generated = run_in(folder, "t5repro", "dvc", "generate", "--run-file", RUN_FILE)
    assert generated.returncode == 0, generated.stdout
    sealed = run_in(folder, "t5repro", "seal")
    assert sealed.returncode == 0, sealed.stdout
    lock = yaml.safe_load((folder / "dvc.lock").read_text(encoding="utf-8"))["stages"]
    assert lock.keys() == {"settings", "data", STAGE}
    assert lock[STAGE]["outs"][0]["path"] == "results/mine/tasks/glue_sst2"
    commit(folder, "mine")
    for words in (["dvc", "status", STAGE, "data"], ["dvc", "repro", "--dry", STAGE]):
        assert "up to date" in run_in(folder, *words).stdout
    checked = run_in(folder, "t5repro", "dvc", "check")
    assert checked.returncode == 0, checked.stdout
    ran = snakemake(folder, *run)
    assert "Nothing to be done" in ran.stdout
