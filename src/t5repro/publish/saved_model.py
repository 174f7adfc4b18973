"""Export a fine-tuned model as a SavedModel that maps strings to strings.

SentencePiece is part of the graph, through tensorflow-text, so a server needs TensorFlow and
tensorflow-text but not this project. It answers like the rule `evaluate_predict`: inputs are cut
and padded in the same way and decoded by the same graph.

Signatures: ``serving_default`` decodes greedily, ``beam`` with the run's beam width. Both take
``inputs`` and return ``outputs``, strings of shape (batch,).
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from t5repro.config.sections.evaluate import PredictStage
from t5repro.config.sections.model import tuned_family
from t5repro.errors import SettingsError, packages_of
from t5repro.evaluate.predict import weights_next_to
from t5repro.model.decode_inputs import padded_length
from t5repro.publish.new_folder import new_folder
from t5repro.vocab.special_ids import EOS_ID, PAD_ID, UNK_ID
from t5repro.vocab.vocabulary import Vocabulary

INPUTS, OUTPUTS = "inputs", "outputs"


def export_server(settings: PredictStage, *, weights: Path, vocabulary: Path, folder: Path) -> None:
    """Write the SavedModel.

    Args:
        settings: settings of the rule `evaluate_predict`.
        weights: manifest of the fine-tuned weights, which are in the same folder.
        vocabulary: SentencePiece model.
        folder: folder to write; must not exist, so that no server reads an incomplete model.

    Raises:
        ArtifactError: the weights are missing.
        PackageError: tensorflow-text is not installed.
        SettingsError: the network is an encoder only, which writes no text.
        StorageError: the folder exists, or cannot be written.
        VocabularyError: the vocabulary has more ids than the model has embeddings.
    """
    if not tuned_family(settings.model, settings.finetune).writes_text:
        raise SettingsError(
            f"model.architecture is {settings.model.architecture} and finetune.answers "
            f"{settings.finetune.answers}: the network writes no text to serve; name another "
            "experiment, or write its weights with t5repro weights export"
        )
    with new_folder(folder) as temporary:
        _save(settings, weights=weights, vocabulary=vocabulary, folder=temporary)


def _save(settings: PredictStage, *, weights: Path, vocabulary: Path, folder: Path) -> None:
    import tensorflow as tf

    from t5repro.model.checkpoints import load_weights
    from t5repro.systems.answering import build_network
    from t5repro.systems.text_answers import check_vocabulary

    loaded = Vocabulary.load(vocabulary)
    total_ids, proto = loaded.total_ids, loaded.pieces.sentencepiece_model()
    check_vocabulary(settings, total_ids=total_ids)
    model = build_network(settings)
    weights_file = weights_next_to(weights)
    load_weights(weights_file, model)
    module = serving_module(settings, model, proto, total_ids=total_ids)
    signatures = {"serving_default": module.greedy, "beam": module.beam}
    tf.saved_model.save(module, str(folder), signatures=signatures)


def serving_module(settings: PredictStage, model: Any, proto: bytes, *, total_ids: int) -> Any:
    """Return a ``tf.Module`` with the functions `greedy` and `beam`.

    Args:
        settings: lengths, beam width and length penalty.
        model: the model with its weights.
        proto: serialised SentencePiece model.
        total_ids: number of ids of the vocabulary; the model's embeddings beyond it have no piece
            and are read as unknown.
    """
    import tensorflow as tf

    with packages_of("serve"):
        import tensorflow_text as tf_text

    from t5repro.model.beam import beam_graph
    from t5repro.model.decode import greedy_graph

    evaluate = settings.evaluate
    module = tf.Module()
    # A module saves only variables and resources that are its attributes.
    module.model_variables = [variable.value for variable in model.variables]
    module.tokenizer = tf_text.SentencepieceTokenizer(model=proto, out_type=tf.int32)

    def serve(texts: Any, decode: Callable[..., Any]) -> dict[str, Any]:
        input_ids = module.tokenizer.tokenize(texts)[:, : evaluate.inputs_length - 1]
        eos = tf.fill([tf.shape(texts)[0], 1], EOS_ID)
        output_ids = _decode_padded(
            tf.concat([input_ids, eos], axis=1), evaluate.inputs_length, decode
        )
        return {OUTPUTS: module.tokenizer.detokenize(_before_eos(output_ids, total_ids))}

    def greedy(inputs: Any) -> dict[str, Any]:
        return serve(
            inputs, partial(greedy_graph, model, max_decode_length=evaluate.max_decode_length)
        )

    def beam(inputs: Any) -> dict[str, Any]:
        return serve(
            inputs,
            partial(
                beam_graph,
                model,
                max_decode_length=evaluate.max_decode_length,
                width=evaluate.beam_width,
                length_penalty=evaluate.length_penalty,
            ),
        )

    for function in (greedy, beam):
        texts = tf.TensorSpec([None], tf.string, name=INPUTS)
        compiled = tf.function(function, input_signature=[texts], autograph=False)
        setattr(module, function.__name__, compiled)
    return module


def _decode_padded(ragged_ids: Any, max_length: int, decode: Callable[[Any, Any], Any]) -> Any:
    """Return the output ids of ragged input ids, padded to the length that the longest row needs.

    `evaluate_predict` pads to a few fixed lengths. The graph has one branch for each of them,
    because the shapes inside a branch are static; equal padding keeps the answers equal.
    """
    import tensorflow as tf

    lengths = sorted(
        {padded_length(tokens, longest=max_length) for tokens in range(1, max_length + 1)}
    )

    def branch(length: int) -> Any:
        ids = ragged_ids.to_tensor(shape=[None, length])
        return decode(ids, tf.cast(ids != PAD_ID, tf.int32))

    longest_row = tf.cast(tf.reduce_max(ragged_ids.row_lengths()), tf.int32)
    index = tf.searchsorted(lengths, [longest_row])[0]
    return tf.switch_case(index, [partial(branch, length) for length in lengths])


def _before_eos(ids: Any, total_ids: int) -> Any:
    """Return the ids of each row before its first EOS, as `Vocabulary.decode` reads them."""
    import tensorflow as tf

    is_before = tf.cumsum(tf.cast(ids == EOS_ID, tf.int32), axis=1) == 0
    return tf.ragged.boolean_mask(tf.where(ids < total_ids, ids, UNK_ID), is_before)
