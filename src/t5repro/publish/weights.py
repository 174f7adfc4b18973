"""Writes the weights of a training for other libraries: Hugging Face and keras-hub.

To support another library, add its names to `model/weight_names.py`, a function to `WRITERS` and a
test in which the library reads the files.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import save

from t5repro.artifacts import WEIGHTS
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.vocab import SPECIAL_PIECES, VocabSettings
from t5repro.errors import ArtifactError, CheckpointError, SettingsError, VocabularyError
from t5repro.files import read_json, write_bytes, write_json
from t5repro.lineage.leftovers import remove_leftovers
from t5repro.model.checkpoints import read_arrays, read_labels
from t5repro.model.encoder_heads import LABEL_HEAD
from t5repro.model.foreign_weights import (
    FACE_CONFIG,
    FACE_VOCABULARY,
    FACE_WEIGHTS,
    keras_hub_variable,
    quiet_keras_hub,
)
from t5repro.model.huggingface_config import gpt_config, t5_config
from t5repro.model.huggingface_encoders import encoder_config, stored_arrays
from t5repro.model.trained_as import UNKNOWN, TrainedAs
from t5repro.model.weight_names import float32_array, to_huggingface, weight_names
from t5repro.vocab.special_ids import EOS_ID, PAD_ID, add_sentinels
from t5repro.vocab.special_pieces import special_id
from t5repro.vocab.vocabulary import Vocabulary

GENERATION_CONFIG = "generation_config.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
SPECIAL_TOKENS = "special_tokens_map.json"
CLS, SEP, MASK = SPECIAL_PIECES[:3]
TOKENS = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
# Vocabulary, special tokens, and other values of the tokenizer's configuration.
Tokenizer = tuple[bytes, dict[str, str], dict[str, object]]
HUB_BUCKETS, HUB_DISTANCE = 32, 128  # fixed in keras-hub


@dataclass(frozen=True)
class VocabularyFiles:
    """A vocabulary in the two variants that other libraries read.

    Attributes:
        with_sentinels: SentencePiece model of this project.
        without_sentinels: the same without the sentinels at its end.
        sentinels: number of sentinels.
        total_ids: pieces and sentinels.
    """

    with_sentinels: bytes
    without_sentinels: bytes
    sentinels: int
    total_ids: int = 0


def write_huggingface(
    folder: Path,
    model: ModelSettings,
    weights: Mapping[str, np.ndarray],
    vocabulary: VocabularyFiles,
    trained: TrainedAs = UNKNOWN,
) -> list[Path]:
    """Write a folder that ``T5ForConditionalGeneration.from_pretrained`` reads.

    With position biases per layer it is a folder for ``UMT5ForConditionalGeneration``; a GPT is one
    for ``OpenAIGPTLMHeadModel``; its rows begin with the id 0. An encoder only is one for BERT,
    RoBERTa or ALBERT: ``ForPreTraining``, ``ForMaskedLM``, ``ForSequenceClassification``,
    ``ForMultipleChoice`` or ``ForQuestionAnswering``, depending on its heads.

    ``T5Tokenizer.from_pretrained`` reads its vocabulary; sentinels are its own extra ids. With an
    encoder only it is ``BigBirdTokenizer``, which writes rows as BERT does.

    Args:
        folder: receives the files.
        model: shape of the network.
        weights: arrays by path in our model.
        vocabulary: of the run.
        trained: dropout and names of labels for the configuration.

    Returns:
        The files.
    """
    export = EXPORTS[model.family.name](model, weights, vocabulary, trained)
    # Without this entry of its metadata transformers refuses the file.
    data = save(dict(sorted(export.arrays.items())), metadata={"format": "pt"})
    write_bytes(folder / FACE_WEIGHTS, data)
    proto, special_tokens, tokenizer = export.tokenizer
    write_bytes(folder / FACE_VOCABULARY, proto)
    ids = {"pad_token_id": PAD_ID, "eos_token_id": EOS_ID, **export.ids}
    documents = {
        FACE_CONFIG: export.config | ids,
        GENERATION_CONFIG: ids,
        TOKENIZER_CONFIG: special_tokens | tokenizer,
        SPECIAL_TOKENS: special_tokens,
    }
    for name, values in documents.items():
        write_json(folder / name, values)
    return [folder / name for name in (FACE_WEIGHTS, FACE_VOCABULARY, *documents)]


class Export(NamedTuple):
    """The content of a folder for Hugging Face, without the ids that all networks have.

    Attributes:
        arrays: weights by their names there.
        config: of the network.
        ids: of special tokens.
        tokenizer: of the vocabulary.
    """

    arrays: Mapping[str, np.ndarray]
    config: dict[str, Any]
    ids: dict[str, int]
    tokenizer: Tokenizer


def _t5(
    model: ModelSettings,
    weights: Mapping[str, np.ndarray],
    vocabulary: VocabularyFiles,
    trained: TrainedAs,
) -> Export:
    arrays = to_huggingface(weights, model)
    rows = int(weights["embedding"].shape[0])
    config = t5_config(model, embedding_rows=rows, dropout_rate=trained.dropout_rate)
    ids = {"decoder_start_token_id": PAD_ID}
    return Export(arrays, config, ids, _t5_tokenizer(vocabulary))


def _gpt(
    model: ModelSettings,
    weights: Mapping[str, np.ndarray],
    vocabulary: VocabularyFiles,
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
    return Export(arrays, config, ids, _t5_tokenizer(vocabulary))


def _encoder(
    model: ModelSettings,
    weights: Mapping[str, np.ndarray],
    vocabulary: VocabularyFiles,
    trained: TrainedAs,
) -> Export:
    arrays = to_huggingface(weights, model)
    config = encoder_config(model, weights, padding=PAD_ID, trained=trained)
    arrays = stored_arrays(arrays, config)
    ids = {"bos_token_id": special_id(CLS, vocabulary.total_ids)}
    return Export(arrays, config, ids, _encoder_tokenizer(model, vocabulary))


def _t5_tokenizer(vocabulary: VocabularyFiles) -> Tokenizer:
    values = {"tokenizer_class": "T5Tokenizer", "extra_ids": vocabulary.sentinels, "legacy": True}
    return vocabulary.without_sentinels, TOKENS, values


def _encoder_tokenizer(model: ModelSettings, vocabulary: VocabularyFiles) -> Tokenizer:
    """Return a tokenizer that writes ``[CLS] a [SEP] b [SEP]``, with types if the network has them.

    RoBERTa's second separator has to be added by the caller.
    """
    names = {"bos_token": CLS, "cls_token": CLS, "sep_token": SEP, "mask_token": MASK}
    # Their ids follow the vocabulary's, which must contain its sentinels.
    added = {
        str(special_id(piece, vocabulary.total_ids)): {
            "content": piece,
            "lstrip": piece == MASK,  # includes the space before it, as a word does
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": True,
        }
        for piece in (CLS, SEP, MASK)
    }
    types = ["token_type_ids"] if model.token_types else []
    values: dict[str, object] = {
        "tokenizer_class": "BigBirdTokenizer",
        "added_tokens_decoder": added,
        "model_input_names": ["input_ids", *types, "attention_mask"],
    }
    return vocabulary.with_sentinels, TOKENS | names, values


EXPORTS: Mapping[
    str, Callable[[ModelSettings, Mapping[str, np.ndarray], VocabularyFiles, TrainedAs], Export]
] = {"encoder_decoder": _t5, "decoder": _gpt, "encoder": _encoder}


def write_keras_hub(
    folder: Path,
    model: ModelSettings,
    weights: Mapping[str, np.ndarray],
    vocabulary: VocabularyFiles,
    trained: TrainedAs = UNKNOWN,
) -> list[Path]:
    """Write a preset that ``keras_hub.models.T5Seq2SeqLM.from_preset`` reads.

    Its gated activation is the exact GELU; T5 1.1 uses the tanh approximation: logits of a gated
    model differ by some thousandths. A preset of T5 has no names of labels, and its dropout is a
    setting of the library.

    Returns:
        The files.

    Raises:
        CheckpointError: no other library, or not keras-hub's T5, can have this shape.
    """
    _check_hub_shape(model)
    names = weight_names(model)
    import keras_hub

    with quiet_keras_hub():
        backbone = keras_hub.models.T5Backbone(
            vocabulary_size=int(weights["embedding"].shape[0]),
            num_layers=model.num_encoder_layers,
            num_heads=model.num_heads,
            hidden_dim=model.d_model,
            intermediate_dim=model.d_ff,
            key_value_dim=model.d_kv,
            activation="gelu" if model.feed_forward == "gated_gelu" else "relu",
            use_gated_activation=model.feed_forward == "gated_gelu",
            layer_norm_epsilon=model.norm_epsilon,
            tie_embedding_weights=model.tie_embeddings,
            dtype="float32",
        )
        for name in names:
            value = float32_array(weights[name.path], transposed=name.transposed_in_keras_hub)
            keras_hub_variable(backbone, name).assign(value)
        preprocessor = keras_hub.models.T5Seq2SeqLMPreprocessor(
            keras_hub.models.T5Tokenizer(proto=vocabulary.with_sentinels)
        )
        folder.mkdir(parents=True, exist_ok=True)
        keras_hub.models.T5Seq2SeqLM(backbone, preprocessor).save_to_preset(str(folder))
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _check_hub_shape(model: ModelSettings) -> None:
    faults = []
    if model.family.name != "encoder_decoder":
        faults.append("model.architecture must be encoder_decoder")
    if model.num_encoder_layers != model.num_decoder_layers:
        faults.append("model.num_encoder_layers and model.num_decoder_layers must be equal")
    if model.feed_forward == "swiglu":
        faults.append("model.feed_forward must be relu or gated_gelu")
    if model.relative_position_bias != "per_stack":
        faults.append("model.relative_position_bias must be per_stack")
    if model.relative_position_buckets != HUB_BUCKETS:
        faults.append(f"model.relative_position_buckets must be {HUB_BUCKETS}")
    if model.relative_position_max_distance != HUB_DISTANCE:
        faults.append(f"model.relative_position_max_distance must be {HUB_DISTANCE}")
    if faults:
        raise CheckpointError(
            f"keras-hub's T5 cannot have this shape: {'; '.join(faults)}; export for Hugging Face "
            "instead"
        )


def export_weights(manifest: Path, *, vocabulary: Path, form: str, folder: Path) -> None:
    """Write the weights of a training for another library.

    Args:
        manifest: manifest of `pretrain` or `finetune`; the weights are in its folder.
        vocabulary: SentencePiece model of the run.
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
    weights = read_arrays(manifest.parent / WEIGHTS)
    _check_no_more(weights, model, manifest.parent / WEIGHTS)
    files = WRITERS[form](
        folder,
        model,
        weights,
        vocabulary_files(vocabulary, VocabSettings.model_validate(settings["vocab"])),
        TrainedAs.of_settings(settings, read_labels(manifest.parent / WEIGHTS)),
    )
    remove_leftovers(files)  # of an export that was killed


