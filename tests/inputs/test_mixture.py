"""Batches of a mixture of denoisers: reproducible, within their rows, known to the audit."""

import json
from pathlib import Path

import numpy as np
import pytest

from t5repro.cli.main import main
from t5repro.config.schema import RunVocab, Settings
from t5repro.config.sections.pretrain import Denoiser, PretrainSettings, PretrainStage
from t5repro.config.stage_settings import stage_settings
from t5repro.files import write_manifest
from t5repro.inputs.pretraining import CorpusInputs
from t5repro.systems.pretraining import open_rows
from t5repro.systems.step_audit import spans_in_step

pytestmark = pytest.mark.keras  # the command reads the table of systems

DOCUMENTS = [40, 7, 130, 3, 25, 64, 90, 11, 200, 55, 5, 77]
MIXTURE = (
    Denoiser(mode_token="NLU"),
    Denoiser(objective="prefix_lm", noise_density=0.25, mode_token="S2S"),
    Denoiser(noise_density=0.5, mean_noise_span_length=8, mode_token="NLG", weight=2),
)
MODE_IDS = [900, 901, 902]  # the last three sentinels after 900 pieces
LAYOUTS = pytest.mark.parametrize("concatenate", [True, False], ids=["stream", "packed"])


def stage(vocab, concatenate, **more) -> PretrainStage:
    plan = {
        "objective": "mixture_of_denoisers",
        "denoisers": MIXTURE,
        "inputs_length": 32,
        "targets_length": 32,
        "batch_size": 4,
        "steps": 30,
        "concatenate_documents": concatenate,
    }
    settings = Settings(
        seed=5, vocab=RunVocab(**vocab.model_dump()), pretrain=PretrainSettings(**{**plan, **more})
    )
    return PretrainStage.model_validate(stage_settings(settings, "pretrain"))


@pytest.fixture
def opened(write_tokens, vocab):
    def open_them(concatenate: bool, **more) -> CorpusInputs:
        ids, offsets = write_tokens(DOCUMENTS)
        settings = stage(vocab, concatenate, **more)
        return open_rows(settings, ids=ids, offsets=offsets, seed=settings.seed)

    return open_them


def arrays(inputs: CorpusInputs, first: int, steps: int) -> list[dict[str, np.ndarray]]:
    return [
        {**features, "targets": targets}
        for features, targets in inputs.batches(first_step=first, steps=steps)
    ]


def first_ids(batch: dict[str, np.ndarray]) -> list[int]:
    """Return the first id of each segment's inputs."""
    segments = batch["encoder_segments"]
    starts = (segments > 0) & (np.diff(segments, prepend=0, axis=1) > 0)
    return batch["encoder_ids"][starts].tolist()


@LAYOUTS
def test_step_n_of_a_mixture_depends_on_n_alone(opened, concatenate):
    whole, resumed = arrays(opened(concatenate), 0, 12), arrays(opened(concatenate), 9, 3)
    for one, other in zip(whole[9:], resumed, strict=True):
        assert all((one[name] == other[name]).all() for name in one)


@LAYOUTS
def test_every_segment_begins_with_a_mode_token_and_none_is_cut(opened, concatenate):
    inputs = opened(concatenate)
    seen = [token for batch in arrays(inputs, 0, 30) for token in first_ids(batch)]
    assert set(seen) == set(MODE_IDS)
    counters = inputs.counters(steps=30)
    assert counters["cut_inputs"] == counters["cut_targets"] == 0
    assert counters["segments_past_sentinels"] == 0


@LAYOUTS
def test_the_audit_names_the_denoiser_of_every_piece(opened, concatenate):
    inputs = opened(concatenate)
    for step, batch in enumerate(arrays(inputs, 0, 30)):
        by_segment = [MODE_IDS[number] for number in inputs.denoisers(step)]
        assert by_segment == first_ids(batch)
        segments = inputs.pieces(step).segments
        spans = spans_in_step(inputs, step)
        assert [MODE_IDS[span.denoiser] for span in spans] == [by_segment[n] for n in segments]


def test_another_seed_draws_other_denoisers(opened, write_tokens, vocab):
    ids, offsets = write_tokens(DOCUMENTS)
    other = stage(vocab, True).model_copy(update={"seed": 6})
    one, two = opened(True), open_rows(other, ids=ids, offsets=offsets, seed=6)
    assert any((one.denoisers(n) != two.denoisers(n)).any() for n in range(10))


def test_the_command_prints_the_denoiser_of_a_mixture(write_tokens, vocab, tmp_path: Path, capsys):
    ids, offsets = write_tokens(DOCUMENTS)
    settings = stage(vocab, True)
    manifest = tmp_path / "manifest.json"
    write_manifest(
        manifest,
        rule="pretrain",
        settings=settings.model_dump(mode="json"),
        inputs=[ids, offsets],
        outputs=[],
        counters={},
    )
    assert main(["batches", str(manifest), "--step", "3"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    inputs = open_rows(settings, ids=ids, offsets=offsets, seed=settings.seed)
    drawn = inputs.denoisers(3)
    assert {(row["row"], row["denoiser"]) for row in rows} == set(enumerate(drawn.tolist()))
