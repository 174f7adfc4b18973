"""Weights that come from elsewhere and go elsewhere, with their vocabulary and optimizer."""

import io
import json

import numpy as np
import pytest
import traced_steps
import yaml

from t5repro.config.load import load_settings
from t5repro.config.sections.model import ModelSettings
from t5repro.errors import ArtifactError, CheckpointError, SettingsError, VocabularyError
from t5repro.publish.weights import export_weights
from t5repro.train.fingerprint import fingerprint_of
from t5repro.train.import_weights import import_weights
from t5repro.train.pretrain import files_in
from t5repro.vocab.special_ids import add_sentinels
from t5repro.vocab.vocabulary import Vocabulary

pytestmark = pytest.mark.keras
PIECES, SENTINELS = 100, 28


@pytest.fixture(scope="module")
def proto():
    """A SentencePiece model of 100 pieces without sentinels, as owners publish them."""
    import sentencepiece

    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(f"word{n} and yes or no {n * 7919} word{n}" for n in range(400)),
        model_writer=trained,
        vocab_size=PIECES,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    return trained.getvalue()


@pytest.fixture
def trained(tmp_path, tiny, proto):
    """A finished tiny pre-training with the vocabulary and settings of a run."""
    job = tiny.make_job(tmp_path / "run", steps=3)
    traced_steps.run(job)
    (tmp_path / "vocab.model").write_bytes(add_sentinels(proto, SENTINELS))
    return job.manifest, tmp_path / "vocab.model"


def weights_in(folder):
    from t5repro.model.checkpoints import read_arrays

    return read_arrays(folder / "weights.safetensors")


@pytest.mark.filterwarnings("ignore:.*does not support masking:UserWarning")
@pytest.mark.parametrize("form", ["huggingface", "keras_hub"])
def test_weights_and_vocabulary_go_out_and_come_back(tmp_path, trained, form, proto):
    manifest, vocabulary = trained
    export_weights(manifest, vocabulary=vocabulary, form=form, folder=tmp_path / "out")
    import_weights(tmp_path / "out", tmp_path / "back")
    expected, actual = weights_in(manifest.parent), weights_in(tmp_path / "back")
    assert set(expected) == set(actual)
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value)
    settings = yaml.safe_load((tmp_path / "back" / "settings.yaml").read_text())
    model = ModelSettings.model_validate(json.loads(manifest.read_text())["settings"]["model"])
    assert settings["model"] == model.stated
    assert load_settings(settings).model == model  # a run file may have these lines
    back = Vocabulary.load(tmp_path / "back" / "sentencepiece.model")
    if form == "keras_hub":
        assert settings["vocab"] == {"vocab_size": PIECES, "extra_ids": SENTINELS}
    else:  # its file has no sentinels; the rows of the embedding have room for 28
        assert (tmp_path / "out" / "spiece.model").read_bytes() == proto
        assert settings["vocab"] == {"vocab_size": PIECES, "extra_ids": 28}
    assert back.encode("word7 and") == Vocabulary.load(vocabulary).encode("word7 and")


@pytest.mark.filterwarnings("ignore:.*does not support masking:UserWarning")
@pytest.mark.parametrize("form", ["huggingface", "keras_hub"])
def test_a_repeated_export_or_import_removes_what_a_killed_one_left(tmp_path, trained, form):
    out, back = tmp_path / "out", tmp_path / "back"

    def written():
        export_weights(trained[0], vocabulary=trained[1], form=form, folder=out)
        import_weights(out, back)
        return {path for folder in (out, back) for path in folder.rglob("*") if path.is_file()}

    whole = written()
    for path in whole:
        path.with_name(f".writing-0123abcd-{path.name}").touch()
    (out / ".writing-0123abcd-notes").touch()  # of another program
    assert written() == {*whole, out / ".writing-0123abcd-notes"}


def test_structbert_is_exported_without_its_head_of_three_classes(tmp_path, proto, capsys):
    from t5repro.config.presets.sizes import SIZES
    from t5repro.model.checkpoints import save_weights
    from t5repro.model.encoder import Encoder

    model = SIZES["structbert_tiny"].model_copy(update={"d_model": 16, "d_ff": 8, "d_kv": 8})
    vocab = {"vocab_size": PIECES, "extra_ids": SENTINELS}
    network = Encoder(model, embedding_rows=128, dropout_rate=0.0, seed=0, pair_classes=3)
    save_weights(tmp_path / "run/weights.safetensors", network)
    settings = {"model": model.model_dump(), "vocab": vocab}
    (tmp_path / "run/manifest.json").write_text(json.dumps({"settings": settings}))
    (tmp_path / "vocab.model").write_bytes(add_sentinels(proto, SENTINELS))
    manifest, out = tmp_path / "run/manifest.json", tmp_path / "out"
    export_weights(manifest, vocabulary=tmp_path / "vocab.model", form="huggingface", folder=out)
    assert (
        "pair_head/matrix and pair_head/bias are not exported: their 3" in capsys.readouterr().err
    )
    assert json.loads((out / "config.json").read_text())["architectures"] == ["BertForMaskedLM"]
    import_weights(out, tmp_path / "back")
    expected, actual = weights_in(tmp_path / "run"), weights_in(tmp_path / "back")
    assert {name for name in expected if name not in actual} == {
        "pair_head/matrix",
        "pair_head/bias",
    }
    assert {"pooler/matrix", "masked_lm/bias"} <= set(actual)
    for name, value in actual.items():
        np.testing.assert_array_equal(value, expected[name])


