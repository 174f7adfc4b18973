"""Every architecture learns a small task by heart, packed, and decodes what it has learned."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
from t5repro.config.sections.model import ModelSettings  # noqa: E402
from t5repro.inputs.batches import FlatSegments, encoder_decoder_batch, joined_batch  # noqa: E402
from t5repro.model.decode import greedy  # noqa: E402
from t5repro.train.fresh_model import fresh_model  # noqa: E402
from t5repro.vocab.special_ids import EOS_ID  # noqa: E402

pytestmark = [
    pytest.mark.keras,
    pytest.mark.filterwarnings("ignore:Layer .* was passed an input with a mask"),
]

T5_1_1 = {"feed_forward": "gated_gelu", "tie_embeddings": False}
ARCHITECTURES = {
    "1.0": {},
    "1.1": T5_1_1,
    "shared": {"architecture": "shared_encoder_decoder"},
    "language model": {"architecture": "language_model"},
    "prefix language model": {"architecture": "prefix_language_model"},
    "prefix language model, 1.1": {"architecture": "prefix_language_model", **T5_1_1},
}
STEPS = 300
QUESTIONS, IN_A_ROW = 12, 3
LONGEST_QUESTION, LONGEST_ANSWER = 6, 4  # ids, EOS included


def made_up_rows(longest, seed):
    """Return lists of 2 to `longest` ids, the last is EOS; no two are alike."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(2, longest + 1, QUESTIONS)
    rows = [[*generator.integers(2, 60, length - 1).tolist(), EOS_ID] for length in lengths]
    assert len(set(map(tuple, rows))) == QUESTIONS
    return rows


def flat(rows):
    ids = [number for row in rows for number in row]
    return FlatSegments(
        tf.constant(ids, tf.int32), tf.constant([len(row) for row in rows], tf.int32)
    )


def padded(rows, width):
    return np.asarray([[*row, *[0] * (width - len(row))] for row in rows], np.int32)


@pytest.mark.parametrize("change", ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
def test_an_architecture_learns_answers_by_heart_from_packed_rows_and_decodes_them(change, tiny):
    shape = ModelSettings.model_validate(
        {
            "d_model": 32,
            "d_ff": 64,
            "d_kv": 8,
            "num_heads": 4,
            "num_encoder_layers": 1,
            "num_decoder_layers": 1,
            **change,
        }
    )
    questions, answers = made_up_rows(LONGEST_QUESTION, 1), made_up_rows(LONGEST_ANSWER, 2)
    widths = {
        "inputs_length": IN_A_ROW * LONGEST_QUESTION,
        "targets_length": IN_A_ROW * LONGEST_ANSWER,
    }
    rows = QUESTIONS // IN_A_ROW
    assemble = joined_batch if shape.family.joined else encoder_decoder_batch
    batch = assemble(flat(questions), flat(answers), tf.constant([IN_A_ROW] * rows), **widths)
    settings = tiny.stage_settings(
        "pretrain",
        0,
        model=shape,
        devices={},
        training={
            "steps": STEPS,
            "batch_size": rows,
            "dropout_rate": 0.0,
            "loss_normaliser": "target_tokens",
            "learning_rate": {"schedule": "constant", "factor": 0.03},
            **widths,
        },
    )
    model = fresh_model(settings, seed=0)

    def correct_answers():
        inputs = padded(questions, LONGEST_QUESTION)
        ids = greedy(model.network, inputs, max_decode_length=LONGEST_ANSWER)
        return (ids == padded(answers, LONGEST_ANSWER)).all(axis=1).sum()

    assert correct_answers() < 3
    data = tf.data.Dataset.from_tensors(batch).repeat(STEPS)
    model.fit(data, epochs=1, verbose=0, shuffle=False)
    assert correct_answers() == QUESTIONS
