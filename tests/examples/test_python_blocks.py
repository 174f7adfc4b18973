"""The Python blocks of README and the pages pass mypy with the public types of the package."""

import subprocess
import sys
from pathlib import Path

from checkout import ROOT
from documented_steps import BLOCK

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
# Page with rows of tables of the package -> the imports of the modules that have them.
IMPORTS = {
    "add_a_task.md": """
from t5repro.metrics.bleu import bleu, bleu_signature
from t5repro.metrics.classification import accuracy
from t5repro.metrics.question_answering import squad
from t5repro.metrics.registry import Metric
from t5repro.task_facts import TaskFacts
from t5repro.tasks.baselines import copy_baseline
from t5repro.tasks.generation import format_squad
from t5repro.tasks.predictions import is_blank, unchanged
from t5repro.tasks.records import read_squad
from t5repro.tasks.task import Task
"""
}


def test_python_blocks_of_all_pages_pass_mypy(tmp_path: Path) -> None:
    files = []
    for page in PAGES:
        blocks = [
            block["body"]
            for block in BLOCK.finditer(page.read_text(encoding="utf-8"))
            if block["kind"] == "python"
        ]
        for number, body in enumerate(blocks):
            files.append(tmp_path / f"{page.stem}_{number}.py".replace("-", "_"))
            files[-1].write_text(IMPORTS.get(page.name, "") + body, encoding="utf-8")
    assert len(files) >= 8
    # A false call in one of them must be found.
    wrong = tmp_path / "wrong.py"
    wrong.write_text('import t5repro\n\nt5repro.load("results/demo").score()\n', encoding="utf-8")
    config = ["--config-file", str(ROOT / "pyproject.toml"), "--follow-imports", "silent"]
    command = [sys.executable, "-m", "mypy", *config, *map(str, files), str(wrong)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line for line in ran.stdout.splitlines() if ": error:" in line]
    assert [line for line in errors if "wrong.py" not in line] == []
    assert any('"Run" has no attribute "score"' in line for line in errors), ran.stdout + ran.stderr
