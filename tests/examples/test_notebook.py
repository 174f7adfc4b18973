"""The notebook runs from its first cell to its last, and git has it without outputs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT

NOTEBOOK = ROOT / "examples/notebook/use_a_model.ipynb"
PACKAGES = ROOT / ".venv-docs/lib" / f"python3.{sys.version_info.minor}" / "site-packages"
PARAMETERS = 'RUN, TASK, TEXTS = "../../results/r", "one", ["word0 and yes", "word3 and no"]\n'


def outputs_of(notebook: dict[str, Any]) -> dict[str, str]:
    """Return cell -> the text of its outputs; an image as ``<image>``."""
    outputs = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            texts = []
            for output in cell["outputs"]:
                data = output.get("data", {})
                texts += output.get("text", []) + data.get("text/plain", [])
                texts += ["<image>"] if "image/png" in data else []
            outputs[cell["id"]] = "".join(texts)
    return outputs


def test_the_notebook_has_no_outputs_and_names_of_cells() -> None:
    cells = json.loads(NOTEBOOK.read_bytes())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["outputs"] for cell in code] == [[]] * len(code)
    assert {cell["execution_count"] for cell in code} == {None}
    assert [cell["id"] for cell in code if cell["metadata"].get("tags")] == ["parameters"]


@pytest.mark.slow
@pytest.mark.keras
@pytest.mark.skipif(not (PACKAGES / "nbclient").is_dir(), reason="nbclient is not there: make docs")
def test_the_notebook_answers_scores_plots_and_traces_a_run(tmp_path: Path) -> None:
    from published_run import write_published_run

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        write_published_run(tmp_path)
    notebook = json.loads(NOTEBOOK.read_bytes())
    for cell in notebook["cells"]:
        if cell["id"] == "parameters":
            cell["source"] = [PARAMETERS]
    source = tmp_path / "examples/notebook/use_a_model.ipynb"
    source.parent.mkdir(parents=True)
    source.write_text(json.dumps(notebook), encoding="utf-8")
    paths = [str(PACKAGES), str(ROOT / "src")]
    executed = subprocess.run(
        [sys.executable, NOTEBOOK.with_name("execute.py"), source, tmp_path / "out.ipynb"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "MPLCONFIGDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert executed.returncode == 0, executed.stderr
    outputs = outputs_of(json.loads((tmp_path / "out.ipynb").read_bytes()))
    assert outputs["load"] == "('baseline', 'other')"
    assert "word3 and no" in outputs["answers"]
    assert "56.25" in outputs["scores"]  # of 62.5 and 50
    assert "<image>" in outputs["plot"]
    assert "11 of 11 answers differ from the target" in outputs["examples"]
    assert "r/evaluate_score/baseline" in outputs["lineage"]
    assert "c0ffee" in outputs["lineage"]
