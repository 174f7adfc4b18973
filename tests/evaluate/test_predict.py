"""Prediction: examples in, predictions out, independent of neighbours and devices."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import SUPPORT

from t5repro.config.schema import Settings
from t5repro.config.sections.evaluate import EvaluateSettings, PredictStage
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.vocab import VocabStage
from t5repro.config.stage_settings import stage_settings
from t5repro.engines.tensorflow_environment import ENVIRONMENT
from t5repro.errors import ArtifactError, VocabularyError
from t5repro.evaluate.predict import predict, read_examples
from t5repro.jobs.corpus import VocabJob
from t5repro.jobs.predict import PredictJob
from t5repro.vocab.special_ids import EOS_ID
from t5repro.vocab.train import make_vocabulary

PROGRAM = SUPPORT / "predict_on_devices.py"


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def example(number: int, words: int) -> dict[str, Any]:
    text = " ".join(f"word{(number * 7 + position) % 50}" for position in range(words))
    return {"inputs": text, "targets": "yes", "idx": number, "answer": 1, "note": "left out"}


def test_an_example_that_lacks_a_key_is_named_by_its_line(tmp_path: Path) -> None:
    row = example(1, 3)
    broken = {name: row[name] for name in ("inputs", "targets", "idx")}
    path = write_rows(tmp_path / "t" / "validation.jsonl", [row, broken])
    with pytest.raises(ArtifactError, match=r"validation\.jsonl line 2 lacks \['answer'\]"):
        read_examples(path, limit=0)


def test_a_task_without_an_example_is_refused(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "t" / "validation.jsonl", [])
    with pytest.raises(ArtifactError, match="contains no example"):
        read_examples(path, limit=0)


def test_a_limit_keeps_the_first_examples(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "t.jsonl", [example(number, 2) for number in range(9)])
    assert [row["idx"] for row in read_examples(path, limit=3)] == [0, 1, 2]
    assert len(read_examples(path, limit=0)) == 9


@pytest.mark.keras
class TestWithAModel:
    """The stage with a small model of random weights."""

    @pytest.fixture(scope="class")
    def inputs(self, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
        """Write a vocabulary, weights and two tasks."""
        from networks import text_network

        from t5repro.model.checkpoints import save_weights

        folder = tmp_path_factory.mktemp("inputs")
        sample = folder / "sample.txt"
        sample.write_text(
            "\n".join(f"word{number} and yes or no word{number + 1}" for number in range(200)),
            encoding="utf-8",
        )
        settings = self.settings()
        make_vocabulary(
            VocabJob(
                VocabStage.model_validate(
                    {"vocab": {"vocab_size": 56, "extra_ids": 8, "character_coverage": 1.0}}
                ),
                sample=sample,
                model=folder / "vocab.model",
                pieces=folder / "vocab.pieces",
                manifest=folder / "vocab.json",
            )
        )
        model = text_network(
            settings.model, embedding_rows=settings.vocab.embedding_rows, dropout_rate=0.1, seed=3
        )
        save_weights(folder / "weights.safetensors", model)
        (folder / "manifest.json").write_text("{}", encoding="utf-8")
        return {
            "weights": folder / "manifest.json",
            "vocabulary": folder / "vocab.model",
            "one": write_rows(
                folder / "one" / "validation.jsonl",
                [example(number, 1 + number * 5 % 17) for number in range(11)],
            ),
            "two": write_rows(
                folder / "two" / "validation.jsonl", [example(number, 40) for number in range(3)]
            ),
        }

    @staticmethod
    def settings(**change: Any) -> PredictStage:
        """Return the stage's settings for a model of two narrow layers."""
        tree = Settings(
            model=ModelSettings(
                d_model=16, d_ff=32, d_kv=8, num_heads=2, num_encoder_layers=1, num_decoder_layers=1
            ),
            evaluate=EvaluateSettings(
                **{"batch_size": 4, "inputs_length": 64, "max_decode_length": 6} | change
            ),
        )
        values = stage_settings(tree, "evaluate_predict")
        values["vocab"] |= {"vocab_size": 56, "extra_ids": 8}
        return PredictStage.model_validate(values)

    @staticmethod
    def run(settings: PredictStage, inputs: dict[str, Path], folder: Path) -> Any:
        """Predict both tasks into a folder; return the manifest's counts."""
        predict(
            PredictJob(
                settings,
                weights=[inputs["weights"]],
                examples={"one": inputs["one"], "two": inputs["two"]},
                vocabulary=inputs["vocabulary"],
                folder=folder,
                manifest=folder / "manifest.json",
            )
        )
        return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["counters"]

    def test_predictions_are_in_the_order_of_the_file(
        self, inputs: dict[str, Path], tmp_path: Path
    ) -> None:
        counters = self.run(self.settings(), inputs, tmp_path)
        rows = rows_of(tmp_path / "one.jsonl")
        assert [row["idx"] for row in rows] == list(range(11))
        assert set(rows[0]) == {"idx", "inputs", "targets", "answer", "prediction"}
        assert counters["tasks"]["one"]["examples"] == 11
        assert counters["tasks"]["two"]["truncated_inputs"] == 3
        assert 0 <= counters["tasks"]["one"]["answers_without_eos"] <= 11

    def test_predictions_do_not_depend_on_neighbours_or_batch(
        self, inputs: dict[str, Path], tmp_path: Path
    ) -> None:
        self.run(self.settings(batch_size=4), inputs, tmp_path / "four")
        self.run(self.settings(batch_size=7), inputs, tmp_path / "seven")
        for name in ("one.jsonl", "two.jsonl"):
            assert (tmp_path / "four" / name).read_bytes() == (
                tmp_path / "seven" / name
            ).read_bytes()

    @pytest.mark.parametrize(
        ("replicas", "rows"), [(2, 3), pytest.param(8, 1, marks=pytest.mark.slow)]
    )
    def test_devices_that_share_each_batch_write_the_bytes_of_one(
        self, inputs: dict[str, Path], tmp_path: Path, replicas: int, rows: int
    ) -> None:
        values = self.settings(batch_size=5).model_dump(mode="json")
        values["evaluate"]["beam_tasks"] = ["two"]
        settings = PredictStage.model_validate(values)
        examples = {"one": inputs["one"], "two": inputs["two"]}
        predict(
            PredictJob(
                settings,
                weights=[inputs["weights"]],
                examples=examples,
                vocabulary=inputs["vocabulary"],
                folder=tmp_path / "alone",
                manifest=tmp_path / "alone" / "manifest.json",
            )
        )
        paths = [inputs["weights"], inputs["vocabulary"], tmp_path / "shared", *examples.values()]
        arguments = [str(replicas), settings.model_dump_json(), *map(str, paths)]
        done = subprocess.run(
            [sys.executable, str(PROGRAM), *arguments],
            env={name: value for name, value in os.environ.items() if name not in ENVIRONMENT},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        for name in ("one.jsonl", "two.jsonl"):
            assert (tmp_path / "shared" / name).read_bytes() == (
                tmp_path / "alone" / name
            ).read_bytes()
        program_rows = json.loads(done.stdout)
        assert set(program_rows) == {rows}
        assert len(program_rows) % replicas == 0

    def test_predictions_are_those_of_each_example_on_its_own(
        self, inputs: dict[str, Path], tmp_path: Path
    ) -> None:
        from networks import text_network

        from t5repro.model.checkpoints import load_weights
        from t5repro.model.decode import greedy
        from t5repro.vocab.vocabulary import Vocabulary

        settings = self.settings()
        self.run(settings, inputs, tmp_path)
        model = text_network(
            settings.model, embedding_rows=settings.vocab.embedding_rows, dropout_rate=0.0, seed=9
        )
        load_weights(inputs["weights"].with_name("weights.safetensors"), model)
        vocabulary = Vocabulary.load(inputs["vocabulary"])
        for row in rows_of(tmp_path / "one.jsonl")[:3]:
            ids = np.asarray([[*vocabulary.encode(row["inputs"]), EOS_ID]], np.int32)
            alone = greedy(model, ids[:, :64], max_decode_length=6)
            assert vocabulary.decode(alone[0].tolist()) == row["prediction"]

    @pytest.mark.parametrize(
        "change",
        [
            {"architecture": "language_model"},
            {"architecture": "prefix_language_model", "target_marker": "target_word"},
            {"architecture": "shared_encoder_decoder"},
        ],
    )
    def test_every_architecture_predicts(
        self, inputs: dict[str, Path], tmp_path: Path, change: dict[str, str]
    ) -> None:
        from networks import text_network

        from t5repro.model.checkpoints import save_weights
        from t5repro.model.decode import greedy
        from t5repro.vocab.vocabulary import Vocabulary

        values = self.settings().model_dump(mode="json")
        values["model"] |= change
        settings = PredictStage.model_validate(values)
        model = text_network(
            settings.model, embedding_rows=settings.vocab.embedding_rows, dropout_rate=0.0, seed=5
        )
        save_weights(tmp_path / "weights.safetensors", model)
        self.run(settings, inputs | {"weights": tmp_path / "manifest.json"}, tmp_path / "out")
        vocabulary = Vocabulary.load(inputs["vocabulary"])
        word = change.get("target_marker") == "target_word"
        end = vocabulary.encode("target:") if word else [EOS_ID]
        for row in rows_of(tmp_path / "out" / "one.jsonl")[:3]:
            ids = [*vocabulary.encode(row["inputs"])[: 64 - len(end)], *end]
            alone = greedy(model, np.asarray([ids], np.int32), max_decode_length=6)
            assert vocabulary.decode(alone[0].tolist()) == row["prediction"]

    def test_missing_weights_name_the_stage_that_writes_them(
        self, inputs: dict[str, Path], tmp_path: Path
    ) -> None:
        with pytest.raises(ArtifactError, match=r"weights\.safetensors is missing; run the stage"):
            self.run(self.settings(), inputs | {"weights": tmp_path / "manifest.json"}, tmp_path)

    def test_a_vocabulary_larger_than_the_model_is_refused(
        self, inputs: dict[str, Path], tmp_path: Path
    ) -> None:
        values = self.settings().model_dump(mode="json")
        values["vocab"] |= {"vocab_size": 16, "extra_ids": 0}
        small = PredictStage.model_validate(values)
        object.__setattr__(small.vocab, "extra_ids", -100)  # 0 rows after rounding up
        with pytest.raises(VocabularyError, match=r"64 ids, the model only 0 embeddings"):
            self.run(small, inputs, tmp_path)

    def test_an_ensemble_of_one_equals_its_member_byte_for_byte_and_of_two_does_not(
        self, inputs: dict[str, Path], tmp_path: Path
    ) -> None:
        from networks import text_network

        from t5repro.model.checkpoints import save_weights

        settings = self.settings()
        second_model = text_network(
            settings.model, embedding_rows=settings.vocab.embedding_rows, dropout_rate=0.0, seed=8
        )
        (tmp_path / "other").mkdir()
        save_weights(tmp_path / "other" / "weights.safetensors", second_model)
        self.run(settings, inputs, tmp_path / "alone")
        values = settings.model_dump(mode="json")
        values["evaluate"]["ensemble"] = ["member"]
        answers = {}
        second = tmp_path / "other" / "manifest.json"
        for name, weights in (("one", [inputs["weights"]]), ("two", [inputs["weights"], second])):
            predict(
                PredictJob(
                    PredictStage.model_validate(values),
                    weights=weights,
                    examples={"one": inputs["one"], "two": inputs["two"]},
                    vocabulary=inputs["vocabulary"],
                    folder=tmp_path / name,
                    manifest=tmp_path / name / "manifest.json",
                )
            )
            answers[name] = (tmp_path / name / "one.jsonl").read_bytes()
        assert answers["one"] == (tmp_path / "alone" / "one.jsonl").read_bytes()
        assert answers["two"] != answers["one"]
        record = json.loads((tmp_path / "two" / "manifest.json").read_text(encoding="utf-8"))
        assert sum("weights.safetensors" in item["path"] for item in record["inputs"]) == 2

    def test_kept_checkpoints_predict_with_their_own_weights(
        self, inputs: dict[str, Path], tmp_path: Path
    ) -> None:
        from networks import text_network

        from t5repro.model.checkpoints import save_weights

        settings = self.settings()
        trained = tmp_path / "finetune"
        folders = {8: trained, 3: trained / "step-3", 6: trained / "step-6"}
        alone = {}
        for step, folder in folders.items():
            folder.mkdir(exist_ok=True)
            model = text_network(
                settings.model,
                embedding_rows=settings.vocab.embedding_rows,
                dropout_rate=0.0,
                seed=step,
            )
            save_weights(folder / "weights.safetensors", model)
        for step, folder in folders.items():
            self.run(settings, inputs | {"weights": folder / "manifest.json"}, tmp_path / str(step))
            alone[step] = (tmp_path / str(step) / "one.jsonl").read_bytes()
        stale = tmp_path / "out" / "step-4"
        stale.mkdir(parents=True)
        (stale / "one.jsonl").write_text("{}")
        predict(
            PredictJob(
                settings,
                weights=[trained / "manifest.json"],
                kept_steps=(3, 6, 8),
                examples={"one": inputs["one"], "two": inputs["two"]},
                vocabulary=inputs["vocabulary"],
                folder=tmp_path / "out",
                manifest=tmp_path / "out" / "manifest.json",
            )
        )
        assert (tmp_path / "out" / "one.jsonl").read_bytes() == alone[8]
        assert (tmp_path / "out" / "step-3" / "one.jsonl").read_bytes() == alone[3]
        assert (tmp_path / "out" / "step-6" / "one.jsonl").read_bytes() == alone[6]
        assert not (stale / "one.jsonl").exists()
        assert len(set(alone.values())) == 3

    def test_a_network_with_adapters_predicts_with_them(
        self, inputs: dict[str, Path], tmp_path: Path
    ) -> None:
        from networks import text_network

        from t5repro.errors import CheckpointError
        from t5repro.model.checkpoints import save_weights

        settings = self.settings()
        model = text_network(
            settings.model,
            embedding_rows=settings.vocab.embedding_rows,
            dropout_rate=0.0,
            seed=5,
            adapter_width=4,
        )
        save_weights(tmp_path / "weights.safetensors", model)
        artifacts = inputs | {"weights": tmp_path / "manifest.json"}
        with pytest.raises(CheckpointError, match="adapter"):
            self.run(settings, artifacts, tmp_path / "without")
        values = settings.model_dump(mode="json")
        values["finetune"] = {"method": "adapters", "adapter_width": 4}
        counters = self.run(PredictStage.model_validate(values), artifacts, tmp_path / "with")
        assert counters["tasks"]["one"]["examples"] == 11
