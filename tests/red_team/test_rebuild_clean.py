"""A run that is forged in every file agrees with itself; a clean rebuild finds it.

The attacker has a virtual environment with a start file that forges examples, builds with it,
removes all traces of it from the record, seals and commits.
"""

import json
import os
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from clones import SMALL, commit, environment
from small_venv import site_of
from task_chain import (
    EXAMPLES,
    FORGERY,
    MANIFEST,
    RECORD,
    STAGE,
    TASK,
    is_forged,
    record,
    rerun,
    t5repro,
)

from t5repro.versions.clean_environment import CleanEnvironment, scrubbed_variables

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@pytest.fixture
def poisoned(tmp_path: Path) -> Path:
    """The interpreter of an environment whose start file forges; it has all packages."""
    folder = tmp_path / "poisoned"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    site = site_of(folder)
    (site / "packages.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    indented = "".join(f"    {line}\n" for line in FORGERY.strip().splitlines())
    (site / "sitecustomize.py").write_text(
        f"try:\n{indented}except ImportError:\n    pass\n", encoding="utf-8"
    )
    python = folder / "bin/python"
    script = folder / "bin/t5repro"
    script.write_text(
        f"#!{python}\nimport sys\nfrom t5repro.cli.main import main\nsys.exit(main())\n",
        encoding="utf-8",
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return python


def forge(chain: Path, python: Path) -> None:
    """Forge the examples, their manifest, their record and the lock, and commit."""
    honest = record(chain)
    rerun(chain, python=str(python))
    assert is_forged(chain)
    values = record(chain)
    values["start"]["machine"] = honest["start"]["machine"]
    for name in ("run_file", "uncommitted", "commit"):
        values["start"][name] = honest["start"][name]
    for name in ("foreign", "imported", "shared_libraries"):
        values["end"][name] = honest["end"][name]
    (chain / RECORD).write_text(json.dumps(values), encoding="utf-8")
    code, text = t5repro(chain, "seal", "--only", STAGE)
    assert code == 0, text
    commit(chain, "forged")


def rebuild(chain: Path, python: Path, *options: str) -> tuple[int, dict]:
    command = [python, "-m", "t5repro", "rebuild", f"tasks/{TASK}", *options, "--json"]
    ran = subprocess.run(
        [*command, "--config", *SMALL],
        cwd=chain,
        env=environment(chain),
        check=False,
        capture_output=True,
        text=True,
    )
    assert ran.stdout, ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def test_a_run_forged_in_every_file_agrees_with_itself_and_is_found_by_a_clean_rebuild(
    chain: Path, poisoned: Path
) -> None:
    forge(chain, poisoned)
    code, text = t5repro(chain, "verify", "--deep")
    assert code == 0, text
    code, answer = rebuild(chain, poisoned)
    assert (code, answer["holds"]) == (0, True)  # the forging environment forges again
    code, answer = rebuild(chain, poisoned, "--clean")
    assert code == 1
    different = {o["path"] for o in answer["outcomes"] if o["result"] == "different"}
    assert {EXAMPLES, MANIFEST, f"results/demo/tasks/{TASK}"} <= different


def test_an_environment_without_a_committed_lock_is_refused(chain: Path) -> None:
    code, text = t5repro(
        chain, "rebuild", f"tasks/{TASK}", "--clean", "--requirements", "requirements/none.txt"
    )
    assert code == 2
    assert "requirements/none.txt is not committed; name a lock with --requirements" in text
    code, text = t5repro(chain, "rebuild", f"tasks/{TASK}", "--clean", "--python", "no-such-python")
    assert code == 2
    assert "name an interpreter with --python" in text
    code, text = t5repro(chain, "rebuild", f"tasks/{TASK}", "--python", "python3")
    assert code == 2
    assert "--python belongs to --clean; add it" in text


def test_no_variable_of_the_environment_in_use_reaches_a_clean_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTHONPATH", "PYTHONSTARTUP", "LD_PRELOAD", "XLA_FLAGS", "SNAKEMAKE_PROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    variables = scrubbed_variables(tmp_path / "environment/bin/python", tmp_path / "home")
    assert variables.keys() == {"HOME", "LANG", "PATH", "PYTHONNOUSERSITE", "TMPDIR"}
    assert variables["PATH"].split(os.pathsep)[0] == str(tmp_path / "environment/bin")
    assert str(tmp_path) not in variables["PATH"].split(os.pathsep)
    assert Path(CleanEnvironment().python).resolve() == Path(sys.executable).resolve()
