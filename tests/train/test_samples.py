"""Predictions for validation examples during fine-tuning (`run.samples`)."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import traced_steps

pytest.importorskip("tensorflow")
from t5repro.config.sections.vocab import VocabStage
from t5repro.files import read_json_lines, write_json_lines
from t5repro.jobs.corpus import VocabJob
from t5repro.model.decode import greedy
from t5repro.train import loop
from t5repro.train.samples import FILE, Samples
from t5repro.vocab.train import make_vocabulary
from t5repro.vocab.vocabulary import Vocabulary

pytestmark = pytest.mark.keras
WORDS = ["the", "of", "and"]


@pytest.fixture(scope="module")
def files(tiny, tmp_path_factory) -> tuple[Path, Path]:
    """A vocabulary of the tiny network's size, and examples."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "sample.txt").write_text("repeat the words of this line, and of it\n" * 30)
    make_vocabulary(
        VocabJob(
            VocabStage.model_validate({"vocab": {"vocab_size": 21, "extra_ids": 28}}),
            sample=folder / "sample.txt",
            model=folder / "sentencepiece.model",
            pieces=folder / "sentencepiece.vocab",
            manifest=folder / "manifest.json",
        )
    )
    rows = [
        {"idx": number, "inputs": f"repeat {word}", "targets": word, "answer": None}
        for number, word in enumerate(WORDS)
    ]
    write_json_lines(folder / "repeat/validation.jsonl", rows)
    return folder / "sentencepiece.model", folder / "repeat/validation.jsonl"


@pytest.fixture
def make_job(tiny, files, tmp_path):
    vocabulary, examples = files

    def make(folder=tmp_path, *, count=2, **options):
        job = tiny.make_job(folder, rule="finetune", monitor=True, steps=6, **options)

        def samples(log_folder, announce):
            return Samples(
                {"repeat": examples},
                count=count,
                every_steps=2,
                settings=job.settings,
                vocabulary=vocabulary,
                folder=log_folder,
                announce=announce,
            )

        return dataclasses.replace(job, samples=samples)

    return make


def test_examples_are_predicted_at_every_interval_and_logged(make_job, tiny, tmp_path, capsys):
    traced_steps.run(make_job())
    rows = list(read_json_lines(tmp_path / "logs" / FILE))
    assert [row["step"] for row in rows] == [2, 2, 4, 4, 6, 6]
    assert [row["targets"] for row in rows] == ["the", "of"] * 3
    printed = capsys.readouterr().err
    assert f"finetune: step 4, repeat: {rows[2]['prediction']!r}, target 'the'" in printed


def test_a_sample_is_what_the_weights_of_its_step_predict(make_job, tiny, files, tmp_path):
    job = make_job()
    traced_steps.run(job)
    *_, first, second = read_json_lines(tmp_path / "logs" / FILE)
    model = loop.make_model(job).network
    from t5repro.model.checkpoints import load_weights

    load_weights(tmp_path / "results/weights.safetensors", model)
    vocabulary = Vocabulary.load(files[0])
    for row in (first, second):
        ids = [*vocabulary.encode(row["inputs"]), 1]
        assert len(ids) <= job.settings.finetune.inputs_length
        length = job.settings.finetune.inputs_length
        padded = np.array([ids + [0] * (length - len(ids))] * 2, np.int32)
        decoded = greedy(model, padded, max_decode_length=job.settings.finetune.targets_length)
        assert vocabulary.decode(decoded[0].tolist()) == row["prediction"]


def test_samples_change_no_byte_of_the_results(make_job, tiny, tmp_path):
    traced_steps.run(make_job(tmp_path / "one"))
    plain = dataclasses.replace(make_job(tmp_path / "two"), samples=None)
    traced_steps.run(plain)
    paths = sorted((tmp_path / "one/results").glob("*.safetensors"))
    assert len(paths) == 2
    for path in paths:
        assert path.read_bytes() == (tmp_path / "two/results" / path.name).read_bytes()


def test_a_resumed_training_keeps_the_samples_up_to_its_first_step(make_job, files, tmp_path):
    job = make_job()
    written = [{"step": step, "task": "repeat"} for step in (2, 4, 6)]
    (tmp_path / "logs").mkdir()
    write_json_lines(tmp_path / "logs" / FILE, written)
    samples = job.samples(tmp_path / "logs", print)
    samples.resume(4)
    samples.write(6, loop.make_model(job))
    rows = list(read_json_lines(tmp_path / "logs" / FILE))
    assert [row["step"] for row in rows] == [2, 4, 6, 6]


def test_tensorboard_shows_the_samples_as_text(make_job, tiny, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    traced_steps.run(make_job(count=1))
    events = EventAccumulator(str(tmp_path / "logs"))
    events.Reload()
    (text,) = events.Tensors("samples")[0].tensor_proto.string_val
    header, _, row = text.decode().split("\n")
    assert header == "|task|inputs|targets|prediction|"
    assert row.startswith("|repeat|repeat the|the|")
