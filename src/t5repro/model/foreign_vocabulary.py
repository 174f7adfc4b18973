"""The vocabulary in a folder of weights of another library, and rows of weights in our order."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from t5repro.errors import VocabularyError
from t5repro.files import refuse_other_form
from t5repro.model import leftovers
from t5repro.model.weight_names import Arrays
from t5repro.vocab.adopted.files import files_beside, find_vocabulary, published_vocabulary
from t5repro.vocab.id_order import IdOrder, SameOrder

FACE_VOCABULARY = "spiece.model"
# Weight with a row for each id -> axis of the ids.
AXES_OF_IDS = {
    "embedding": 0,
    "generator_embedding": 0,
    "output_matrix": 1,
    "masked_lm/bias": 0,
    "piece_head/bias": 0,
}


class ForeignVocabulary(NamedTuple):
    """The vocabulary of a folder of weights.

    Attributes:
        data: as the file of a run, without sentinels if its publisher left them out.
        file: the file that it was read from.
        order: of the ids in the files of the folder, and so of the rows of their weights.
    """

    data: bytes
    file: Path
    order: IdOrder = SameOrder()


def sentencepiece_in(path: Path) -> ForeignVocabulary | None:
    """Return the vocabulary of a SentencePiece model, unchanged; None if there is no file."""
    if not path.is_file():
        return None
    refuse_other_form(path)
    return ForeignVocabulary(path.read_bytes(), path)


def vocabulary_in(folder: Path, config: Mapping[str, Any]) -> ForeignVocabulary | None:
    """Return the vocabulary of a folder of Hugging Face with this configuration, if it has one.

    Raises:
        ArtifactError: a file is damaged.
        CheckpointError: it has none, and its tokenizer reads bytes.
        VocabularyError: it cannot be used.
    """
    path = folder / FACE_VOCABULARY
    is_t5 = config["model_type"] in leftovers.T5_TYPES
    # T5's `tokenizer.json` is a copy of its SentencePiece model.
    file = path if path.is_file() else None if is_t5 else find_vocabulary(folder)
    if file is None:
        leftovers.check_tokenizer(folder, config)
        return None
    if is_t5:
        return sentencepiece_in(file)
    data, order = published_vocabulary(file, files_beside(file))
    return ForeignVocabulary(data, file, order)


def in_our_order(weights: Arrays, vocabulary: ForeignVocabulary | None) -> Arrays:
    """Return weights with a row for each id in the order of our ids.

    Raises:
        VocabularyError: they have rows for more or fewer ids.
    """
    if vocabulary is None:
        return weights
    order = vocabulary.order
    axes = {name: axis for name, axis in AXES_OF_IDS.items() if name in weights}
    lengths = {name: weights[name].shape[axis] for name, axis in axes.items()}
    misfit = next((name for name in lengths if lengths[name] != order.foreign_ids), None)
    if order.foreign_ids is not None and misfit is not None:
        raise VocabularyError(
            f"{misfit!r} has {lengths[misfit]:,} rows, {vocabulary.file} has "
            f"{order.foreign_ids:,} ids; they must be equal: name the files of one checkpoint, or "
            "cut off rows of added tokens with resize_token_embeddings of transformers"
        )
    moved = {name: order.to_ours(weights[name], axis) for name, axis in axes.items()}
    return {**weights, **moved}
