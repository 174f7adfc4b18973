"""A wheel without a checkout: what it contains, what it answers, and the chain in a new project."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml
from clones import ROOT, SMALL_EXPERIMENTS, commit
from wheel_venv import build_wheel, run_wheel, wheel_venv

from t5repro.config.load import load_run_file
from t5repro.config.project_files import bundled_files
from t5repro.files import sha256_of
from t5repro.lineage.sources import closure_texts

pytestmark = pytest.mark.workflow
Run = Callable[..., CompletedProcess[str]]
SMALL = {
    "pretrain": {"steps": 6, "batch_size": 4, "log_every_steps": 2},
    "finetune": {"steps": 8, "batch_size": 4, "log_every_steps": 2},
    "model": {"d_model": 32, "d_ff": 64, "d_kv": 16, "num_heads": 2},
    "vocab": {"vocab_size": 1200},
    "evaluate": {"max_examples": 6, "max_decode_length": 8},
    "tasks": {"names": ["glue_cola"]},
}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    return wheel_venv(folder / "venv", build_wheel(folder))


@pytest.fixture
def run(scripts: Path, tmp_path: Path) -> Run:
    """Runs a command of the wheel in an empty folder."""

    def run_in_empty_folder(*words: str | Path, check: bool = True) -> CompletedProcess[str]:
        return run_wheel(scripts, tmp_path, *words, check=check)

    return run_in_empty_folder


@pytest.fixture(scope="module")
def project(scripts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that the wheel wrote, with a small run of two experiments, sealed and committed."""
    folder = tmp_path_factory.mktemp("projects")
    run_wheel(scripts, folder, "t5repro", "init", "new")
    project = folder / "new"
    run_file = project / "configs/demo.yaml"
    values = yaml.safe_load(run_file.read_text(encoding="utf-8"))
    for section, small in SMALL.items():
        values[section] = {**values.get(section, {}), **small}
    values["experiments"] = SMALL_EXPERIMENTS
    run_file.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    run_wheel(scripts, project, "git", "init", "--quiet")
    commit(project, "new project")
    run_wheel(scripts, project, "t5repro", "dvc", "generate")
    commit(project, "versions")
    run_wheel(scripts, project, "snakemake", "--profile", "local", "--cores", "2")
    commit(project, "demo")
    return project


def test_the_wheel_is_used_and_not_the_checkout(run: Run, scripts: Path) -> None:
    printed = run("python", "-c", "import t5repro; print(t5repro.__file__)").stdout
    assert Path(printed).is_relative_to(scripts.parent)
    assert "a run and its results:" in run("t5repro", "--help").stdout


def test_settings_with_presets_are_those_of_the_checkout(run: Run, tmp_path: Path) -> None:
    run_file = tmp_path / "my.yaml"
    run_file.write_text("use: [cleaning/tfds, c4/multilingual]\n", encoding="utf-8")
    shown = json.loads(run("t5repro", "config", "show", "my.yaml").stdout)
    assert shown == load_run_file(run_file).model_dump(mode="json")
    base = json.loads(run("t5repro", "config", "show").stdout)
    assert base == load_run_file(ROOT / "configs/base.yaml").model_dump(mode="json")


def test_an_included_file_of_sources_is_that_of_the_wheel(run: Run, tmp_path: Path) -> None:
    run_file = tmp_path / "my.yaml"
    sources = [{"include": "configs/sources/tasks.yaml", "tasks": ["glue_cola"]}]
    run_file.write_text(yaml.safe_dump({"data": {"sources": sources}}), encoding="utf-8")
    shown = json.loads(run("t5repro", "config", "show", "my.yaml").stdout)
    assert [list(source["files"]) for source in shown["data"]["sources"]] == [
        [f"tasks/glue/CoLA/{split}.tsv" for split in ("train", "dev", "test")]
    ]


def test_a_run_file_is_validated_with_its_raw_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(
        "run: {name: mine}\ndata: {folder: texts}\ncorpus: {files: [a.txt]}\n", encoding="utf-8"
    )
    refused = run("t5repro", "config", "validate", "my.yaml", check=False)
    assert (refused.returncode, "a.txt" in refused.stderr) != (0, False)
    assert "Traceback" not in refused.stderr
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/a.txt").write_text("A line of text.\n", encoding="utf-8")
    valid = run("t5repro", "config", "validate", "my.yaml")
    assert valid.stdout == "my.yaml is valid: run mine, experiments baseline\n"


