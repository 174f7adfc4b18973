"""The trace that docs/audit_a_score.md prints is that of the demo."""

import re
import shlex
from pathlib import Path

import pytest
from clones import ROOT, clone, run_in, snakemake

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.load import load_run_file
from t5repro.config.stage_settings import stage_settings
from t5repro.files import describe_file, write_manifest

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

DOCUMENT = ROOT / "docs/audit_a_score.md"
TOKENS = "results/demo/tokens/baseline"


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone with the demo's ids, and manifests of the pre-trainings that read them.

    The steps that saw a page are a function of ids, settings and seed, so nothing has to train.
    """
    folder = clone(tmp_path_factory.mktemp("documented") / "clone")
    ran = snakemake(folder, f"{TOKENS}/manifest.json")
    assert ran.returncode == 0, ran.stdout[-4000:]
    settings = load_run_file(ROOT / "configs/demo.yaml")
    for name in (experiment.name for experiment in settings.experiments):
        write_manifest(
            folder / f"results/demo/pretrain/{name}/manifest.json",
            rule="pretrain",
            settings=stage_settings(settings_of_experiment(settings, name), "pretrain"),
            inputs=[
                {**describe_file(folder / TOKENS / file), "path": f"{TOKENS}/{file}"}
                for file in ("train.ids", "train.offsets")
            ],
            outputs=[],
            counters={},
        )
    return folder


def test_the_documented_trace_is_the_one_that_the_command_prints(untrained: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    (block,) = re.findall(r"\n\$ (t5repro trace \S+ --steps)\n(.*?)```", text, flags=re.DOTALL)
    command, expected = block
    printed = run_in(untrained, *shlex.split(command)).stdout
    lines = [line.rstrip() for line in printed.splitlines()]
    assert [line.rstrip() for line in expected.splitlines()] == lines, (
        f"replace the example in {DOCUMENT.name} by:\n{printed}"
    )
