"""Attacks on what a job runs in: packages, start files, variables, libraries, interpreter."""

import base64
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from clones import copy_clone, environment
from small_venv import lock_of_packages, site_of, small_venv
from task_chain import FORGERY, RECORD, append, findings, is_forged, record, rerun, t5repro

from t5repro.lineage import startup
from t5repro.lineage.verify_environment import nearest_lock

pytestmark = pytest.mark.workflow
YAML = "yaml/constructor.py"


@pytest.fixture(scope="session")
def venv_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of few packages. Tests attack copies of it."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    small_venv(folder)
    return folder


@pytest.fixture
def venv(venv_once: Path, tmp_path: Path) -> Path:
    """An environment of few packages; attacks change files of PyYAML in place, and no others."""
    linked = [path.relative_to(venv_once).as_posix() for path in site_of(venv_once).iterdir()]
    linked = [name for name in linked if "yaml" not in name.lower()]
    return copy_clone(venv_once, tmp_path / "venv", linked)


def elsewhere(chain: Path, tmp_path: Path, **files: str) -> str:
    """Write modules into a folder outside of the checkout; return PYTHONPATH with this folder."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return f"{environment(chain)['PYTHONPATH']}{os.pathsep}{folder}"


def difference(chain: Path, before: Path) -> str:
    """Return what `diff` prints about the results of before an attack and those of now."""
    _, text = t5repro(chain, "diff", str(before), ".")
    return text


def verify_environment(chain: Path, venv: Path) -> tuple[int, str]:
    """Return exit code and text of `verify --environment` in a small environment."""
    (chain / "requirements/small.txt").write_text(lock_of_packages(), encoding="utf-8")
    ran = subprocess.run(
        [venv / "bin/python", "-m", "t5repro", "verify", "--environment"],
        cwd=chain,
        env=environment(chain),
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return ran.returncode, ran.stdout


def test_a_sitecustomize_on_the_path_is_named_and_chance_is_not_blamed(
    chain: Path, chain_once: Path, tmp_path: Path
) -> None:
    rerun(chain, PYTHONPATH=elsewhere(chain, tmp_path, sitecustomize=FORGERY))
    assert is_forged(chain)
    (name,) = (path for path in findings(chain) if path.endswith("/sitecustomize.py"))
    assert findings(chain)[name]["kind"] == "foreign code"
    text = difference(chain, chain_once)
    assert "nondeterminism" not in text
    assert "environment  foreign." in text
    assert "environment  variables.PYTHONPATH" in text


def test_a_module_of_the_users_folder_that_shadows_the_standard_library_is_named(
    chain: Path, tmp_path: Path
) -> None:
    # `colorsys` has no other user in the job; the forgery rides on it.
    path = elsewhere(chain, tmp_path, sitecustomize="import colorsys\n", colorsys=FORGERY)
    rerun(chain, PYTHONPATH=path)
    assert is_forged(chain)
    assert any(name.endswith("/colorsys.py") for name in findings(chain))


def test_an_edited_package_is_named_by_verify_and_by_diff(
    chain: Path, venv: Path, tmp_path: Path
) -> None:
    python = str(venv / "bin/python")
    rerun(chain, python=python)
    assert record(chain)["start"]["machine"]["altered"] == []
    assert findings(chain) == {}
    before = copy_clone(chain, tmp_path / "before")
    append(site_of(venv) / YAML, "EDITED = True\n")
    rerun(chain, python=python)
    finding = findings(chain)[YAML]
    assert finding["kind"] == "foreign code"
    assert "differed from its package when demo/tasks/glue_sst2 ran" in finding["message"]
    assert "environment  packages.pyyaml" in difference(chain, before)


def test_the_environment_is_checked_file_by_file(chain: Path, venv: Path) -> None:
    code, text = verify_environment(chain, venv)
    assert code == 0, text
    assert "9 packages with " in text
    assert "with the versions of requirements/small.txt" in text
    site = site_of(venv)
    append(site / YAML, "EDITED = True\n")
    (site / "sitecustomize.py").write_text("", encoding="utf-8")
    (site / "forged.pth").write_text("import os\n", encoding="utf-8")
    (site / "numpy" / "extra.py").write_text("", encoding="utf-8")
    (site / "tqdm" / "rich.py").unlink()
    code, text = verify_environment(chain, venv)
    assert code == 1
    for name in ("sitecustomize.py", "forged.pth", "numpy/extra.py"):
        assert f"foreign code  (environment)/{site.relative_to(venv)}/{name}: " in text
    for name in (YAML, "tqdm/rich.py"):
        assert f"altered       {name}: not the file that the package has" in text


def test_the_environment_of_a_revision_is_not_known(chain: Path) -> None:
    code, text = t5repro(chain, "verify", "HEAD", "--environment")
    assert code == 2
    assert "checks this machine and no revision (HEAD); leave one of them out" in text


def test_a_checkout_without_locks_is_named(tmp_path: Path) -> None:
    lock, (finding,) = nearest_lock(tmp_path)
    assert (lock, finding.kind, finding.path) == ("no lock", "missing", "requirements")
    assert "restore it with git checkout" in finding.message


def test_a_file_and_its_record_forged_together_differ_from_the_records_of_the_jobs(
    chain: Path, venv: Path
) -> None:
    rerun(chain, python=str(venv / "bin/python"))
    site = site_of(venv)
    (metadata,) = site.glob("pyyaml-*.dist-info")
    append(site / YAML, "EDITED = True\n")
    digest = hashlib.sha256((site / YAML).read_bytes()).digest()
    forged = f"{YAML},sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')},"
    lines = (metadata / "RECORD").read_text(encoding="utf-8").splitlines()
    lines = [forged if line.startswith(f"{YAML},") else line for line in lines]
    (metadata / "RECORD").write_text("\n".join(lines) + "\n", encoding="utf-8")
    code, text = verify_environment(chain, venv)
    assert code == 0, text
    assert "pyyaml: demo/data ran with other files of this package" in text


def test_a_version_that_is_not_the_locked_one_is_named(chain: Path, venv: Path) -> None:
    lock = lock_of_packages()
    version = lock.partition("pyyaml==")[2].partition("\n")[0]
    (chain / "requirements/small.txt").write_text(
        lock.replace(f"pyyaml=={version}", "pyyaml==5.1"), encoding="utf-8"
    )
    ran = subprocess.run(
        [
            venv / "bin/python",
            "-c",
            "from pathlib import Path\n"
            "from t5repro.lineage.verify_environment import nearest_lock\n"
            "lock, findings = nearest_lock(Path())\n"
            "print(lock, *[finding.line for finding in findings])",
        ],
        cwd=chain,
        env=environment(chain),
        check=True,
        capture_output=True,
        text=True,
    )
    assert ran.stdout.startswith("requirements/small.txt altered")
    assert f"pyyaml: version {version}, requirements/small.txt has 5.1" in ran.stdout


def test_a_variable_that_can_decide_a_number_is_the_cause_of_a_difference(
    chain: Path, chain_once: Path
) -> None:
    rerun(chain)
    before = record(chain)
    rerun(chain, XLA_FLAGS="--xla_cpu_enable_fast_math=true")
    assert record(chain)["start"]["machine"]["variables"]["XLA_FLAGS"] == (
        "--xla_cpu_enable_fast_math=true"
    )
    assert "XLA_FLAGS" not in before["start"]["machine"]["variables"]
    assert "environment  variables.XLA_FLAGS" in difference(chain, chain_once)


def test_a_preloaded_library_is_named_without_its_folder(chain: Path, tmp_path: Path) -> None:
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    library = next(line.split()[-1] for line in maps.splitlines() if "/libm" in line)
    forged = tmp_path / "libforged.so"
    shutil.copyfile(library, forged)
    rerun(chain, LD_PRELOAD=str(forged))
    values = record(chain)
    names = [name for name in values["end"]["shared_libraries"] if "libforged.so" in name]
    assert len(names) == 1
    assert values["start"]["machine"]["variables"]["LD_PRELOAD"].startswith("hidden:")
    assert str(tmp_path) not in (chain / RECORD).read_text(encoding="utf-8")
    _, text = t5repro(chain, "trace", "results/demo/tasks/glue_sst2/test.jsonl")
    assert "LD_PRELOAD=hidden:" in text


def test_variables_are_recorded_without_paths_secrets_and_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    values = startup.variables(
        {
            "OMP_NUM_THREADS": "2",
            "LANG": "C.UTF-8",
            "PYTHONPATH": f"{tmp_path}/src{os.pathsep}/srv/planted",
            "TF_CONFIG": '{"cluster": {"worker": ["planted.example.org:2222"]}}',
            "NVIDIA_API_KEY": "planted",
            "KERAS_HOME": "~/planted",
            "HOME": "/home/planted",
            "AWS_SECRET_ACCESS_KEY": "planted",
        }
    )
    assert "planted" not in json.dumps(values)
    assert "HOME" not in values
    assert "AWS_SECRET_ACCESS_KEY" not in values
    assert (values["OMP_NUM_THREADS"], values["LANG"]) == ("2", "C.UTF-8")
    assert values["PYTHONPATH"].startswith(f"(checkout)/src{os.pathsep}hidden:")
