import json

import numpy as np
import pytest
import traced_steps

keras = pytest.importorskip("keras")
from t5repro.config.sections.finetune import FinetuneStage  # noqa: E402
from t5repro.config.sections.pretrain import PretrainStage  # noqa: E402
from t5repro.config.sections.vocab import VocabStage  # noqa: E402
from t5repro.errors import ArtifactError, CorpusError, SettingsError, VocabularyError  # noqa: E402
from t5repro.jobs.corpus import VocabJob  # noqa: E402
from t5repro.jobs.finetune import FinetuneJob  # noqa: E402
from t5repro.jobs.pretrain import PretrainJob  # noqa: E402
from t5repro.train import callback, loop  # noqa: E402
from t5repro.train import finetune as finetune_module  # noqa: E402
from t5repro.train import pretrain as pretrain_module  # noqa: E402
from t5repro.vocab.train import make_vocabulary  # noqa: E402

pytestmark = pytest.mark.keras

LINES = (
    "the mill turns by the river",
    "a farmer carries his grain",
    "two children watch the wheel",
)
COMMON = {
    "seed": 3,
    "vocab": {"vocab_size": 30, "extra_ids": 70},
    "model": {
        "d_model": 32,
        "d_ff": 64,
        "d_kv": 8,
        "num_heads": 4,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
    },
    "devices": {},
}
TRAINING = {
    "steps": 4,
    "batch_size": 4,
    "inputs_length": 32,
    "targets_length": 24,
    "log_every_steps": 2,
    "checkpoint_every_steps": 100,
}


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    sample = folder / "sample.txt"
    sample.write_text("\n".join(LINES * 20) + "\n")
    make_vocabulary(
        VocabJob(
            VocabStage.model_validate({"vocab": {**COMMON["vocab"], "character_coverage": 1.0}}),
            sample=sample,
            model=folder / "sentencepiece.model",
            pieces=folder / "sentencepiece.vocab",
            manifest=folder / "manifest.json",
        )
    )
    return folder / "sentencepiece.model"


@pytest.fixture
def tokens(tmp_path):
    folder = tmp_path / "tokens"
    folder.mkdir()
    np.random.default_rng(0).integers(3, 30, 4000).astype("<u2").tofile(folder / "train.ids")
    np.arange(0, 4001, 200).astype("<i8").tofile(folder / "train.offsets")
    (folder / "manifest.json").write_text("{}")
    return folder / "manifest.json"


@pytest.fixture
def examples(tmp_path):
    path = tmp_path / "tasks" / "copy" / "train.jsonl"
    path.parent.mkdir(parents=True)
    rows = [{"inputs": f"copy: {line}", "targets": line} for line in LINES]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"copy": path}


@pytest.fixture(autouse=True)
def use_this_process(tiny, monkeypatch):
    for module in (pretrain_module, finetune_module):
        monkeypatch.setattr(module, "prepare", lambda settings: tiny.on_this_process())
    run = loop.run

    def share_steps(job, devices):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "run", run)
            traced_steps.run(job)

    monkeypatch.setattr(loop, "run", share_steps)


def pretrain(tmp_path, tokens, *, name="pretrain", model=None, sentences=None, weights=None, **of):
    """Pre-train in a folder `name`; `of` are settings of the training."""
    model = {**COMMON["model"], **(model or {})}
    settings = PretrainStage.model_validate(
        {**COMMON, "model": model, "pretrain": {**TRAINING, **of}}
    )
    folder = tmp_path / name
    manifest = folder / "manifest.json"
    pretrain_module.pretrain(
        PretrainJob(
            settings,
            tokens=tokens,
            sentences=sentences,
            weights=weights,
            folder=folder,
            work=tmp_path / f"{name}_work",
            manifest=manifest,
        ),
        code={},
    )
    return manifest


def finetune(tmp_path, weights, examples, vocabulary, **change):
    settings = FinetuneStage.model_validate(
        {**COMMON, "tasks": {"names": list(examples)}, "finetune": TRAINING, **change}
    )
    folder = tmp_path / "finetune"
    manifest = folder / "manifest.json"
    finetune_module.finetune(
        FinetuneJob(
            settings,
            weights=weights,
            examples=examples,
            vocabulary=vocabulary,
            folder=folder,
            work=tmp_path / "work",
            manifest=manifest,
        ),
        code={},
    )
    return manifest


