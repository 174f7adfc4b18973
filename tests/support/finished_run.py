"""A run with two experiments as its stages write it: real weights, vocabulary and predictions."""

import json
from pathlib import Path

from t5repro.config.schema import Settings
from t5repro.config.sections.evaluate import PredictStage
from t5repro.config.sections.vocab import VocabStage
from t5repro.config.stage_settings import stage_settings
from t5repro.files import write_manifest
from t5repro.jobs.corpus import VocabJob
from t5repro.jobs.predict import PredictJob

RUN = Path("results/r")
VOCABULARY = RUN / "vocab/baseline/sentencepiece.model"
WORDS = [f"word{number} and yes or no word{number + 1}" for number in range(200)]
TEXTS = [" ".join(WORDS[start : start + 1 + start % 9]) for start in range(0, 33, 3)]


def settings(beam_tasks: tuple[str, ...], engine: str = "tensorflow") -> PredictStage:
    tree = stage_settings(Settings(), "evaluate_predict")
    tree["devices"] |= {"engine": engine}
    tree["model"] |= {"d_model": 16, "d_ff": 32, "d_kv": 8, "num_heads": 2}
    tree["model"] |= {"num_encoder_layers": 2, "num_decoder_layers": 2}
    tree["vocab"] |= {"vocab_size": 120, "extra_ids": 8}
    tree["evaluate"] |= {
        "batch_size": 4,
        "inputs_length": 64,
        "max_decode_length": 12,
        "beam_tasks": list(beam_tasks),
    }
    return PredictStage.model_validate(tree)


def write_vocabulary(folder: Path, *, vocab_size: int = 120) -> None:
    """Train the vocabulary of the run on a sample in a folder."""
    from t5repro.vocab.train import make_vocabulary

    sample = folder / "sample.txt"
    sample.write_text("\n".join(WORDS), encoding="utf-8")
    vocab = VocabStage.model_validate(
        {"vocab": {"vocab_size": vocab_size, "extra_ids": 8, "character_coverage": 1.0}}
    )
    make_vocabulary(
        VocabJob(
            vocab,
            sample=sample,
            model=VOCABULARY,
            pieces=VOCABULARY.with_suffix(".pieces"),
            manifest=VOCABULARY.with_name("manifest.json"),
        )
    )


def write_run(folder: Path, engine: str = "tensorflow") -> None:
    """Write the outputs of all stages of a run with two experiments, in the current folder."""
    from networks import text_network

    from t5repro.evaluate.predict import predict
    from t5repro.model.checkpoints import save_weights

    write_vocabulary(folder)
    rows = [
        {"inputs": text, "targets": "yes", "idx": number, "answer": 1}
        for number, text in enumerate(TEXTS)
    ]
    examples = RUN / "tasks/one/validation.jsonl"
    examples.parent.mkdir(parents=True)
    examples.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for seed, (name, beam_tasks) in enumerate({"other": ("one",), "baseline": ()}.items()):
        stage = settings(beam_tasks, engine)
        model = text_network(
            stage.model, embedding_rows=stage.vocab.embedding_rows, dropout_rate=0.0, seed=seed
        )
        trained = RUN / "finetune" / name
        save_weights(trained / "weights.safetensors", model)
        write_manifest(
            trained / "manifest.json",
            rule="finetune",
            settings={"model": stage.model.model_dump(), "vocab": stage.vocab.model_dump()},
            inputs=[VOCABULARY],
            outputs=[trained / "weights.safetensors"],
            counters={},
        )
        predict(
            PredictJob(
                stage,
                weights=[trained / "manifest.json"],
                examples={"one": examples},
                vocabulary=VOCABULARY,
                folder=RUN / "evaluate_predict" / name,
                manifest=RUN / "evaluate_predict" / name / "manifest.json",
            )
        )