def _check_no_more(weights: Mapping[str, np.ndarray], model: ModelSettings, path: Path) -> None:
    """Check that the other library has a name for every weight.

    Raises:
        CheckpointError: there are more, such as adapters, without which answers would differ.
    """
    more = sorted(set(weights) - {name.path for name in weight_names(model)})
    if more:
        raise CheckpointError(
            f"{path} has {len(more)} weights that other libraries lack, such as {more[0]!r}; "
            "export a model that was fine-tuned without adapters (finetune.method: all), and a "
            "RoBERTa that was pre-trained without a pair task"
        )


def vocabulary_files(path: Path, vocab: VocabSettings) -> VocabularyFiles:
    """Return a vocabulary with and without its sentinels.

    Raises:
        VocabularyError: its size is not the one of the settings.
    """
    vocabulary = Vocabulary.load(path)
    if vocabulary.total_ids != vocab.total_ids:
        raise VocabularyError(
            f"{path} has {vocabulary.total_ids} ids, the weights were trained with "
            f"{vocab.total_ids}; give the vocabulary of the same run"
        )
    proto = path.read_bytes()
    # A serialised message followed by another is their merge, so sentinels are a plain suffix.
    sentinels = add_sentinels(b"", vocabulary.extra_ids)
    return VocabularyFiles(
        with_sentinels=proto,
        without_sentinels=proto.removesuffix(sentinels),
        sentinels=vocabulary.extra_ids,
        total_ids=vocabulary.total_ids,
    )


WRITERS: dict[str, Callable[..., list[Path]]] = {
    "huggingface": write_huggingface,
    "keras_hub": write_keras_hub,
}