def test_an_import_replaces_no_results_of_a_job(tmp_path, trained):
    out = tmp_path / "out"
    export_weights(trained[0], vocabulary=trained[1], form="huggingface", folder=out)
    weights = (trained[0].parent / "weights.safetensors").read_bytes()
    with pytest.raises(ArtifactError, match="has results of a job; name another folder: --folder"):
        import_weights(out, trained[0].parent)
    assert (trained[0].parent / "weights.safetensors").read_bytes() == weights


@pytest.mark.filterwarnings("ignore:.*does not support masking:UserWarning")
@pytest.mark.parametrize("form", ["huggingface", "keras_hub", "t5repro"])
def test_a_training_begins_with_published_weights(tmp_path, tiny, trained, form):
    manifest, vocabulary = trained
    folder = manifest.parent
    if form != "t5repro":
        folder = tmp_path / "published"
        export_weights(manifest, vocabulary=vocabulary, form=form, folder=folder)
    started = tiny.make_job(tmp_path / "second", steps=0, seed=5, published=folder)
    traced_steps.run(started)
    for name, value in weights_in(manifest.parent).items():
        np.testing.assert_array_equal(weights_in(started.folder)[name], value)
    counters = json.loads(started.manifest.read_text())["counters"]
    assert counters["optimizer_step"] == (3 if form == "t5repro" else 0)


@pytest.mark.filterwarnings("ignore:.*does not support masking:UserWarning")
def test_the_training_of_an_encoder_goes_on_from_its_preset_of_keras_hub(tmp_path, tiny, proto):
    options = {"encoder": True, "masked_lm": {"pair_task": "sentence_order"}}
    first = tiny.make_job(tmp_path / "first", steps=3, **options)
    traced_steps.run(first)
    vocabulary, preset = tmp_path / "vocab.model", tmp_path / "preset"
    vocabulary.write_bytes(add_sentinels(proto, SENTINELS))
    export_weights(first.manifest, vocabulary=vocabulary, form="keras_hub", folder=preset)
    jobs = {
        steps: tiny.make_job(tmp_path / f"{steps}", steps=steps, published=preset, **options)
        for steps in (0, 6)
    }
    for job in jobs.values():
        traced_steps.run(job)
    expected, started = weights_in(first.folder), weights_in(jobs[0].folder)
    fresh = {name for name in expected if not np.array_equal(started[name], expected[name])}
    # An AlbertBackbone has no heads of pre-training.
    assert {name.partition("/")[0] for name in fresh} == {"masked_lm", "pair_head"}
    losses = np.genfromtxt(jobs[6].folder / "history.csv", delimiter=",", skip_header=1)[:, 1]
    assert losses[-1] < losses[0]


def test_rows_that_published_weights_lack_remain_zero_through_both_trainings(
    tmp_path, tiny, trained
):
    from t5repro.model.checkpoints import write_arrays

    rows, published = 120, tmp_path / "published"
    arrays = weights_in(trained[0].parent)
    published.mkdir()
    arrays["embedding"] = arrays["embedding"][:rows]
    write_arrays(published / "weights.safetensors", arrays)
    first = tiny.make_job(tmp_path / "first", steps=3, published=published)
    traced_steps.run(first)
    second = tiny.make_job(tmp_path / "second", rule="finetune", steps=3, start=str(first.folder))
    traced_steps.run(second)
    for job in (first, second):
        embedding = weights_in(job.folder)["embedding"]
        assert embedding.shape == (128, 32)
        assert np.isfinite(embedding).all()
        assert (embedding[:rows] != 0).any(axis=1).all()
        assert not embedding[rows:].any()


def test_the_files_of_the_checkpoint_decide_whether_a_state_is_still_good(tmp_path, tiny, trained):
    folder = trained[0].parent
    job = tiny.make_job(tmp_path / "second")
    fingerprints = []
    for change in (b"", b"x"):
        with (folder / "history.csv").open("ab") as handle:
            handle.write(change)
        fingerprints.append(fingerprint_of("pretrain", job.recorded_settings, files_in(folder), {}))
    assert fingerprints[0].differing_parts(fingerprints[1]) == ("inputs",)


def test_weights_of_another_shape_name_the_settings(tmp_path, tiny, trained, monkeypatch):
    monkeypatch.setattr(tiny, "SHAPE", tiny.SHAPE.model_copy(update={"d_ff": 48}))
    wider = tiny.make_job(tmp_path / "second", steps=0, published=trained[0].parent)
    with pytest.raises(CheckpointError, match=r"model.d_ff is 48, the weights have 64"):
        traced_steps.run(wider)


def test_an_unknown_form_is_refused(trained, tmp_path):
    with pytest.raises(SettingsError, match=r"unknown form 'onnx'; allowed are"):
        export_weights(trained[0], vocabulary=trained[1], form="onnx", folder=tmp_path)


def test_a_manifest_of_another_rule_is_refused(trained, tmp_path):
    other = tmp_path / "manifest.json"
    other.write_text('{"settings": {"tokens": {}}}')
    with pytest.raises(ArtifactError, match="give the manifest of pretrain or finetune"):
        export_weights(other, vocabulary=trained[1], form="huggingface", folder=tmp_path)


def test_the_vocabulary_of_another_run_is_refused(trained, tmp_path, proto):
    other = tmp_path / "other.model"
    other.write_bytes(add_sentinels(proto, 4))
    with pytest.raises(VocabularyError, match="has 104 ids, the weights were trained with 128"):
        export_weights(trained[0], vocabulary=other, form="huggingface", folder=tmp_path)
