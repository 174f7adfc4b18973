"""Batches of the masked language models, to the bit.

The hashes are of batches that TensorFlow's operations made, before NumPy took their place; those of
StructBERT, which is younger, are of NumPy's.
"""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from t5repro.config.presets.sizes import SIZES
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.pretrain import MaskedLM, PretrainSettings, PretrainStage
from t5repro.config.sections.vocab import VocabSettings
from t5repro.inputs.masked_rows import load_masked_inputs

VOCAB = VocabSettings(vocab_size=900, extra_ids=100)
STEPS = (0, 1, 2, 12_345)  # rows of the first epochs, and of one far behind them

SYSTEMS = {
    "bert": MaskedLM(copies=2),
    "bert, whole words": MaskedLM(unit="word"),
    "roberta": MaskedLM(rows="full_sentences", pair_task="none", mask_special_pieces=True),
    "albert": MaskedLM(pair_task="sentence_order", unit="ngram"),
    "spanbert": MaskedLM(rows="doc_sentences", pair_task="none", unit="span", boundary_weight=1.0),
    "structbert": MaskedLM(pair_task="sentence_structure", shuffle_share=0.05),
    "structbert, whole words": MaskedLM(
        pair_task="sentence_structure",
        shuffle_share=0.05,
        shuffle_of="trigrams",
        shuffle_unit="word",
        shuffle_identity=False,
    ),
}
HASHES = {
    "bert": {
        "encoder_ids": "be5bbec03d3425a9",
        "encoder_segments": "bf42bcf8dd087fb6",
        "encoder_types": "1418d3b599ec8447",
        "target_positions": "a4aad418a35c3f71",
        "pair_label": "00f071f965c49754",
        "targets": "34a10768cd06377b",
    },
    "bert, whole words": {
        "encoder_ids": "ce18f45582c54a5c",
        "encoder_segments": "5b4a7c725b54b18f",
        "encoder_types": "a0e4a6c77456217f",
        "target_positions": "3a4fe5e3f2525422",
        "pair_label": "18aa06123c22b5f2",
        "targets": "27122694e789fd33",
    },
    "roberta": {
        "encoder_ids": "5fa7684176b04529",
        "encoder_segments": "e32b15cb02976994",
        "encoder_types": "6753e954c001580f",
        "target_positions": "93d4479afaeff0d8",
        "targets": "19ee3757dd627759",
    },
    "albert": {
        "encoder_ids": "f13a347adafd744c",
        "encoder_segments": "f74b66760f3e3bfb",
        "encoder_types": "8d2804f13b6b9137",
        "target_positions": "e95823bc4d7fb1cc",
        "pair_label": "18aa06123c22b5f2",
        "targets": "c310f386ee7f7de6",
    },
    "spanbert": {
        "encoder_ids": "4d46d5f45648946a",
        "encoder_segments": "a050c0ebddf472f1",
        "encoder_types": "6753e954c001580f",
        "target_positions": "2a822ecff4ac5d6c",
        "boundary_positions": "caa3177fccf46149",
        "boundary_index": "ebf308b968188eab",
        "targets": "3080602d190e7b61",
    },
    "structbert": {
        "encoder_ids": "fbd210e211fd0676",
        "encoder_segments": "093d5a252aa8add2",
        "encoder_types": "31c66e90e5ef97da",
        "target_positions": "9222f9401b323189",
        "pair_label": "76c0767be4cc749f",
        "targets": "dc50f5fe72784477",
    },
    "structbert, whole words": {
        "encoder_ids": "030a03e5b0682a92",
        "encoder_segments": "093d5a252aa8add2",
        "encoder_types": "31c66e90e5ef97da",
        "target_positions": "656152d75f141ae0",
        "pair_label": "76c0767be4cc749f",
        "targets": "fef294adce05c4e6",
    },
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write 70 documents of 1 to 9 sentences of 1 to 40 ids, made by arithmetic."""
    counts = 1 + np.arange(70) * 5 % 9
    lengths = 1 + np.arange(counts.sum()) * 17 % 40
    bounds = np.append(0, np.cumsum(lengths))
    contents = {
        "ids": (3 + np.arange(bounds[-1]) * 7919 % 897).astype("<u2"),
        "offsets": bounds[np.append(0, np.cumsum(counts))].astype("<i8"),
        "sentences": bounds[:-1].astype("<i8"),
        "word_starts": (np.arange(VOCAB.total_ids) * 37 % 10 < 6).astype(np.uint8),
    }
    paths = {name: tmp_path_factory.mktemp("corpus") / name for name in contents}
    for name, values in contents.items():
        values.tofile(paths[name])
    return paths


@pytest.mark.parametrize("system", SYSTEMS)
def test_no_bit_of_a_batch_has_changed(corpus: dict[str, Path], system: str) -> None:
    settings = PretrainSettings(
        objective="masked_lm",
        batch_size=16,
        inputs_length=67,
        targets_length=13 if SYSTEMS[system].shuffle_share else 11,
        masked_lm=SYSTEMS[system],
    )
    stage = PretrainStage(
        seed=0, devices=DevicesSettings(), vocab=VOCAB, model=SIZES["bert_tiny"], pretrain=settings
    )
    inputs = load_masked_inputs(stage, **corpus, seed=3)
    batches = [next(iter(inputs.batches(first_step=step, steps=1))) for step in STEPS]
    arrays = [{**features, "targets": targets} for features, targets in batches]
    hashes = {
        name: hashlib.sha256(b"".join(batch[name].tobytes() for batch in arrays)).hexdigest()[:16]
        for name in arrays[0]
    }
    assert hashes == HASHES[system]
