"""A published checkpoint with its vocabulary goes through the graph to the report."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from clones import clone, run_in, snakemake

pytest.importorskip("torch", reason="peers are not installed: make parity")
pytest.importorskip("transformers", reason="peers are not installed: make parity")

pytestmark = [pytest.mark.parity, pytest.mark.workflow, pytest.mark.keras, pytest.mark.slow]
TASK = "glue_sst2"
# Family -> its run files.
RUN_FILES = {
    "bert": ["configs/tuned_bert.yaml"],
    "gpt": ["configs/tuned_bert.yaml", "configs/tuned_gpt.yaml"],
}
VOCABULARIES = {"bert": ["vocab.txt"], "gpt": ["vocab.json", "merges.txt"]}
NAMES = {"bert": "bert uncased", "gpt": "gpt"}


@pytest.fixture(scope="module", params=RUN_FILES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Results of a checkpoint with random weights, tuned by the run files of its family."""
    from foreign_checkpoints import write_checkpoint

    family = request.param
    folder = clone(tmp_path_factory.mktemp(family) / "clone")
    checkpoint = folder / f"work/published/{family}"
    write_checkpoint(NAMES[family], checkpoint)
    # `pretrain` reads every file of the folder, and a trace refuses one that no entry lists.
    (checkpoint / "generation_config.json").unlink(missing_ok=True)
    if family == "gpt":
        (checkpoint / "tokenizer_config.json").unlink()
    command = ("t5repro", "weights", "import", f"work/published/{family}", "--folder", "work/small")
    imported = run_in(folder, *command)
    assert imported.returncode == 0, imported.stdout
    files = [*RUN_FILES[family], "work/small/settings.yaml"]
    ran = snakemake(folder, "--configfile", *files)
    assert ran.returncode == 0, ran.stdout[-4000:]
    yield folder / f"results/tuned_{family}"
    shutil.rmtree(folder)


def family_of(run: Path) -> str:
    return run.name.removeprefix("tuned_")


def answer(folder: Path, *words: str) -> str:
    process = run_in(folder, "t5repro", *words)
    assert process.returncode == 0, process.stdout
    return process.stdout


def test_every_row_is_answered_and_scored_in_the_report(run: Path) -> None:
    name = family_of(run)
    lines = (run / f"evaluate_predict/{name}/{TASK}.jsonl").read_text().splitlines()
    assert {json.loads(line)["prediction"] for line in lines} <= {"negative", "positive"}
    scores = json.loads((run / f"evaluate_score/{name}/scores.json").read_text())["tasks"][TASK]
    report = (run / "report/report.html").read_text(encoding="utf-8")
    assert f"{scores['metrics']['accuracy']:.2f}" in report
    assert len(lines) == scores["examples"] == 200


def test_the_command_answers_a_row_as_the_run_did(run: Path) -> None:
    rows = (run / f"tasks/{TASK}/validation.jsonl").read_text().splitlines()[:5]
    predictions = (run / f"evaluate_predict/{family_of(run)}/{TASK}.jsonl").read_text().splitlines()
    words = ["predict", f"results/{run.name}", "--task", TASK]
    sentences = [json.loads(row)["segments"][0] for row in rows]
    printed = answer(run.parents[1], *words, *sentences).splitlines()
    expected = [json.loads(line)["prediction"] for line in predictions[:5]]
    assert printed[-5:] == expected


def test_a_score_leads_to_the_files_of_the_checkpoint_and_back(run: Path) -> None:
    folder, name = run.parents[1], family_of(run)
    scores = f"results/{run.name}/evaluate_score/{name}/scores.json"
    trace = answer(folder, "trace", f"{scores}#{TASK}")
    for file in VOCABULARIES[name]:
        raw = f"work/published/{name}/{file}"
        assert raw in trace
        assert scores in answer(folder, "impact", raw)
    verified = run_in(folder, "t5repro", "verify").stdout.splitlines()
    ours = [line for line in verified if run.name in line]
    # Nothing is sealed or committed yet; no file differs from its manifest.
    assert {line.split("  ")[0] for line in ours} <= {"not committed", "not sealed"}


def test_a_tuned_encoder_leaves_with_its_own_vocabulary(run: Path) -> None:
    folder, name = run.parents[1], family_of(run)
    words = ["weights", "export", f"results/{run.name}", "--form", "huggingface"]
    process = run_in(folder, "t5repro", *words, "--folder", "work/exported")
    if name == "gpt":  # its head of labels has no class there
        assert process.returncode == 1
        assert "finetune/gpt/weights.safetensors has 2 weights" in process.stdout
        return
    assert process.returncode == 0, process.stdout
    for file in VOCABULARIES[name]:
        exported = (folder / "work/exported" / file).read_text(encoding="utf-8")
        published = (folder / f"work/published/{name}" / file).read_text(encoding="utf-8")
        assert exported == published
