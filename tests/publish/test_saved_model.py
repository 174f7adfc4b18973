"""The SavedModel, in a process that has TensorFlow and tensorflow-text and nothing of ours."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT

from t5repro.config.schema import Settings
from t5repro.config.sections.evaluate import EvaluateSettings, PredictStage
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.vocab import VocabStage
from t5repro.config.stage_settings import stage_settings
from t5repro.errors import ArtifactError, StorageError, VocabularyError
from t5repro.evaluate.predict import predict
from t5repro.jobs.corpus import VocabJob
from t5repro.jobs.predict import PredictJob
from t5repro.publish.saved_model import export_server
from t5repro.vocab.train import make_vocabulary

pytestmark = pytest.mark.keras
REAL_ROWS = ROOT.parent / "shared/data/tasks/glue/SST-2/dev.tsv"
BUNDLED_ROWS = ROOT / "examples/mini/raw/tasks/glue/SST-2/dev.tsv"
MORE_TEXT = ROOT / "examples/mini/raw/tasks/cnn_dailymail/validation.csv"
LONGEST = 64

SERVE = """
import json, sys
import tensorflow as tf
import tensorflow_text
assert not any(name.split(".")[0] == "t5repro" for name in sys.modules)
server = tf.saved_model.load(sys.argv[1])
texts = json.load(sys.stdin)
answers = {}
for name in ("serving_default", "beam"):
    answers[name] = []
    for start in range(0, len(texts), 7):
        inputs = tf.constant(texts[start : start + 7])
        outputs = server.signatures[name](inputs=inputs)["outputs"]
        answers[name] += [text.decode() for text in outputs.numpy()]
json.dump(answers, sys.stdout)
"""


def stage(beam_tasks: tuple[str, ...] = (), **change: Any) -> PredictStage:
    tree = Settings(
        model=ModelSettings(
            d_model=16, d_ff=32, d_kv=8, num_heads=2, num_encoder_layers=2, num_decoder_layers=2
        ),
        evaluate=EvaluateSettings(
            **{"batch_size": 8, "inputs_length": LONGEST, "max_decode_length": 12} | change
        ),
    )
    values = stage_settings(tree, "evaluate_predict")
    values["vocab"] |= {"vocab_size": 300, "extra_ids": 8}
    values["evaluate"]["beam_tasks"] = list(beam_tasks)
    return PredictStage.model_validate(values)


def real_rows() -> list[str]:
    """Return inputs of real task rows, or of the bundled ones where those are absent."""
    path = next((path for path in (REAL_ROWS, BUNDLED_ROWS) if path.is_file()), BUNDLED_ROWS)
    lines = path.read_text(encoding="utf-8").splitlines()[1:61]
    return [f"sst2 sentence: {line.split(chr(9))[0]}" for line in lines]


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write a vocabulary of the rows' text, weights whose answers vary, and the rows."""
    import numpy as np
    from networks import text_network

    from t5repro.model.checkpoints import save_weights, weight_variables

    folder = tmp_path_factory.mktemp("serving")
    rows = [*real_rows(), "", "word " * 200, "Ünïcode – 日本 <extra_id_0> \n tab\t"]
    sample = folder / "sample.txt"
    more = MORE_TEXT.read_text(encoding="utf-8").splitlines()[:200]
    sample.write_text("\n".join([*rows * 3, *more]), encoding="utf-8")
    make_vocabulary(
        VocabJob(
            VocabStage.model_validate(
                {"vocab": {"vocab_size": 300, "extra_ids": 8, "character_coverage": 0.99}}
            ),
            sample=sample,
            model=folder / "vocab.model",
            pieces=folder / "vocab.pieces",
            manifest=folder / "vocab.json",
        )
    )
    settings = stage()
    model = text_network(
        settings.model, embedding_rows=settings.vocab.embedding_rows, dropout_rate=0.0, seed=3
    )
    generator = np.random.default_rng(1)
    for variable in weight_variables(model).values():
        noise = generator.normal(size=variable.shape).astype(np.float32)
        variable.assign(variable.numpy() + 0.4 * noise)
    save_weights(folder / "weights.safetensors", model)
    (folder / "manifest.json").write_text("{}", encoding="utf-8")
    examples = folder / "rows" / "validation.jsonl"
    examples.parent.mkdir()
    examples.write_text(
        "".join(
            json.dumps({"inputs": row, "targets": "a", "idx": number, "answer": 0}) + "\n"
            for number, row in enumerate(rows)
        ),
        encoding="utf-8",
    )
    return {"folder": folder, "vocabulary": folder / "vocab.model", "examples": examples}


def predictions(artifacts: dict[str, Path], out: Path, **change: Any) -> list[str]:
    predict(
        PredictJob(
            stage(**change),
            weights=[artifacts["folder"] / "manifest.json"],
            examples={"rows": artifacts["examples"]},
            vocabulary=artifacts["vocabulary"],
            folder=out,
            manifest=out / "manifest.json",
        )
    )
    lines = (out / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["prediction"] for line in lines]


def export(artifacts: dict[str, Path], folder: Path, **change: Any) -> None:
    export_server(
        stage(**change),
        weights=artifacts["folder"] / "manifest.json",
        vocabulary=artifacts["vocabulary"],
        folder=folder,
    )


def test_a_server_without_this_project_answers_as_the_predictions_do(
    artifacts: dict[str, Path], tmp_path: Path
) -> None:
    export(artifacts, tmp_path / "server")
    lines = artifacts["examples"].read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["inputs"] for line in lines]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
    }
    done = subprocess.run(
        [sys.executable, "-c", SERVE, str(tmp_path / "server")],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = json.loads(done.stdout)
    greedy = predictions(artifacts, tmp_path / "greedy")
    by_beam = predictions(artifacts, tmp_path / "beam", beam_tasks=("rows",))
    assert answers["serving_default"] == greedy
    assert answers["beam"] == by_beam
    assert greedy != by_beam
    assert len(set(greedy)) > 3


def test_a_folder_that_exists_is_left_alone(artifacts: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="exists; name a new folder"):
        export(artifacts, tmp_path)


def test_missing_weights_name_the_stage(artifacts: dict[str, Path], tmp_path: Path) -> None:
    moved = artifacts | {"folder": tmp_path}
    with pytest.raises(ArtifactError, match="run the stage finetune"):
        export(moved, tmp_path / "server")


def test_a_vocabulary_too_large_is_refused(artifacts: dict[str, Path], tmp_path: Path) -> None:
    values = stage().model_dump(mode="json")
    values["vocab"] |= {"vocab_size": 16, "extra_ids": 0}
    with pytest.raises(VocabularyError, match="308 ids, the model only 128 embeddings"):
        export_server(
            PredictStage.model_validate(values),
            weights=artifacts["folder"] / "manifest.json",
            vocabulary=artifacts["vocabulary"],
            folder=tmp_path / "server",
        )
