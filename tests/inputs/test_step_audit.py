"""The audit of pre-training: documents of a step, steps of a document."""

import json
from pathlib import Path

import numpy as np
import pytest

from t5repro.cli.main import main
from t5repro.config.schema import RunVocab, Settings
from t5repro.config.sections.pretrain import PretrainSettings, PretrainStage
from t5repro.config.stage_settings import stage_settings
from t5repro.errors import ArtifactError
from t5repro.files import write_manifest
from t5repro.inputs.document_steps import steps_of_documents
from t5repro.systems.pretraining import open_rows
from t5repro.systems.step_audit import open_recorded_inputs, spans_in_step

pytestmark = pytest.mark.keras  # the command reads the table of systems

DOCUMENTS = [40, 7, 130, 3, 25, 64, 90, 11, 200, 55, 5, 77]
OFFSETS = np.cumsum([0, *DOCUMENTS])
STEPS = 30
LAYOUTS = pytest.mark.parametrize(
    "change",
    [
        {"concatenate_documents": True},
        {"concatenate_documents": False},
        {"concatenate_documents": True, "chunk_tokens": 50},
        {"concatenate_documents": False, "unique_tokens": 250},
    ],
    ids=["stream", "packed", "stream of chunks", "packed, repeated"],
)


def stage(vocab, change) -> PretrainStage:
    plan = PretrainSettings(
        noise_mask="random_spans",
        inputs_length=32,
        targets_length=24,
        batch_size=4,
        steps=STEPS,
        **change,
    )
    settings = Settings(seed=5, vocab=RunVocab(**vocab.model_dump()), pretrain=plan)
    return PretrainStage.model_validate(stage_settings(settings, "pretrain"))


@pytest.fixture
def opened(write_tokens, vocab):
    def open_them(change):
        ids, offsets = write_tokens(DOCUMENTS)
        settings = stage(vocab, change)
        return open_rows(settings, ids=ids, offsets=offsets, seed=settings.seed)

    return open_them


def tokens_of(batch, row) -> list[int]:
    """Return which tokens of the file a row holds; the fixture writes token t as 3 + t."""
    features, targets = batch
    ids = np.concatenate([features["encoder_ids"][row], targets[row]])
    return sorted((ids[(ids >= 3) & (ids < 893)] - 3).tolist())


def documents_of(inputs, step) -> set[int]:
    return {span.document for span in spans_in_step(inputs, step)}


@LAYOUTS
def test_the_tokens_of_a_step_are_those_of_its_batch(opened, change):
    inputs = opened(change)
    for step, batch in enumerate(inputs.batches(first_step=0, steps=STEPS)):
        expected = [tokens_of(batch, row) for row in range(4)]
        found: list[list[int]] = [[] for _ in range(4)]
        for seen in spans_in_step(inputs, step):
            assert seen.step == step
            assert seen.first_token + seen.tokens <= DOCUMENTS[seen.document]
            first = int(OFFSETS[seen.document]) + seen.first_token
            found[seen.row] += range(first, first + seen.tokens)
        assert [sorted(row) for row in found] == expected


@LAYOUTS
def test_the_steps_of_a_document_are_those_whose_batches_hold_it(opened, change):
    inputs = opened(change)
    by_document: dict[int, list[int]] = {number: [] for number in range(len(inputs.offsets) - 1)}
    for step in range(STEPS):
        for document in documents_of(inputs, step):
            by_document[document].append(step)
    assert steps_of_documents(inputs, list(by_document), steps=STEPS) == by_document
    assert any(len(steps) > 3 for steps in by_document.values())


def test_rows_beyond_a_block_are_looked_at_too(opened, monkeypatch):
    inputs = opened({})
    whole = steps_of_documents(inputs, [2], steps=STEPS)
    monkeypatch.setattr("t5repro.inputs.document_steps.ROWS_PER_DRAW", 7)
    assert steps_of_documents(inputs, [2], steps=STEPS) == whole


def test_a_document_that_is_not_there_is_refused(opened):
    with pytest.raises(ArtifactError, match="no document 12; they go from 0 to 11"):
        steps_of_documents(opened({}), [12], steps=STEPS)


def test_the_command_answers_from_a_manifest(write_tokens, vocab, tmp_path: Path, capsys):
    ids, offsets = write_tokens(DOCUMENTS)
    settings = stage(vocab, {})
    manifest = tmp_path / "manifest.json"
    write_manifest(
        manifest,
        rule="pretrain",
        settings=settings.model_dump(mode="json"),
        inputs=[ids, offsets],
        outputs=[],
        counters={},
    )
    inputs, steps = open_recorded_inputs(manifest)
    assert steps == STEPS
    assert main(["batches", str(manifest), "--document", "2"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"document": 2, "steps": steps_of_documents(inputs, [2], steps=STEPS)[2]}
    assert main(["batches", str(manifest), "--step", "3"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["document"] for row in rows} == documents_of(inputs, 3)
    assert main(["batches", str(manifest), "--step", "30"]) == 2
    assert "steps 0 to 29" in capsys.readouterr().err


def test_settings_that_cannot_be_read_are_refused(tmp_path: Path):
    write_manifest(
        tmp_path / "m.json",
        rule="pretrain",
        settings={"seed": "x"},
        inputs=[],
        outputs=[],
        counters={},
    )
    with pytest.raises(ArtifactError, match="records settings that this version does not read"):
        open_recorded_inputs(tmp_path / "m.json")


def test_another_manifest_is_refused(tmp_path: Path):
    write_manifest(
        tmp_path / "m.json", rule="tokens", settings={}, inputs=[], outputs=[], counters={}
    )
    with pytest.raises(ArtifactError, match="is not a manifest of the rule pretrain"):
        open_recorded_inputs(tmp_path / "m.json")