def test_pretraining_and_finetuning_follow_each_other(tmp_path, tokens, examples, vocabulary):
    first = pretrain(tmp_path, tokens)
    second = finetune(tmp_path, first, examples, vocabulary)
    before, after = (json.loads(path.read_text()) for path in (first, second))
    assert (before["rule"], after["rule"]) == ("pretrain", "finetune")
    assert [path["path"].rsplit("/", 1)[-1] for path in before["inputs"]] == [
        "manifest.json",
        "train.ids",
        "train.offsets",
    ]
    assert [path["path"].rsplit("/", 1)[-1] for path in after["inputs"]] == [
        "weights.safetensors",
        "optimizer.safetensors",
        "sentencepiece.model",
        "train.jsonl",
    ]
    assert before["counters"]["optimizer_step"] == 4
    assert after["counters"]["optimizer_step"] == 8
    assert before["counters"]["input_tokens"] > 0
    assert after["counters"]["drawn"]["copy"] > 0
    for record in (before, after):
        assert 0 <= record["counters"]["padding_share"] < 1
        assert record["counters"]["target_tokens"] > 0
    assert before["inputs"][1]["sha256"] != before["inputs"][2]["sha256"]


def test_without_steps_pretraining_writes_fresh_weights_for_finetuning(
    tmp_path, tokens, examples, vocabulary
):
    first = pretrain(tmp_path, tokens, steps=0)
    second = finetune(tmp_path, first, examples, vocabulary)
    counters = json.loads(second.read_text())["counters"]
    assert (counters["steps"], counters["optimizer_step"]) == (4, 4)


def test_missing_tokens_are_named(tmp_path, tokens):
    tokens.with_name("train.ids").unlink()
    with pytest.raises(ArtifactError, match=r"train\.ids is missing"):
        pretrain(tmp_path, tokens)


def test_a_vocabulary_of_another_size_is_refused(tmp_path, tokens, examples, vocabulary):
    first = pretrain(tmp_path, tokens, steps=0)
    with pytest.raises(VocabularyError, match="has 100 ids"):
        finetune(tmp_path, first, examples, vocabulary, vocab={"vocab_size": 31, "extra_ids": 70})


MASKED = {"objective": "masked_lm", "validation_every_steps": 2, "targets_length": 8}
BERT = {
    "architecture": "encoder",
    "positions": "learned",
    "norm": "layer",
    "norm_placement": "post",
}
MASKED_STAGE = {**COMMON, "model": {**COMMON["model"], **BERT}, "pretrain": {**TRAINING, **MASKED}}


@pytest.fixture
def sentences(tmp_path, tokens):
    """Sentences of 20 ids in documents of 200; the validation split has the same ids."""
    folder = tmp_path / "sentences"
    folder.mkdir()
    for name in ("ids", "offsets"):
        content = tokens.with_name(f"train.{name}").read_bytes()
        tokens.with_name(f"validation.{name}").write_bytes(content)
    for split in ("train", "validation"):
        np.arange(0, 4000, 20).astype("<i8").tofile(folder / f"{split}.sentences")
    np.ones(100, np.uint8).tofile(folder / "word_starts")
    (folder / "manifest.json").write_text("{}")
    return folder / "manifest.json"


def masked_job(tmp_path, monkeypatch, tokens, sentences):
    """Return the job that pre-training on rows of sentences would run."""
    jobs = []
    monkeypatch.setattr("t5repro.train.loop.run", lambda job, devices: jobs.append(job))
    settings = PretrainStage.model_validate(MASKED_STAGE)
    pretrain_module.pretrain(
        PretrainJob(
            settings,
            tokens=tokens,
            sentences=sentences,
            folder=tmp_path / "pretrain",
            work=tmp_path / "work",
            manifest=tmp_path / "manifest.json",
        ),
        code={},
    )
    return jobs[0]


def test_masked_language_models_read_rows_of_sentences(tmp_path, monkeypatch, tokens, sentences):
    job = masked_job(tmp_path, monkeypatch, tokens, sentences)
    assert [path.name for path in job.inputs] == [
        "manifest.json",
        "train.ids",
        "train.offsets",
        "manifest.json",
        "train.sentences",
        "word_starts",
        "validation.ids",
        "validation.offsets",
        "validation.sentences",
    ]
    assert job.identity == (tokens, sentences)
    features, targets = next(iter(job.batches(0, 1)))
    assert features["encoder_ids"].shape == (4, 32)
    assert features["target_positions"].shape == targets.shape == (4, 8)
    assert job.counters(4)["target_tokens"] > 0


