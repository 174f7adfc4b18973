"""Fresh clones of this checkout to run the chain in, and what their artifacts hash to."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml
from warm_commands import MAINS, run_warm

from t5repro.files import sha256_of

ROOT = Path(__file__).parents[2]
ARTIFACTS = ("data", "results")
# Links make copies cheap. No test and no command writes into these files: they are replaced.
PRINTED = ".snakemake/printed.txt"  # by the run; git ignores the folder
LINKED = (".git/objects", ".dvc/cache", "benchmarks", "docs", "examples", "studies", "tests")

# Small enough for a test, large enough that every stage does its work: one seed, all bundled tasks.
SMALL = (
    "pretrain={steps: 6, batch_size: 4, log_every_steps: 2}",
    "finetune={steps: 8, batch_size: 4, log_every_steps: 2}",
    "model={d_model: 32, d_ff: 64, d_kv: 16, num_heads: 2}",
    "vocab={vocab_size: 1200}",
    "evaluate={max_examples: 6, max_decode_length: 8}",
    "tasks={names: [glue_cola, glue_sst2, glue_mrpc, glue_stsb, glue_rte, super_glue_boolq, "
    "super_glue_copa, squad, cnn_dailymail, wmt_en_de, wmt_en_fr, wmt_en_ro]}",
)
# In the run file only: Snakemake reads every value of `--config` as text, and the report shows the
# values of `change` as they were written.
SMALL_EXPERIMENTS = [
    {"name": "baseline", "row": "Baseline average"},
    {"name": "no_pretraining", "row": "No pre-training", "change": {"pretrain.steps": 0}},
]
OF_THE_START = ("LD_", "MALLOC_", "PYTHON")  # variables that a process reads when it starts


def clone(folder: Path) -> Path:
    """Clone the committed state and lay the uncommitted changes over it.

    The objects stay in this checkout: thousands of files less, here and in every copy.
    """
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, folder], check=True)
    changed = subprocess.run(
        ["git", "ls-files", "--modified", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    for name in filter(None, changed):
        source, target = ROOT / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode)
        else:
            target.unlink(missing_ok=True)
    return folder


def copy_clone(original: Path, folder: Path, linked: Sequence[str] = LINKED) -> Path:
    """Return a copy of a clone, results, notes and cache included; files of `linked` are links."""
    places = tuple(f"{name}/" for name in linked)

    def copy_file(source: str, target: str) -> None:
        is_linked = os.path.relpath(source, original).startswith(places)
        (os.link if is_linked else shutil.copy2)(source, target)

    return Path(shutil.copytree(original, folder, symlinks=True, copy_function=copy_file))


def shrink(folder: Path) -> None:
    """Write a small run into the clone's run file and commit it, so that DVC versions it."""
    run_file = folder / "configs/demo.yaml"
    values = yaml.safe_load(run_file.read_text(encoding="utf-8"))
    for word in SMALL:
        section, _, leaves = word.partition("=")
        small = yaml.safe_load(leaves)
        values[section] = {**values.get(section, {}), **small}
    values["experiments"] = SMALL_EXPERIMENTS
    run_file.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    (folder / "dvc.lock").unlink(missing_ok=True)
    shutil.rmtree(folder / "records", ignore_errors=True)  # of the jobs of the whole demo
    commit(folder, "small")


def change(folder: Path, leaf: str, value: object) -> None:
    """Set one leaf of the clone's run file; a function makes the new value of the old one."""
    path = folder / "configs/demo.yaml"
    values = yaml.safe_load(path.read_text())
    *sections, name = leaf.split(".")
    branch = values
    for section in sections:
        branch = branch.setdefault(section, {})
    branch[name] = value(branch[name]) if callable(value) else value
    path.write_text(yaml.safe_dump(values, sort_keys=False))


def small_run(folder: Path, *targets: str) -> Path:
    """Run the chain, or some targets of it, in small in a new clone; return the clone."""
    shrink(clone(folder))
    process = snakemake(folder, *targets, config=SMALL)
    assert process.returncode == 0, process.stdout[-4000:]
    (folder / PRINTED).write_text(process.stdout, encoding="utf-8")
    return folder


def commit(folder: Path, message: str) -> None:
    """Commit everything in a clone."""
    who = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", "add", "--all"], cwd=folder, check=True)
    subprocess.run(
        ["git", *who, "commit", "--quiet", "--allow-empty", "-m", message], cwd=folder, check=True
    )


def run_in(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a clone with these variables; everything it printed is in `stdout`."""
    values = {**environment(folder), **variables}
    if words[0] in MAINS and not any(name.startswith(OF_THE_START) for name in variables):
        return run_warm(folder, words, values)
    return subprocess.run(
        words,
        cwd=folder,
        env=values,
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def environment(folder: Path) -> dict[str, str]:
    """Return a clean environment that runs the clone's own code with this interpreter."""
    home = folder.parent / f"{folder.name}-home"
    home.mkdir(exist_ok=True)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("XDG_", "SNAKEMAKE_", "DVC_", "T5REPRO_"))
    }
    return {
        **inherited,
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str((folder if (folder / "src").is_dir() else ROOT) / "src"),
    }


def snakemake(
    folder: Path, *words: str, profile: str = "local", config: tuple[str, ...] = (), cores: int = 2
) -> subprocess.CompletedProcess[str]:
    """Run snakemake in a clone; its output is in `stdout`."""
    # Tests read jobs and reasons, which profiles hide. Not last: `--` may end the options.
    shown = () if "--quiet" in words else ("--quiet", "host")
    command = ["snakemake", *shown, "--profile", profile, "--cores", str(cores), *words]
    if config:
        command += ["--config", *config]
    return run_in(folder, *command)


def artifact_hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every artifact of a clone by its path."""
    return {
        path.relative_to(folder).as_posix(): sha256_of(path)
        for kind in ARTIFACTS
        for path in sorted((folder / kind).rglob("*"))
        if path.is_file()
    }