@pytest.mark.parametrize(
    "words", ["dvc generate", "dvc dag", "seal", "dvc rehydrate", "certificate"], ids=str
)
def test_a_command_of_the_chain_says_in_one_line_that_it_needs_a_project(
    run: Run, tmp_path: Path, words: str
) -> None:
    ran = run("t5repro", *words.split(), check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        f"t5repro {words}: {tmp_path} has no Snakefile; go to a checkout, or to a "
        "folder that `t5repro init FOLDER` has written\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("action", ["generate", "check"])
def test_the_generated_files_need_a_checkout(run: Run, tmp_path: Path, action: str) -> None:
    ran = run("t5repro", "config", action, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(
        f"t5repro config {action}: {tmp_path} has no docs/decisions/README.md, so"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_new_project_has_the_files_of_the_checkout(run: Run, tmp_path: Path) -> None:
    assert run("t5repro", "init", ".").stdout.startswith(f"wrote {len(bundled_files())} files to .")
    written = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path) for path in written} == set(bundled_files())
    for path in written:
        assert sha256_of(path) == sha256_of(ROOT / path.relative_to(tmp_path)), path


def test_a_file_of_the_user_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text("mine", encoding="utf-8")
    ran = run("t5repro", "init", ".", check=False)
    assert (ran.returncode, ran.stderr) == (
        2,
        "t5repro init: Snakefile exists, and no file is overwritten; name a new folder\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["Snakefile"]


def test_the_code_of_the_rules_has_the_names_and_hashes_of_the_checkout(
    run: Run, tmp_path: Path
) -> None:
    run("python", "-c", "from t5repro.lineage.sources import write_closures; write_closures()")
    for path, text in closure_texts().items():
        assert (tmp_path / path).read_text(encoding="utf-8") == text


@pytest.mark.slow
def test_the_chain_runs_in_a_new_project_and_verifies(scripts: Path, project: Path) -> None:
    planned = run_wheel(scripts, project, "snakemake", "--profile", "local", "-n")
    assert "Nothing to be done" in planned.stdout + planned.stderr
    verified = run_wheel(scripts, project, "t5repro", "verify")
    assert "first broken link" not in verified.stdout
    certified = run_wheel(scripts, project, "t5repro", "certificate")
    assert "no stage came out differently" in certified.stdout
    status = run_wheel(scripts, project, "dvc", "status", "report").stdout
    assert status == "Data and pipelines are up to date.\n"


@pytest.mark.slow
def test_a_project_answers_elsewhere_and_a_new_task_starts_from_it(
    run: Run, project: Path, tmp_path: Path
) -> None:
    answers = run("t5repro", "predict", project / "results/demo", "cola sentence: A tailor sings .")
    assert len(answers.stdout.splitlines()) == 1
    script = f"import t5repro; print(t5repro.load({str(project / 'results/demo')!r}).experiments)"
    assert run("python", "-c", script).stdout == "('baseline', 'no_pretraining')\n"
    assert "glue_cola" in run("t5repro", "show", project / "results/demo").stdout

    trained = project / "results/demo/finetune/baseline"
    run(
        "t5repro",
        "weights",
        "export",
        "--weights",
        trained / "manifest.json",
        "--vocabulary",
        project / "results/demo/vocab/baseline/sentencepiece.model",
        "--form",
        "huggingface",
        "--folder",
        "model",
    )
    rows = "".join(f"text number {n} is {'good' if n % 2 else 'bad'},{n % 2}\n" for n in range(40))
    (tmp_path / "mood.csv").write_text(f"text,label\n{rows}", encoding="utf-8")
    proposed = run(
        "t5repro",
        "tasks",
        "new",
        "mood.csv",
        "--from",
        "model",
        "--labels",
        "bad,good",
        "--out",
        "m.yaml",
    )
    assert "  t5repro init .\n" in proposed.stdout
    assert run("t5repro", "config", "validate", "m.yaml").stdout.startswith("m.yaml is valid")
