"""The steps of pre-training that saw a document: which have any, and that they are the batches'."""

import contextlib
from pathlib import Path

import numpy as np
import pytest
from made_crawl import IDS
from made_graphs import RESULT, manifest

from t5repro.audit.steps import JobSteps, steps_that_saw
from t5repro.audit.token_documents import TokenDocument
from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.config.stage_settings import stage_settings
from t5repro.lineage.graph import load_graph
from t5repro.lineage.store import Folder
from t5repro.systems.step_audit import open_recorded_inputs


def test_a_job_without_steps_saw_nothing_and_other_jobs_are_not_asked(crawl: Path) -> None:
    settings = Settings.model_validate({"pretrain": {"steps": 0}})
    for node, ids in (("a", IDS), ("b", f"{RESULT}/tokens/other/train.ids")):
        (crawl / ids).parent.mkdir(parents=True, exist_ok=True)
        (crawl / ids).touch()
        manifest(
            crawl,
            f"{RESULT}/pretrain/{node}/manifest.json",
            rule="pretrain",
            inputs=[ids],
            settings=stage_settings(settings, "pretrain"),
        )
    graph = load_graph(Folder(crawl))
    documents = [
        TokenDocument(IDS, 1, "train", "r/tokens/a"),
        TokenDocument(IDS, None, "train", "r/tokens/a"),
        TokenDocument(IDS, 0, "validation", "r/tokens/a"),
    ]
    assert steps_that_saw(graph, crawl, documents) == [JobSteps("r/pretrain/a", 1, [])]


@pytest.mark.keras
@pytest.mark.parametrize("rows", ["segment_pair", "full_sentences"])
def test_steps_on_rows_of_sentences_are_those_with_tokens_of_the_document(
    tmp_path: Path, rows: str
) -> None:
    """Each document repeats an id of its own, so a batch shows which documents it has."""
    documents, sentences, length = 40, 5, 9
    folder = tmp_path / f"{RESULT}/tokens/a"
    folder.mkdir(parents=True)
    bounds = np.arange(documents + 1) * sentences * length
    np.repeat(10 + np.arange(documents), sentences * length).astype("<u2").tofile(
        folder / "train.ids"
    )
    bounds.astype("<i8").tofile(folder / "train.offsets")
    np.arange(0, bounds[-1], length).astype("<i8").tofile(folder / "train.sentences")
    np.ones(108, np.uint8).tofile(folder / "word_starts")
    pair_task = "next_sentence" if rows == "segment_pair" else "none"
    settings = load_settings(
        {
            "use": ["systems/bert"],
            "seed": 5,
            "vocab": {"vocab_size": 100, "extra_ids": 8},
            "tasks": {"names": ["glue_cola"], "segments": True},
            "pretrain": {
                "steps": 15,
                "batch_size": 2,
                "inputs_length": 32,
                "targets_length": 5,
                "masked_lm": {"rows": rows, "pair_task": pair_task},
            },
        }
    )
    stage = stage_settings(settings, "pretrain")
    names = [f"{RESULT}/tokens/a/{name}" for name in
             ("train.ids", "train.offsets", "train.sentences", "word_starts")]  # fmt: skip
    path = f"{RESULT}/pretrain/a/manifest.json"
    manifest(tmp_path, path, rule="pretrain", inputs=names, settings=stage)
    graph = load_graph(Folder(tmp_path))
    ids = f"{RESULT}/tokens/a/train.ids"
    asked = [TokenDocument(ids, number, "train", "r/tokens/a") for number in range(0, 40, 7)]
    found = {one.document: one.steps for one in steps_that_saw(graph, tmp_path, asked)}

    with contextlib.chdir(tmp_path):
        inputs, steps = open_recorded_inputs(Path(path))
        seen = [
            {*(features["encoder_ids"] - 10).ravel(), *(targets - 10).ravel()}
            for features, targets in inputs.batches(first_step=0, steps=steps)
        ]
    assert steps == 15
    # A random piece may be that of another document: the steps of the audit have no such places.
    for document, steps_of_it in found.items():
        read = {step for step, documents in enumerate(seen) if document in documents}
        assert set(steps_of_it) <= read
        assert len(read - set(steps_of_it)) <= 2
    assert any(found.values())
    assert not all(len(one) == 15 for one in found.values())
