"""Writes the folder: model, tokenizer, lengths of decoding, card, and a signature on demand."""

from pathlib import Path

from t5repro.errors import CheckpointError, SettingsError
from t5repro.files import read_json, sha256_of, write_json, write_text
from t5repro.hub.card import model_card
from t5repro.hub.model_facts import ModelFacts, model_facts
from t5repro.hub.signature import SIGNATURE, sign
from t5repro.publish.new_folder import new_folder
from t5repro.publish.weights import GENERATION_CONFIG, export_weights
from t5repro.vocab.adopted.options import CONFIG as TOKENIZER_CONFIG

CARD = "README.md"


def publish(
    run: Path,
    *,
    folder: Path,
    arm: str = "",
    stage: str = "",
    licence: str | None = None,
    key: Path | None = None,
) -> list[str]:
    """Write a model of a finished run as a folder for the Hub.

    Equal weights, vocabulary and records give equal bytes, except the signature.

    Args:
        run: folder of the run, such as ``results/demo``.
        folder: folder to write; must not exist.
        arm: an experiment with its seed; `baseline`, or the first one, by default.
        stage: ``finetune`` or ``pretrain``; by default the last one that the arm has.
        licence: licence of the weights, by its id on the Hub; the card says if there is none.
        key: private key (`signature.configured_key`) that signs the folder; None signs nothing.

    Returns:
        The names of the files, sorted.

    Raises:
        ArtifactError: the run has no such model.
        CheckpointError: Hugging Face has no such network.
        LineageError: a file differs from its manifest.
        SettingsError: the run has no such arm, or the licence is empty.
        StorageError: the folder exists, or cannot be written.
    """
    if licence is not None and not licence.strip():
        raise SettingsError(
            "--license is empty; name a licence such as apache-2.0, or leave it out"
        )
    with new_folder(folder) as temporary:
        facts = model_facts(run, arm=arm, stage=stage)
        root = facts.run.root
        _check_architecture(facts)
        export_weights(
            root / facts.training.manifest,
            vocabulary=root / facts.vocabulary.path,
            form="huggingface",
            folder=temporary,
        )
        _write_lengths(facts, temporary)
        hashes = {path.name: sha256_of(path) for path in sorted(temporary.iterdir())}
        write_text(temporary / CARD, model_card(facts, hashes, licence))
        if key is not None:
            sign(temporary, key)
    return sorted([*hashes, CARD, *([SIGNATURE] if key else [])])


def _check_architecture(facts: ModelFacts) -> None:
    """Refuse a network that the card does not describe.

    Raises:
        CheckpointError: it is not an encoder-decoder.
    """
    architecture = facts.training.settings["model"]["architecture"]
    if architecture != "encoder_decoder":
        raise CheckpointError(
            f"model.architecture is {architecture!r}; the card describes an encoder-decoder: "
            "t5repro weights export writes the weights of GPT and BERT-style models"
        )


def _write_lengths(facts: ModelFacts, folder: Path) -> None:
    """Add the lengths of the run's evaluation to the files of the export."""
    if facts.lengths:
        for name, key, setting in (
            (GENERATION_CONFIG, "max_new_tokens", "max_decode_length"),
            (TOKENIZER_CONFIG, "model_max_length", "inputs_length"),
        ):
            write_json(folder / name, {**read_json(folder / name), key: facts.lengths[setting]})
