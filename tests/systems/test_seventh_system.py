"""A system is a folder of parts and a row in each table: this one is added by the test."""

import json
from pathlib import Path
from typing import Any

import pytest

from t5repro.config import families
from t5repro.config.flops import step_flops
from t5repro.config.load import load_settings
from t5repro.config.schema import Settings
from t5repro.config.sections.evaluate import PredictStage
from t5repro.config.sections.finetune import FinetuneStage
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.config.sections.vocab import VocabStage
from t5repro.config.stage_settings import stage_settings
from t5repro.engines.devices import Devices
from t5repro.files import read_json_lines
from t5repro.jobs.corpus import VocabJob
from t5repro.jobs.finetune import FinetuneJob
from t5repro.jobs.predict import PredictJob
from t5repro.jobs.pretrain import PretrainJob
from t5repro.vocab.train import make_vocabulary

pytestmark = pytest.mark.keras

VOCAB = {"vocab_size": 40, "extra_ids": 8}
SHAPE = {"architecture": "bag_of_words", "d_model": 16}
TRAINING = {
    "batch_size": 8,
    "inputs_length": 16,
    "targets_length": 8,
    "log_every_steps": 10,
    "loss_normaliser": "target_tokens",
    "learning_rate": {"schedule": "constant", "factor": 0.1},
}
COMMON = {"seed": 1, "vocab": VOCAB, "model": SHAPE, "devices": {}}
TASK = "glue_cola"


@pytest.fixture
def seventh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the rows of the toy to the tables, and train on the CPU of this process."""
    from bag_of_words import parts

    from t5repro.systems import answering, finetuning, networks, pretraining
    from t5repro.train import finetune, pretrain

    rows: list[tuple[Any, Any]] = [
        (families.ARCHITECTURES, parts.FAMILY),
        (networks.NETWORKS, parts.make_network),
        (pretraining.PRETRAININGS, parts.PRETRAINING),
        (finetuning.FINETUNINGS, parts.FINETUNING),
        (answering.ANSWERINGS, parts.ANSWERING),
    ]
    for table, row in rows:
        monkeypatch.setitem(table, "bag_of_words", row)
    for module in (pretrain, finetune):
        monkeypatch.setattr(module, "prepare", lambda settings: Devices("cpu", ("CPU:0",)))


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary")
    lines = (f"word{number} and the good mill or the bad river" for number in range(200))
    (folder / "sample.txt").write_text("\n".join(lines), encoding="utf-8")
    make_vocabulary(
        VocabJob(
            VocabStage.model_validate({"vocab": {**VOCAB, "character_coverage": 1.0}}),
            sample=folder / "sample.txt",
            model=folder / "vocab.model",
            pieces=folder / "vocab.pieces",
            manifest=folder / "vocab.json",
        )
    )
    return folder / "vocab.model"


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """Rows whose label is the word in the middle."""
    path = tmp_path / TASK / "examples.jsonl"
    path.parent.mkdir()
    rows = [
        {
            "inputs": "x",
            "targets": ("no", "yes")[number % 2],
            "idx": number,
            "answer": number % 2,
            "segments": [f"the {('bad', 'good')[number % 2]} {('mill', 'river')[number // 2 % 2]}"],
        }
        for number in range(16)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def trained(seventh: None, tmp_path: Path, vocabulary: Path, examples: Path) -> Path:
    """Pre-train without steps and fine-tune 30; return the manifest."""
    from t5repro.train import finetune, pretrain

    def arguments(rule: str) -> dict[str, Any]:
        folder = tmp_path / rule
        return {"folder": folder, "work": tmp_path / "work", "manifest": folder / "manifest.json"}

    settings = {**COMMON, "pretrain": {**TRAINING, "steps": 0}}
    pretrain.pretrain(
        PretrainJob(PretrainStage.model_validate(settings), **arguments("pretrain")), code={}
    )
    tuning = {**TRAINING, "steps": 30, "optimizer_state": "fresh"}
    finetune.finetune(
        FinetuneJob(
            FinetuneStage.model_validate(
                {**COMMON, "finetune": tuning, "tasks": {"names": [TASK]}}
            ),
            weights=tmp_path / "pretrain" / "manifest.json",
            examples={TASK: examples},
            vocabulary=vocabulary,
            **arguments("finetune"),
        ),
        code={},
    )
    return tmp_path / "finetune" / "manifest.json"


def test_a_seventh_system_trains_and_answers(
    trained: Path, tmp_path: Path, vocabulary: Path, examples: Path
) -> None:
    from t5repro.evaluate.predict import predict

    history = trained.with_name("history.csv").read_text(encoding="utf-8").splitlines()[1:]
    losses = [float(row.split(",")[1]) for row in history]
    assert losses[0] > 2 * losses[-1]
    tree = stage_settings(Settings(), "evaluate_predict")
    tree |= {"model": ModelSettings(**SHAPE).model_dump(mode="json")}
    tree["vocab"] |= VOCAB
    tree["evaluate"] |= {"batch_size": 4, "inputs_length": 16}
    predict(
        PredictJob(
            PredictStage.model_validate(tree),
            weights=[trained],
            examples={TASK: examples},
            vocabulary=vocabulary,
            folder=tmp_path / "predictions",
            manifest=tmp_path / "predictions" / "manifest.json",
        )
    )
    rows = list(read_json_lines(tmp_path / "predictions" / f"{TASK}.jsonl"))
    assert [row["prediction"] for row in rows] == [row["targets"] for row in rows]


def test_a_run_file_names_the_seventh_system_and_its_steps_are_counted(seventh: None) -> None:
    changes = {
        "model.architecture": "bag_of_words",
        "finetune.loss_normaliser": "target_tokens",
        "pretrain.loss_normaliser": "target_tokens",
        "finetune.optimizer_state": "fresh",
        "tasks.names": [TASK],
        "tasks.segments": True,
        "vocab.extra_ids": 92,
    }
    settings = load_settings(changes)
    # It has no blocks and no logits of ids.
    assert settings.model.heights == {}
    arguments = {"embedding_rows": 128, "texts": 1}
    assert step_flops(settings.model, settings.finetune, **arguments) == 0


def test_an_architecture_without_a_row_is_refused_with_those_of_the_table() -> None:
    with pytest.raises(ValueError, match="'generator_detector' or 'two_stream'"):
        ModelSettings(architecture="bag_of_words")
