"""Beside Hugging Face's `T5ForConditionalGeneration`, with the same random weights."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="peers are not installed: make parity")
transformers = pytest.importorskip("transformers", reason="peers are not installed: make parity")

pytestmark = [pytest.mark.parity, pytest.mark.keras]


def logits_of(theirs, ours, inputs, targets):
    mask = (inputs != 0).astype(np.int32)
    shifted = np.concatenate([np.zeros((len(targets), 1), np.int32), targets[:, :-1]], axis=1)
    with torch.no_grad():
        expected = theirs(
            input_ids=torch.tensor(inputs, dtype=torch.long),
            attention_mask=torch.tensor(mask),
            decoder_input_ids=torch.tensor(shifted, dtype=torch.long),
        ).logits.numpy()
    found = ours(
        {
            "encoder_ids": inputs,
            "encoder_segments": mask,
            "decoder_ids": shifted,
            "decoder_segments": np.ones_like(shifted),
        }
    )
    return np.asarray(found), expected


def test_logits_agree_to_a_ten_thousandth(pair, inputs):
    theirs, ours = pair
    targets = np.random.default_rng(6).integers(2, 97, (8, 27)).astype(np.int32)
    found, expected = logits_of(theirs, ours, inputs, targets)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert error < 1e-4
    assert expected.std() > 0.5  # the comparison is of numbers that differ


def test_exported_weights_give_the_same_logits(shape, inputs, tmp_path):
    from networks import text_network

    from t5repro.model.checkpoints import weight_variables
    from t5repro.publish.tokenizer_files import VocabularyFiles
    from t5repro.publish.weights import write_huggingface

    ours = text_network(shape, embedding_rows=97, dropout_rate=0.0, seed=4)
    noise = np.random.default_rng(4)
    for variable in weight_variables(ours).values():
        variable.assign_add(noise.normal(0, 0.3, variable.shape))
    arrays = {name: variable.numpy() for name, variable in weight_variables(ours).items()}
    write_huggingface(tmp_path, shape, arrays, VocabularyFiles(b"", b"", 0))
    kind = f"{'UMT5' if shape.relative_position_bias == 'per_layer' else 'T5'}"
    theirs = getattr(transformers, f"{kind}ForConditionalGeneration").from_pretrained(tmp_path)
    theirs.eval()
    targets = np.random.default_rng(6).integers(2, 97, (8, 27)).astype(np.int32)
    found, expected = logits_of(theirs, ours, inputs, targets)
    if kind == "UMT5" and not shape.tie_embeddings and theirs.config.tie_word_embeddings:
        found = found * shape.d_model**-0.5  # transformers 5 takes every umT5 for a tied one
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()
    assert found.std() > 0.2


def generate(theirs, inputs, steps, **options):
    with torch.no_grad():
        ids = theirs.generate(
            torch.tensor(inputs, dtype=torch.long),
            attention_mask=torch.tensor((inputs != 0).astype(np.int64)),
            max_new_tokens=steps,
            do_sample=False,
            **options,
        ).numpy()[:, 1:]
    ids = np.pad(ids, [(0, 0), (0, steps - ids.shape[1])])
    # Its beam search fills up with EOS, ours with padding.
    after_the_end = np.cumsum(ids == 1, axis=1) - (ids == 1) > 0
    return np.where(after_the_end, 0, ids)


def test_greedy_decoding_writes_the_same_tokens(lively_pair, inputs):
    from t5repro.model.decode import greedy

    theirs, ours = lively_pair
    expected = generate(theirs, inputs, 19, num_beams=1)
    np.testing.assert_array_equal(greedy(ours, inputs, max_decode_length=19), expected)
    assert len(np.unique(expected)) > 4


def test_beam_search_without_a_length_penalty_finds_the_same_answers(lively_pair, inputs):
    from t5repro.model.beam import beam_search

    theirs, ours = lively_pair
    expected = generate(theirs, inputs, 24, num_beams=4, length_penalty=0.0, early_stopping=False)
    found = beam_search(ours, inputs, max_decode_length=24, width=4, length_penalty=0.0)
    # Theirs counts answers that the last step cut off among the finished ones, ours does not; and
    # theirs forgets an answer that ends below a step's best four, ours looks at the best eight.
    ended = (expected == 1).any(axis=1)
    same = (found == expected).all(axis=1)
    assert same[ended].sum() >= 1
    gain = log_probability(theirs, inputs, found) - log_probability(theirs, inputs, expected)
    assert (gain[ended & ~same] > 0).all()


def log_probability(theirs, inputs, ids):
    """Return log p of each row of answers up to its end."""
    shifted = np.concatenate([np.zeros((len(ids), 1), np.int64), ids[:, :-1]], axis=1)
    with torch.no_grad():
        logits = theirs(
            input_ids=torch.tensor(inputs, dtype=torch.long),
            attention_mask=torch.tensor((inputs != 0).astype(np.int64)),
            decoder_input_ids=torch.tensor(shifted, dtype=torch.long),
        ).logits
    each = torch.log_softmax(logits.double(), -1).numpy()
    chosen = np.take_along_axis(each, ids[:, :, None].astype(np.int64), axis=2)[:, :, 0]
    written = np.cumsum(ids == 1, axis=1) - (ids == 1) == 0
    return (chosen * written).sum(axis=1)


def test_the_buckets_of_distances_are_the_same():
    from transformers.models.t5.modeling_t5 import T5Attention

    from t5repro.model.attention import relative_position_bucket

    distances = np.arange(-700, 701)
    for bidirectional in (True, False):
        expected = T5Attention._relative_position_bucket(
            torch.tensor(distances), bidirectional=bidirectional, num_buckets=32, max_distance=128
        ).numpy()
        found = relative_position_bucket(
            distances, bidirectional=bidirectional, buckets=32, max_distance=128
        )
        np.testing.assert_array_equal(found, expected)
