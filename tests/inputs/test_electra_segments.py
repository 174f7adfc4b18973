"""Rows of ELECTRA against its builder in plain Python, sentence by sentence.

Every id of the corpus occurs once, so that an id tells its position.
"""

from pathlib import Path

import numpy as np
import pytest

from t5repro.config.presets.sizes import SIZES
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.pretrain import PretrainSettings, PretrainStage
from t5repro.config.sections.vocab import VocabSettings
from t5repro.inputs.masked_rows import load_masked_inputs
from t5repro.objectives.row_draws import Draw, RowDraws
from t5repro.systems.step_audit import spans_in_step

VOCAB = VocabSettings(vocab_size=30_000, extra_ids=100)
CLS, SEP, MASK = 30_100, 30_101, 30_102
FIRST_ID = 3  # of the corpus: the id at position n is n + 3
BATCH, SEED = 32, 5


def documents_of(count, longest_sentence=25):
    random = np.random.default_rng(1)
    return [
        random.integers(1, longest_sentence, random.integers(1, 30)).tolist() for _ in range(count)
    ]


@pytest.fixture
def load(tmp_path: Path):
    def load_inputs(documents, *, length=48, short=0.05, **change):
        bounds = np.cumsum([0, *(size for document in documents for size in document)])
        first = np.cumsum([0, *map(len, documents)])
        contents = {
            "ids": (FIRST_ID + np.arange(bounds[-1])).astype("<u2"),
            "offsets": bounds[first].astype("<i8"),
            "sentences": bounds[:-1].astype("<i8"),
            "word_starts": np.ones(VOCAB.total_ids, np.uint8),
        }
        for name, values in contents.items():
            values.tofile(tmp_path / name)
        masked_lm = {
            "rows": "electra_segments", "pair_task": "none", "short_row_share": short,
            "mask_share": 0.85, "random_share": 0.0,
        }  # fmt: skip
        settings = PretrainSettings.model_validate(
            {
                "objective": "masked_lm", "batch_size": BATCH, "inputs_length": length,
                "targets_length": max(4, round(length * 0.155)), "masked_lm": masked_lm, **change,
            }
        )  # fmt: skip
        files = {name: tmp_path / name for name in contents}
        stage = PretrainStage(
            seed=0,
            devices=DevicesSettings(),
            vocab=VOCAB,
            model=SIZES["electra_tiny"],
            pretrain=settings,
        )
        return load_masked_inputs(stage, **files, seed=SEED)

    return load_inputs


def built(sentences, *, target, length, single, coin):
    """Return both segments of a row, as ELECTRA's ``_create_example`` divides its sentences."""
    limit = 100_000 if single < 0.1 else (target - 3) // 2
    first, second = [], []
    for sentence in sentences:
        if (
            not first
            or len(first) + len(sentence) < limit
            or (not second and len(first) < limit and coin < 0.5)
        ):
            first += sentence
        else:
            second += sentence
    first = first[: length - 2]
    return first, second[: max(0, length - len(first) - 3)]


