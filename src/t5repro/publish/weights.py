"""Writes the weights of a training for other libraries: Hugging Face here, keras-hub beside it.

To support another library, add its names to `model/weight_names.py`, a function to `WRITERS` and a
test in which the library reads the files.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import save

from t5repro.artifacts import WEIGHTS
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import ArtifactError, CheckpointError, SettingsError
from t5repro.files import read_json, write_bytes, write_json
from t5repro.lineage.leftovers import remove_leftovers
from t5repro.model.checkpoints import read_arrays, read_labels
from t5repro.model.encoder_heads import LABEL_HEAD, PAIR_HEAD
from t5repro.model.encoder_names import GENERATOR
from t5repro.model.foreign_weights import FACE_CONFIG, FACE_WEIGHTS
from t5repro.model.huggingface_config import gpt_config, t5_config
from t5repro.model.huggingface_electra import split_networks
from t5repro.model.huggingface_encoders import PAIR_CLASSES, encoder_config, stored_arrays
from t5repro.model.trained_as import UNKNOWN, TrainedAs
from t5repro.model.two_stream_names import stored_two_stream_arrays, two_stream_config
from t5repro.model.weight_names import to_huggingface, weight_names
from t5repro.progress import announce
from t5repro.publish.keras_hub import write_keras_hub
from t5repro.publish.tokenizer_files import CLS, TokenizerFiles, vocabulary_files
from t5repro.vocab.special_ids import EOS_ID, PAD_ID
from t5repro.vocab.special_pieces import special_id

GENERATION_CONFIG = "generation_config.json"


def write_huggingface(
    folder: Path,
    model: ModelSettings,
    weights: Mapping[str, np.ndarray],
    vocabulary: TokenizerFiles,
    trained: TrainedAs = UNKNOWN,
) -> list[Path]:
    """Write a folder that ``T5ForConditionalGeneration.from_pretrained`` reads.

    With position biases per layer it is a folder for ``UMT5ForConditionalGeneration``; a GPT is one
    for ``OpenAIGPTLMHeadModel``; its rows begin with the id 0. An encoder only is one for BERT,
    RoBERTa or ALBERT: ``ForPreTraining``, ``ForMaskedLM``, ``ForSequenceClassification``,
    ``ForMultipleChoice``, ``ForQuestionAnswering`` or ``ForTokenClassification``, depending on its
    heads. ELECTRA's detector is one for ``ElectraForPreTraining``; the folder ``generator`` in it
    is one for ``ElectraForMaskedLM``. An XLNet is one for ``XLNetLMHeadModel`` or
    ``XLNetForSequenceClassification``.

    ``T5Tokenizer.from_pretrained`` reads its vocabulary; sentinels are its own extra ids. With an
    encoder only it is ``BigBirdTokenizer``, which writes rows as BERT does. An adopted vocabulary
    is read by the class of its family.

    Args:
        folder: receives the files.
        model: shape of the network.
        weights: arrays by path in our model.
        vocabulary: of the run.
        trained: dropout and names of labels for the configuration.

    Returns:
        The files.
    """
    export = EXPORTS[model.family.name](
        model, vocabulary.in_foreign_order(weights), vocabulary, trained
    )
    # Without this entry of its metadata transformers refuses the file.
    named = {"pad_token_id": PAD_ID, "eos_token_id": EOS_ID, **export.ids}
    ids = {name: vocabulary.foreign_id(number) for name, number in named.items()}
    special_ids = {name: number for name, number in ids.items() if number is not None}
    documents = {GENERATION_CONFIG: special_ids, **vocabulary.documents(model)}
    for inner, network in {"": export, **export.inner}.items():
        data = save(dict(sorted(network.arrays.items())), metadata={"format": "pt"})
        documents |= {inner + FACE_WEIGHTS: data, inner + FACE_CONFIG: network.config | special_ids}
    for name, content in documents.items():
        if isinstance(content, bytes):
            write_bytes(folder / name, content)
        else:
            write_json(folder / name, content)
    return [folder / name for name in documents]


class Export(NamedTuple):
    """The content of a folder for Hugging Face, without the ids that all networks have.

    Attributes:
        arrays: weights by their names there.
        config: of the network.
        ids: ours of special tokens.
        inner: further networks by the folder in this one.
    """

    arrays: Mapping[str, np.ndarray]
    config: dict[str, Any]
    ids: dict[str, int]
    inner: Mapping[str, "Export"] = MappingProxyType({})


def _t5(
    model: ModelSettings,
    weights: Mapping[str, np.ndarray],
    vocabulary: TokenizerFiles,
    trained: TrainedAs,
) -> Export:
    arrays = to_huggingface(weights, model)
    rows = int(weights["embedding"].shape[0])
    config = t5_config(model, embedding_rows=rows, dropout_rate=trained.dropout_rate)
    ids = {"decoder_start_token_id": PAD_ID}
    return Export(arrays, config, ids)


def _gpt(
    model: ModelSettings,
    weights: Mapping[str, np.ndarray],
    vocabulary: TokenizerFiles,
    trained: TrainedAs,
) -> Export:
    if any(name.startswith(LABEL_HEAD) for name in weights):
        raise CheckpointError(
            "the weights have a linear layer for labels (finetune.answers: labels), which "
            "OpenAIGPTLMHeadModel lacks; give those of pretrain, or fine-tune with "
            "finetune.answers: text"
        )
    arrays = to_huggingface(weights, model)
    rows = int(weights["embedding"].shape[0])
    config = gpt_config(model, embedding_rows=rows, dropout_rate=trained.dropout_rate)
    ids = {"bos_token_id": PAD_ID}  # the first id of each row
    return Export(arrays, config, ids)


def _encoder(
    model: ModelSettings,
    weights: Mapping[str, np.ndarray],
    vocabulary: TokenizerFiles,
    trained: TrainedAs,
) -> Export:
    arrays = to_huggingface(weights, model)
    padding = vocabulary.foreign_id(PAD_ID)
    config = encoder_config(model, weights, padding=padding or 0, trained=trained)
    arrays = stored_arrays(arrays, config)
    return Export(arrays, config, {"bos_token_id": special_id(CLS, vocabulary.total_ids)})


def _electra(
    model: ModelSettings,
    weights: Mapping[str, np.ndarray],
    vocabulary: TokenizerFiles,
    trained: TrainedAs,
) -> Export:
    detector = _encoder(model, weights, vocabulary, trained)
    arrays, generator = split_networks(detector.arrays)
    if not generator:
        return detector
    shape = model.generator.model_copy(update={"architecture": model.architecture})
    tables = {"embedding": weights.get("generator_embedding", weights["embedding"])}
    config = encoder_config(shape, tables, padding=detector.config["pad_token_id"], trained=trained)
    return detector._replace(
        arrays=arrays, inner={GENERATOR: Export(generator, config, detector.ids)}
    )


def _xlnet(
    model: ModelSettings,
    weights: Mapping[str, np.ndarray],
    vocabulary: TokenizerFiles,
    trained: TrainedAs,
) -> Export:
    arrays = stored_two_stream_arrays(to_huggingface(weights, model), model)
    config = two_stream_config(model, weights, trained=trained)
    return Export(arrays, config, {})


EXPORTS: Mapping[
    str, Callable[[ModelSettings, Mapping[str, np.ndarray], TokenizerFiles, TrainedAs], Export]
] = {
    "encoder_decoder": _t5,
    "decoder": _gpt,
    "encoder": _encoder,
    "generator_detector": _electra,
    "two_stream": _xlnet,
}


def export_weights(manifest: Path, *, vocabulary: Path, form: str, folder: Path) -> None:
    """Write the weights of a training for another library.

    Args:
        manifest: manifest of `pretrain` or `finetune`; the weights are in its folder.
        vocabulary: vocabulary of the run.
        form: a key of `WRITERS`.
        folder: receives the files.

    Raises:
        ArtifactError: the weights are missing, or the manifest is of another rule.
        CheckpointError: the library does not support this shape.
        SettingsError: the form is unknown.
        VocabularyError: the weights were trained with another vocabulary.
    """
    if form not in WRITERS:
        raise SettingsError(f"unknown form {form!r}; allowed are {sorted(WRITERS)}")
    settings = read_json(manifest).get("settings", {})
    if "model" not in settings or "vocab" not in settings:
        raise ArtifactError(
            f"{manifest} contains no model and vocab settings; give the manifest of pretrain or "
            "finetune"
        )
    model = ModelSettings.model_validate(settings["model"])
    weights = _without_other_pairs(read_arrays(manifest.parent / WEIGHTS))
    _check_no_more(weights, model, manifest.parent / WEIGHTS)
    files = WRITERS[form](
        folder,
        model,
        weights,
        vocabulary_files(vocabulary, VocabSettings.model_validate(settings["vocab"]), model),
        TrainedAs.of_settings(settings, read_labels(manifest.parent / WEIGHTS)),
    )
    remove_leftovers(files)  # of an export that was killed


def _without_other_pairs(weights: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Return the weights without a head of pairs that no other library has.

    The rest is a network of masked pieces with a pooler, and the log names what is left out.
    """
    classes = len(weights.get(f"{PAIR_HEAD}bias", ()))
    if classes in (0, PAIR_CLASSES):
        return weights
    announce(
        f"{PAIR_HEAD}matrix and {PAIR_HEAD}bias are not exported: their {classes} classes have no "
        "place in other libraries"
    )
    return {name: array for name, array in weights.items() if not name.startswith(PAIR_HEAD)}


def _check_no_more(weights: Mapping[str, np.ndarray], model: ModelSettings, path: Path) -> None:
    """Check that the other library has a name for every weight.

    Raises:
        CheckpointError: there are more, such as adapters, without which answers would differ.
    """
    more = sorted(set(weights) - {name.path for name in weight_names(model)})
    if more:
        raise CheckpointError(
            f"{path} has {len(more)} weights that other libraries lack, such as {more[0]!r}; "
            "export a model that was fine-tuned without adapters (finetune.method: all) and answer "
            "networks (finetune.pair_head: pooled), and a RoBERTa that was pre-trained without a "
            "pair task"
        )


WRITERS: dict[str, Callable[..., list[Path]]] = {
    "huggingface": write_huggingface,
    "keras_hub": write_keras_hub,
}
