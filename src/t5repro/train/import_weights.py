"""Writes published weights in this project's form, with a vocabulary and lines for a run file."""

from pathlib import Path
from typing import Any

import yaml

from t5repro.artifacts import MANIFEST, OPTIMIZER, VOCABULARY, WEIGHTS
from t5repro.files import write_bytes, write_manifest, write_text
from t5repro.model.checkpoints import write_arrays
from t5repro.model.foreign_weights import read_foreign
from t5repro.vocab.special_ids import add_sentinels
from t5repro.vocab.vocabulary import Vocabulary

SETTINGS = "settings.yaml"
SENTINELS = 100  # of T5, for a vocabulary without any


def import_weights(source: Path, folder: Path) -> None:
    """Write published weights in this project's form.

    Args:
        source: folder of any library that `model/foreign_weights.py` reads.
        folder: receives arrays, vocabulary, settings and manifest.

    Raises:
        ArtifactError: the source contains no readable weights.
        CheckpointError: the weights do not belong to a T5 encoder-decoder.
    """
    foreign = read_foreign(source)
    outputs = [folder / WEIGHTS, folder / SETTINGS]
    write_arrays(outputs[0], foreign.weights)
    settings: dict[str, Any] = {"model": foreign.model.model_dump(mode="json")}
    if foreign.vocabulary is not None:
        pieces, sentinels = write_vocabulary(
            folder / VOCABULARY, foreign.vocabulary, rows=foreign.embedding_rows
        )
        settings["vocab"] = {"vocab_size": pieces, "extra_ids": sentinels}
        outputs.append(folder / VOCABULARY)
    if foreign.optimizer:
        write_arrays(folder / OPTIMIZER, foreign.optimizer)
        outputs.append(folder / OPTIMIZER)
    write_text(outputs[1], yaml.safe_dump(settings, sort_keys=True))
    write_manifest(
        folder / MANIFEST,
        rule="import_weights",
        settings=settings,
        inputs=[],
        outputs=outputs,
        counters={"form": foreign.form, "embedding_rows": foreign.embedding_rows},
    )


def write_vocabulary(path: Path, proto: bytes, *, rows: int) -> tuple[int, int]:
    """Write a vocabulary, with sentinels appended if it has none; return pieces and sentinels.

    Args:
        path: file to write.
        proto: SentencePiece model, serialised; most publishers leave out the sentinels.
        rows: rows of the embedding; a small model has fewer sentinels than T5.
    """
    write_bytes(path, proto)
    vocabulary = Vocabulary.load(path)
    sentinels = min(SENTINELS, rows - vocabulary.total_ids)
    if not vocabulary.extra_ids and sentinels > 0:
        write_bytes(path, add_sentinels(proto, sentinels))
        vocabulary = Vocabulary.load(path)
    return vocabulary.total_ids - vocabulary.extra_ids, vocabulary.extra_ids