def rows_of_epoch(inputs, epoch=0):
    """Return features and original ids of each row of an epoch, by its row of the layout."""
    rows = inputs.rows_per_epoch
    found = []
    for step in range((epoch * rows) // BATCH, -(-(epoch + 1) * rows // BATCH)):
        ((features, targets),) = inputs.batches(first_step=step, steps=1)
        ids = features["encoder_ids"].copy()
        filled = targets > 0
        row = np.nonzero(filled)[0]
        ids[row, features["target_positions"][filled]] = targets[filled]
        found += [
            (ids[n], {**{name: a[n] for name, a in features.items()}, "targets": targets[n]})
            for n in range(BATCH)
        ]
    start = epoch * rows % BATCH
    return found[start : start + rows]


@pytest.mark.parametrize(("length", "short"), [(48, 0.05), (48, 0.5), (24, 0.0), (8, 0.3)])
def test_each_row_is_what_the_released_builder_makes_of_its_sentences(load, length, short):
    documents = documents_of(60)
    inputs = load(documents, length=length, short=short)
    layout, starts = inputs.layout, inputs.corpus.sentences
    expected = set()
    for row in range(layout.rows):
        numbers = np.arange(layout.firsts[row], layout.firsts[row] + layout.counts[row])
        bounds = zip(starts.start_of(numbers), starts.start_of(numbers + 1), strict=True)
        sentences = [list(range(FIRST_ID + low, FIRST_ID + high)) for low, high in bounds]
        draws = RowDraws(SEED, np.array([row]), np.zeros(1, np.int64))
        single, coin = draws.uniform(Draw.SPLIT, 2)[0]
        first, second = built(
            sentences, target=int(layout.targets[row]), length=length, single=single, coin=coin
        )
        expected.add((CLS, *first, SEP, *second, *[SEP] * bool(second)))
    found = {tuple(ids[ids > 0].tolist()) for ids, _ in rows_of_epoch(inputs)}
    assert found == expected
    assert any(row.count(SEP) == 2 for row in found)


def test_a_row_ends_where_its_sentences_reach_its_own_target_or_the_document_ends(load):
    documents = documents_of(140)
    inputs = load(documents, short=0.3)
    layout, starts = inputs.layout, inputs.corpus.sentences
    ends = layout.firsts + layout.counts
    lengths = starts.start_of(ends) - starts.start_of(layout.firsts)
    is_last = np.isin(ends, inputs.layout.documents.lasts)
    before = starts.start_of(ends - 1) - starts.start_of(layout.firsts)
    assert (before < layout.targets).all()
    assert (lengths[~is_last] >= layout.targets[~is_last]).all()
    assert layout.counts.sum() == sum(map(len, documents))
    is_short = layout.targets < 48
    assert 0.25 < is_short.mean() < 0.35
    assert layout.targets.min() >= 5
    # Not one target for all rows of a document, as BERT has.
    document = np.searchsorted(inputs.layout.documents.firsts, layout.firsts, "right")
    of_documents = [set(is_short[document == n]) for n in np.unique(document)]
    assert sum(len(kinds) == 2 for kinds in of_documents) > 50


def test_epochs_have_the_same_rows_with_other_masks_and_random_numbers(load):
    inputs = load(documents_of(40))
    first, second = (
        {tuple(ids.tolist()): batch for ids, batch in rows_of_epoch(inputs, epoch)}
        for epoch in (0, 1)
    )
    assert first.keys() == second.keys()
    same = [
        np.array_equal(batch["target_positions"], second[row]["target_positions"])
        for row, batch in first.items()
        if (batch["targets"] > 0).sum() > 2
    ]
    assert np.mean(same) < 0.2
    draws = [np.array([batch["sample_draws"] for batch in e.values()]) for e in (first, second)]
    assert not (draws[0] == draws[1]).any(axis=1).all()
    for values in draws:
        assert values.dtype == np.int32
        assert 0 <= values.min() < values.max() < 1 << 24
        assert abs(values.mean() / (1 << 24) - 0.5) < 0.05


def test_masks_are_the_piece_or_mask_and_never_a_special_piece(load):
    inputs = load(documents_of(140))
    chosen = masked = 0
    for ids, batch in rows_of_epoch(inputs):
        places = batch["target_positions"][batch["targets"] > 0]
        tokens = int(batch["encoder_segments"].sum())
        assert len(places) == min(max(1, round(0.15 * tokens)), 7, tokens - 3 + 1)
        assert len(set(places.tolist())) == len(places)
        assert (ids[places] < CLS).all()
        changed = batch["encoder_ids"][places]
        assert np.isin(changed[changed != ids[places]], [MASK]).all()
        chosen += len(places)
        masked += int((changed == MASK).sum())
    assert abs(masked / chosen - 0.85) < 4 * np.sqrt(0.85 * 0.15 / chosen)


def test_types_and_segments_follow_the_separators(load):
    for ids, batch in rows_of_epoch(load(documents_of(80))):
        separators = np.flatnonzero(ids == SEP)
        positions = np.arange(len(ids))
        assert (batch["encoder_segments"] == (positions <= separators[-1])).all()
        second = (positions > separators[0]) & (positions <= separators[-1])
        assert (batch["encoder_types"] == second).all()


def test_spans_of_a_step_are_the_text_of_its_rows(load):
    documents = documents_of(50)
    inputs = load(documents)
    bounds = np.cumsum([0, *map(sum, documents)])
    for step in (0, 3):
        ((features, targets),) = inputs.batches(first_step=step, steps=1)
        ids = features["encoder_ids"].copy()
        filled = targets > 0
        ids[np.nonzero(filled)[0], features["target_positions"][filled]] = targets[filled]
        found = [[] for _ in range(BATCH)]
        for span in spans_in_step(inputs, step):
            start = bounds[span.document] + span.first_token
            assert start + span.tokens <= bounds[span.document + 1]
            found[span.row] += range(FIRST_ID + start, FIRST_ID + start + span.tokens)
        for row, text in zip(ids, found, strict=True):
            assert row[(row > 0) & (row < CLS)].tolist() == text


def test_a_batch_is_a_function_of_its_step(load):
    inputs = load(documents_of(40))
    (all_steps) = list(inputs.batches(first_step=0, steps=6))
    (later,) = list(inputs.batches(first_step=5, steps=1))
    for name, values in later[0].items():
        assert np.array_equal(values, all_steps[5][0][name]), name
