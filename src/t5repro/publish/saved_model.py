"""A model to serve: a SavedModel that takes strings and gives strings.

SentencePiece runs inside, through tensorflow-text, so a server needs TensorFlow and
tensorflow-text and nothing of this project. Answers are those of the rule `evaluate_predict`:
inputs are cut and padded as there and decoded by the same graph.

Signatures: ``serving_default`` decodes greedily, ``beam`` with the run's beam width; both take
``inputs`` and return ``outputs``, one string a row.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from t5repro.config.sections.evaluate import PredictStage
from t5repro.errors import ArtifactError, StorageError, VocabularyError, storage_error
from t5repro.evaluate.predict import WEIGHTS_FILE, bucket_length
from t5repro.vocab.special_ids import EOS_ID, PAD_ID, UNK_ID
from t5repro.vocab.vocabulary import Vocabulary

INPUTS, OUTPUTS = "inputs", "outputs"


def export_server(settings: PredictStage, *, weights: Path, vocabulary: Path, folder: Path) -> None:
    """Write the SavedModel.

    Args:
        settings: those of the rule `evaluate_predict`.
        weights: manifest of the fine-tuned weights, which lie beside it.
        vocabulary: SentencePiece model.
        folder: where it goes; must not exist, so that no server reads half a model.

    Raises:
        ArtifactError: the weights are missing.
        StorageError: the folder exists, or cannot be written.
        VocabularyError: the vocabulary has more ids than the model has embeddings.
    """
    import tensorflow as tf

    from t5repro.model.checkpoints import load_weights
    from t5repro.model.transformer import T5

    if folder.exists():
        raise StorageError(f"{folder} exists; name a new folder, or remove this one")
    words = Vocabulary.load(vocabulary)
    if words.total_ids > settings.vocab.embedding_rows:
        raise VocabularyError(
            f"the vocabulary has {words.total_ids} ids, the model only "
            f"{settings.vocab.embedding_rows} embeddings; vocab.vocab_size must be the one that "
            "the vocabulary was trained with"
        )
    weights_file = weights.parent / WEIGHTS_FILE
    if not weights_file.is_file():
        raise ArtifactError(f"{weights_file} is missing; run the stage finetune, which writes it")
    model = T5(
        settings.model,
        embedding_rows=settings.vocab.embedding_rows,
        dropout_rate=0.0,
        seed=0,
        dtype=settings.devices.precision,
        adapter_width=settings.finetune.width,
    )
    load_weights(weights_file, model)
    server = make_server(settings, model, vocabulary.read_bytes(), total_ids=words.total_ids)
    temporary = folder.with_name(f".writing-{folder.name}")
    signatures = {"serving_default": server.greedy, "beam": server.beam}
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        tf.saved_model.save(server, str(temporary), signatures=signatures)
        temporary.rename(folder)
    except OSError as error:
        raise storage_error(folder, error) from error


def make_server(settings: PredictStage, model: Any, proto: bytes, *, total_ids: int) -> Any:
    """Return a ``tf.Module`` with the functions `greedy` and `beam`.

    Args:
        settings: lengths, beam width and penalty.
        model: the network with its weights.
        proto: SentencePiece model, serialised.
        total_ids: ids of the vocabulary; larger ones read as unknown.
    """
    import tensorflow as tf
    import tensorflow_text as tf_text

    from t5repro.model.beam import beam_graph
    from t5repro.model.decode import greedy_graph

    evaluate = settings.evaluate
    server = tf.Module()
    server.variables_of_model = [item.value for item in model.variables]
    server.tokenizer = tf_text.SentencepieceTokenizer(model=proto, out_type=tf.int32)

    def serve(texts: Any, decode: Callable[..., Any]) -> dict[str, Any]:
        ids = server.tokenizer.tokenize(texts)[:, : evaluate.inputs_length - 1]
        ends = tf.fill([tf.shape(texts)[0], 1], EOS_ID)
        written = _by_length(tf.concat([ids, ends], axis=1), evaluate.inputs_length, decode)
        return {OUTPUTS: server.tokenizer.detokenize(_before_the_end(written, total_ids))}

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
        setattr(server, function.__name__, compiled)
    return server


def _by_length(ragged: Any, longest: int, decode: Callable[[Any, Any], Any]) -> Any:
    """Return the ids that answer ragged rows of ids.

    One branch per padded length of `evaluate_predict`, since the shapes of a branch are fixed; the
    longest row decides.
    """
    import tensorflow as tf

    lengths = sorted({bucket_length(tokens, longest=longest) for tokens in range(1, longest + 1)})

    def branch(length: int) -> Any:
        ids = ragged.to_tensor(shape=[None, length])
        return decode(ids, tf.cast(ids != PAD_ID, tf.int32))

    tokens = tf.cast(tf.reduce_max(ragged.row_lengths()), tf.int32)
    number = tf.searchsorted(lengths, [tokens])[0]
    return tf.switch_case(number, [partial(branch, length) for length in lengths])


def _before_the_end(ids: Any, total_ids: int) -> Any:
    """Return the ids of each row before its first EOS, as `Vocabulary.decode` reads them."""
    import tensorflow as tf

    before = tf.cumsum(tf.cast(ids == EOS_ID, tf.int32), axis=1) == 0
    return tf.ragged.boolean_mask(tf.where(ids < total_ids, ids, UNK_ID), before)
