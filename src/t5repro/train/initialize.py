"""Weights in and out of other libraries, and published checkpoints as the start of a run.

What the files of each library look like is in `model/convert.py`; here they meet the vocabulary,
the optimizer and the settings of a run.
"""

from pathlib import Path
from typing import Any

import yaml

from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import ArtifactError, SettingsError, VocabularyError
from t5repro.files import read_json, write_bytes, write_manifest, write_text
from t5repro.vocab.special_ids import add_sentinels
from t5repro.vocab.vocabulary import Vocabulary

SETTINGS = "settings.yaml"


def load_start(folder: Path, model: Any, optimizer: Any) -> str:
    """Set a model to a published checkpoint, and the optimizer if the checkpoint has its state.

    Args:
        folder: files of any library that `model/convert.py` reads.
        model: the network of the run.
        optimizer: Adafactor, built; without a state in the checkpoint it begins anew.

    Returns:
        What was found, for the log.

    Raises:
        ArtifactError: the folder holds no weights that can be read.
        CheckpointError: the weights are of another network than the settings describe.
    """
    from t5repro.model.checkpoints import assign, optimizer_variables, weight_variables
    from t5repro.model.convert import fit, read_published

    found = read_published(folder)
    weights = fit(found, model.settings, embedding_rows=model.embedding_rows, where=folder)
    assign(folder, weights, weight_variables(model), "the model")
    if not found.optimizer:
        return f"starting from {found.form} weights of {folder}, optimizer begun anew"
    slots = optimizer_variables(optimizer)
    known = {name: value for name, value in found.optimizer.items() if name != "learning_rate"}
    slots.pop("learning_rate", None)
    assign(folder, known, slots, "the optimizer")
    return f"starting from {found.form} weights of {folder} at step {int(known['iteration'])}"


def import_weights(source: Path, folder: Path) -> None:
    """Write published weights as this project's: arrays, vocabulary, and lines for a run file.

    Raises:
        ArtifactError: the folder holds no weights that can be read.
        CheckpointError: the weights are not those of a T5 encoder-decoder.
    """
    from t5repro.model.checkpoints import write_arrays
    from t5repro.model.convert import OPTIMIZER, VOCABULARY, WEIGHTS, read_published

    found = read_published(source)
    outputs = [folder / WEIGHTS, folder / SETTINGS]
    write_arrays(outputs[0], found.weights)
    settings: dict[str, Any] = {"model": found.model.model_dump(mode="json")}
    if found.vocabulary is not None:
        pieces, sentinels = pieces_of(found.vocabulary, folder / VOCABULARY)
        settings["vocab"] = {"vocab_size": pieces, "extra_ids": sentinels}
        outputs.append(folder / VOCABULARY)
    if found.optimizer:
        write_arrays(folder / OPTIMIZER, found.optimizer)
        outputs.append(folder / OPTIMIZER)
    write_text(outputs[1], yaml.safe_dump(settings, sort_keys=True))
    write_manifest(
        folder / "manifest.json",
        rule="import_weights",
        settings=settings,
        inputs=[],
        outputs=outputs,
        counters={"form": found.form, "embedding_rows": found.embedding_rows},
    )


def pieces_of(proto: bytes, path: Path, extra_ids: int = 100) -> tuple[int, int]:
    """Write a vocabulary with sentinels, which most owners leave out; return pieces, sentinels.

    Args:
        proto: SentencePiece model, serialised.
        path: where to write it.
        extra_ids: sentinels to append where there are none.
    """
    write_bytes(path, proto)
    vocabulary = Vocabulary.load(path)
    if not vocabulary.extra_ids and extra_ids:
        write_bytes(path, add_sentinels(proto, extra_ids))
        vocabulary = Vocabulary.load(path)
    return vocabulary.total_ids - vocabulary.extra_ids, vocabulary.extra_ids


def export_weights(manifest: Path, *, vocabulary: Path, form: str, folder: Path) -> None:
    """Write the weights of a training for another library.

    Args:
        manifest: that of `pretrain` or `finetune`; the weights lie beside it.
        vocabulary: SentencePiece model of the run.
        form: a key of `model.convert.WRITERS`.
        folder: where the files go.

    Raises:
        ArtifactError: the weights are missing, or the manifest is of another rule.
        CheckpointError: the library cannot have this shape.
        SettingsError: the form is unknown.
        VocabularyError: the vocabulary is not the one that the weights were trained with.
    """
    from t5repro.model.checkpoints import read_arrays
    from t5repro.model.convert import WEIGHTS, WRITERS, Pieces

    if form not in WRITERS:
        raise SettingsError(f"unknown form {form!r}; allowed are {sorted(WRITERS)}")
    settings = read_json(manifest).get("settings", {})
    if "model" not in settings or "vocab" not in settings:
        raise ArtifactError(
            f"{manifest} names no model and vocab settings; give the manifest of pretrain or "
            "finetune"
        )
    model = ModelSettings.model_validate(settings["model"])
    vocab = VocabSettings.model_validate(settings["vocab"])
    words = Vocabulary.load(vocabulary)
    if words.total_ids != vocab.total_ids:
        raise VocabularyError(
            f"{vocabulary} has {words.total_ids} ids, the weights were trained with "
            f"{vocab.total_ids}; give the vocabulary of the same run"
        )
    proto = vocabulary.read_bytes()
    suffix = add_sentinels(b"", words.extra_ids)
    bare = proto.removesuffix(suffix) if proto.endswith(suffix) else proto
    WRITERS[form](
        folder,
        model,
        read_arrays(manifest.parent / WEIGHTS),
        Pieces(with_sentinels=proto, without_sentinels=bare, sentinels=words.extra_ids),
    )