def test_the_held_out_loss_of_masked_language_models_reads_the_validation_split(
    tmp_path, tokens, sentences
):
    training = {**MASKED_STAGE["pretrain"], "unique_tokens": 100}
    settings = PretrainStage.model_validate({**MASKED_STAGE, "pretrain": training})
    folders = tokens.parent, sentences.parent
    batches = list(pretrain_module.held_out_batches(settings, *folders))
    assert len(batches) > 1
    assert "pair_label" in batches[0][0]
    np.array([0, 200]).astype("<i8").tofile(tokens.with_name("validation.offsets"))
    np.full(200, 5).astype("<u2").tofile(tokens.with_name("validation.ids"))
    np.arange(0, 200, 20).astype("<i8").tofile(sentences.with_name("validation.sentences"))
    with pytest.raises(CorpusError, match="one document .* lower c4.validation_modulus"):
        pretrain_module.held_out_batches(settings, *folders)


def test_masked_language_models_without_sentences_are_refused(tmp_path, tokens):
    with pytest.raises(SettingsError, match="--sentences names none; give the manifest"):
        pretrain(tmp_path, tokens, **MASKED)


ENCODER = {
    "architecture": "encoder",
    "positions": "learned",
    "max_positions": 32,
    "token_types": 2,
    "biases": True,
    "norm": "layer",
    "norm_placement": "post",
    "tie_embeddings": True,
}
PHASES = {
    "encoder_decoder": ({}, {}),
    "language_model": ({"architecture": "language_model"}, {"objective": "lm"}),
    "encoder": (
        ENCODER,
        {**MASKED, "optimizer": "adam_bert", "loss_normaliser": "target_tokens", "z_loss": 0},
    ),
}


class PowerCutError(Exception):
    """The power fails."""


@pytest.mark.parametrize("family", PHASES)
def test_a_second_phase_has_longer_rows_and_goes_on_with_weights_slots_and_count(
    tmp_path, tokens, request, monkeypatch, family
):
    model, training = PHASES[family]
    sentences = request.getfixturevalue("sentences") if family == "encoder" else None
    shared = {"model": model, "sentences": sentences, **training}
    # Rows of 16, then of 32 positions of one network.
    first = pretrain(
        tmp_path, tokens, name="first", **{**shared, "inputs_length": 16, "targets_length": 8}
    )
    second = {**shared, "weights": first, "checkpoint_every_steps": 2}
    whole = pretrain(tmp_path, tokens, name="whole", **second)
    record = json.loads(whole.read_text())
    assert [entry["path"] for entry in record["inputs"]][-2:] == [
        str(first.with_name(name)) for name in ("weights.safetensors", "optimizer.safetensors")
    ]
    assert record["counters"]["optimizer_step"] == 8
    show = callback.TrainingCallback._show

    def cut(self, *arguments):
        show(self, *arguments)
        if self._step == 3:
            raise PowerCutError

    with monkeypatch.context() as patch, pytest.raises(PowerCutError):
        patch.setattr(callback.TrainingCallback, "_show", cut)
        pretrain(tmp_path, tokens, name="resumed", **second)
    resumed = pretrain(tmp_path, tokens, name="resumed", **second)
    for name in ("weights.safetensors", "optimizer.safetensors", "history.csv"):
        assert resumed.with_name(name).read_bytes() == whole.with_name(name).read_bytes()


def test_a_fresh_optimizer_of_a_second_phase_counts_from_zero(tmp_path, tokens, capfd):
    first = pretrain(tmp_path, tokens, name="first", optimizer="adam_bert")
    second = pretrain(
        tmp_path, tokens, weights=first, optimizer="adam_bert", optimizer_state="fresh", steps=0
    )
    record = json.loads(second.read_text())
    assert record["counters"]["optimizer_step"] == 0
    assert [entry["path"] for entry in record["inputs"]][-1:] == [
        str(first.with_name("weights.safetensors"))
    ]
    before, after = (path.with_name("weights.safetensors") for path in (first, second))
    assert before.read_bytes() == after.read_bytes()
    assert "optimizer reinitialised" in capfd.readouterr().err
