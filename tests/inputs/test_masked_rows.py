"""Rows of sentences with masked pieces.

Every id of the corpus occurs once, so that an id tells its position.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t5repro.config.presets.sizes import SIZES
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.pretrain import PretrainSettings, PretrainStage
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import ArtifactError, CorpusError
from t5repro.inputs.masked_rows import MaskedInputs, load_masked_inputs
from t5repro.inputs.sentence_layout import PairRows, RunRows
from t5repro.inputs.sentence_rows import Segments, truncate_pair
from t5repro.objectives.row_draws import RowDraws
from t5repro.systems.step_audit import spans_in_step, steps_of_document

VOCAB = VocabSettings(vocab_size=30_000, extra_ids=100)
CLS, SEP, MASK = 30_100, 30_101, 30_102
FIRST_ID = 3  # of the corpus: the id at position n is n + 3
BATCH = 64
LENGTH = 64

Corpus = Callable[..., dict[str, Path]]


@pytest.fixture
def write(tmp_path: Path) -> Corpus:
    """Write documents as lists of lengths of sentences."""

    def write_documents(documents: list[list[int]]) -> dict[str, Path]:
        bounds = np.cumsum([0, *(length for document in documents for length in document)])
        total = int(bounds[-1])
        first = np.cumsum([0, *map(len, documents)])
        assert total <= VOCAB.vocab_size - FIRST_ID
        names = ("ids", "offsets", "sentences", "word_starts")
        paths = {name: tmp_path / f"train.{name}" for name in names}
        (FIRST_ID + np.arange(total)).astype("<u2").tofile(paths["ids"])
        bounds[first].astype("<i8").tofile(paths["offsets"])
        bounds[:-1].astype("<i8").tofile(paths["sentences"])
        starts = np.random.default_rng(0).random(VOCAB.total_ids) < 0.6
        starts.astype(np.uint8).tofile(paths["word_starts"])
        return paths

    return write_documents


def documents_of(count: int, seed: int = 0, longest: int = 20) -> list[list[int]]:
    random = np.random.default_rng(seed)
    return [random.integers(2, 25, random.integers(1, longest)).tolist() for _ in range(count)]


def settings_of(**change: Any) -> PretrainSettings:
    masked_lm = {"short_row_share": 0.0, **change.pop("masked_lm", {})}
    if masked_lm.get("rows", "segment_pair") != "segment_pair":
        masked_lm.setdefault("pair_task", "none")
    sizes = {"batch_size": BATCH, "inputs_length": LENGTH, "targets_length": 12}
    return PretrainSettings(objective="masked_lm", **{**sizes, **change}, masked_lm=masked_lm)


def load(
    files: dict[str, Path], seed: int = 0, token_types: int = 2, **change: Any
) -> MaskedInputs:
    model = SIZES["bert_tiny"].model_copy(update={"token_types": token_types})
    stage = PretrainStage(
        seed=0, devices=DevicesSettings(), vocab=VOCAB, model=model, pretrain=settings_of(**change)
    )
    return load_masked_inputs(stage, **files, seed=seed)


def arrays(inputs: MaskedInputs, first_step: int, steps: int) -> list[dict[str, np.ndarray]]:
    return [
        {**features, "targets": targets}
        for features, targets in inputs.batches(first_step=first_step, steps=steps)
    ]


def epochs_of(inputs: MaskedInputs, count: int) -> list[dict[str, np.ndarray]]:
    """Return all rows of each of the first epochs, one after another."""
    rows = inputs.rows_per_epoch
    parts = arrays(inputs, 0, -(-count * rows // BATCH))
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return [
        {name: values[epoch * rows : (epoch + 1) * rows] for name, values in joined.items()}
        for epoch in range(count)
    ]


def original_ids(batch: dict[str, np.ndarray]) -> np.ndarray:
    """Return the rows before masking."""
    ids = batch["encoder_ids"].copy()
    for row, (places, targets) in enumerate(
        zip(batch["target_positions"], batch["targets"], strict=True)
    ):
        filled = targets > 0
        ids[row, places[filled]] = targets[filled]
    return ids


def segments_of(ids: np.ndarray) -> list[np.ndarray]:
    """Return the positions in the corpus of each segment of a row, checking its specials."""
    ids = ids[ids > 0]
    assert ids[0] == CLS
    assert ids[-1] == SEP
    ends = np.flatnonzero(ids == SEP)
    starts = np.append(1, ends[:-1] + 1)
    parts = [ids[low:high] - FIRST_ID for low, high in zip(starts, ends, strict=True)]
    for part in parts:
        assert len(part) > 0
        assert (np.diff(part) == 1).all()
    return parts


class Places:
    """Documents and sentences of positions in the corpus."""

    def __init__(self, documents: list[list[int]]) -> None:
        lengths = [length for document in documents for length in document]
        self.bounds = np.cumsum([0, *lengths])
        self.starts = set(self.bounds.tolist())
        owners = [n for n, document in enumerate(documents) for _ in document]
        self.document = np.repeat(owners, lengths)


def test_features_have_fixed_shapes_and_segments_types_and_padding(write) -> None:
    inputs = load(write(documents_of(60)))
    batch = arrays(inputs, 0, 1)[0]
    assert {name: values.shape for name, values in batch.items()} == {
        "encoder_ids": (BATCH, LENGTH),
        "encoder_segments": (BATCH, LENGTH),
        "encoder_types": (BATCH, LENGTH),
        "target_positions": (BATCH, 12),
        "pair_label": (BATCH,),
        "targets": (BATCH, 12),
    }
    assert {values.dtype for values in batch.values()} == {np.dtype(np.int32)}
    for batch in arrays(inputs, 0, 3):
        ids = original_ids(batch)
        assert (batch["encoder_segments"] == (ids > 0)).all()
        for row, types in zip(ids, batch["encoder_types"], strict=True):
            one, two = segments_of(row)
            expected = [0] * (len(one) + 2) + [1] * (len(two) + 1)
            assert types.tolist() == expected + [0] * (LENGTH - len(expected))
        masked = batch["encoder_ids"] != ids
        assert not masked[:, 0].any()
        assert not masked[ids == SEP].any()


@pytest.mark.parametrize("rows", ["full_sentences", "doc_sentences"])
def test_a_model_with_one_type_of_tokens_gets_zeros(write, rows: str) -> None:
    files = write(documents_of(60))
    assert not arrays(load(files, token_types=0), 0, 1)[0]["encoder_types"].any()
    batch = arrays(load(files, masked_lm={"rows": rows}), 0, 1)[0]
    assert not batch["encoder_types"].any()
    assert "pair_label" not in batch


@pytest.mark.parametrize("task", ["next_sentence", "sentence_order", "sentence_structure"])
def test_the_label_tells_how_the_segments_are_related(write, task: str) -> None:
    documents = documents_of(150)
    places, inputs = Places(documents), load(write(documents), masked_lm={"pair_task": task})
    swapped = followed = other = 0
    for batch in epochs_of(inputs, 3):
        for row, label in zip(original_ids(batch), batch["pair_label"], strict=True):
            one, two = segments_of(row)
            same_document = places.document[one[0]] == places.document[two[0]]
            assert len(set(places.document[one])) == len(set(places.document[two])) == 1
            assert len(one) + len(two) <= LENGTH - 3
            if not same_document:
                assert label == (2 if task == "sentence_structure" else 1)
                other += 1
            elif two[0] > one[0]:
                assert label == 0
                followed += 1
            else:
                assert (task == "next_sentence", label) == (False, 1)
                swapped += 1
    assert followed > 100
    assert other > 0
    assert (swapped > 100) == (task != "next_sentence")


def test_segments_begin_and_end_at_sentences_unless_they_were_shortened(write) -> None:
    documents = documents_of(150)
    places, inputs = Places(documents), load(write(documents))
    whole = 0
    for row in original_ids(epochs_of(inputs, 1)[0]):
        one, two = segments_of(row)
        if len(one) + len(two) < LENGTH - 3:
            for part in (one, two):
                assert {int(part[0]), int(part[-1]) + 1} <= places.starts
            whole += 1
    assert whole > 20


def test_half_of_the_second_segments_are_random_and_all_of_single_sentences(write) -> None:
    inputs = load(write(documents_of(300, longest=12)), batch_size=1024)
    single = (inputs.layout.counts == 1).mean()
    assert 0.02 < single < 0.5
    steps = 100
    labels = np.concatenate([batch["pair_label"] for batch in arrays(inputs, 0, steps)])
    assert len(labels) > 100_000
    expected = 0.5 + 0.5 * single
    assert abs(labels.mean() - expected) < 4 * np.sqrt(0.25 / len(labels))


def test_half_of_the_pairs_are_swapped(write) -> None:
    inputs = load(
        write(documents_of(300, longest=12)),
        batch_size=1024,
        masked_lm={"pair_task": "sentence_order"},
    )
    counters = inputs.counters(steps=100)
    rows = counters["rows"]
    foreign = counters["second_segments_of_other_documents"]
    single = (inputs.layout.counts == 1).mean()
    assert abs(foreign / rows - single) < 4 * np.sqrt(single / rows)
    swapped = (counters["positive_pairs"] - foreign) / (rows - foreign)
    assert abs(swapped - 0.5) < 4 * np.sqrt(0.25 / (rows - foreign))


def test_a_third_of_the_split_chunks_has_each_class_of_sentence_structure(write) -> None:
    """A chunk of one sentence cannot be divided: its B is of another document."""
    inputs = load(
        write(documents_of(300, longest=12)),
        batch_size=1024,
        masked_lm={"pair_task": "sentence_structure"},
    )
    single = (inputs.layout.counts == 1).mean()
    labels = np.concatenate([batch["pair_label"] for batch in arrays(inputs, 0, 100)])
    assert len(labels) > 100_000
    following, before, foreign = np.bincount(labels) / len(labels)
    error = 4 * np.sqrt(2 / 9 / len(labels))
    assert abs(following - (1 - single) / 3) < error
    assert abs(before - (1 - single) / 3) < error
    assert abs(foreign - (1 + 2 * single) / 3) < error


def test_shuffled_pieces_are_counted_with_their_trigrams(write) -> None:
    """A row in its original order is read back from ids and targets."""
    settings = {"pair_task": "sentence_structure", "shuffle_share": 0.15}
    inputs = load(write(documents_of(60)), masked_lm=settings, targets_length=20)
    counters = inputs.counters(steps=4)
    batches = arrays(inputs, 0, 4)
    targets = sum((batch["targets"] > 0).sum() for batch in batches)
    assert counters["target_tokens"] == targets
    assert counters["shuffled_tokens"] == 3 * counters["shuffled_trigrams"] > 100
    plain = load(write(documents_of(60)), masked_lm={**settings, "shuffle_share": 0})
    assert "shuffled_tokens" not in plain.counters(steps=4)
    masked = plain.counters(steps=4)["target_tokens"]
    assert counters["target_tokens"] == masked + counters["shuffled_tokens"]
    for batch in batches:
        for row in original_ids(batch):
            segments_of(row)  # of consecutive ids


def test_splits_and_other_documents_are_even(write) -> None:
    documents = [[8, 8, 8, 8]] * 10
    places, inputs = Places(documents), load(write(documents), batch_size=1024)
    splits, others = [], []
    for batch in arrays(inputs, 0, 20):
        for row, label in zip(original_ids(batch), batch["pair_label"], strict=True):
            one, two = segments_of(row)
            splits.append(len(one) // 8)
            if label:
                own, other = places.document[one[0]], places.document[two[0]]
                others.append((other - own) % 10)
                assert two[0] % 8 == 0
    shares = np.bincount(splits)[1:] / len(splits)
    assert len(shares) == 3
    assert np.abs(shares - 1 / 3).max() < 4 * np.sqrt(2 / 9 / len(splits))
    shares = np.bincount(others) / len(others)
    assert shares[0] == 0
    assert np.abs(shares[1:] - 1 / 9).max() < 4 * np.sqrt(1 / 9 / len(others))


def test_a_pair_without_a_task_is_consecutive(write) -> None:
    documents = documents_of(100)
    places = Places(documents)
    inputs = load(write(documents), masked_lm={"pair_task": "none"})
    batch = epochs_of(inputs, 1)[0]
    assert "pair_label" not in batch
    single = 0
    for row in original_ids(batch):
        parts = segments_of(row)
        assert len(set(places.document[np.concatenate(parts)])) == 1
        single += len(parts) == 1
        if len(parts) == 2 and sum(map(len, parts)) < LENGTH - 3:
            assert parts[0][-1] + 1 == parts[1][0]
    assert single == (inputs.layout.counts == 1).sum()


def test_chunks_are_the_sentences_of_a_document_until_the_length_is_reached(write) -> None:
    documents = documents_of(100)
    layout = load(write(documents)).layout
    assert isinstance(layout, PairRows)
    expected, sentence = [], 0
    for document in documents:
        chunk = 0
        length = 0
        for number, tokens in enumerate(document):
            chunk, length = chunk + 1, length + tokens
            if length >= LENGTH - 3 or number == len(document) - 1:
                expected.append((sentence + number + 1 - chunk, chunk))
                chunk = length = 0
        sentence += len(document)
    assert list(zip(layout.firsts, layout.counts, strict=True)) == expected


def test_sentence_pairs_have_one_sentence_and_the_next_or_one_of_another_document(write) -> None:
    documents = documents_of(150)
    places = Places(documents)
    rows = {"rows": "sentence_pair", "pair_task": "next_sentence"}
    inputs = load(write(documents), masked_lm=rows)
    batch = epochs_of(inputs, 1)[0]
    read: list[int] = []
    for row, label in zip(original_ids(batch), batch["pair_label"], strict=True):
        first, second = segments_of(row)
        for part in (first, second):
            assert {part[0], part[-1] + 1} <= places.starts
            assert len(places.starts & set(range(part[0], part[-1] + 2))) == 2
        is_next = first[-1] + 1 == second[0]
        is_same_document = places.document[first[0]] == places.document[second[0]]
        # The first sentence of the next document is another one, although it follows.
        assert (is_next and is_same_document) is (label == 0)
        assert is_same_document is np.bool_(label == 0)
        read.append(first[0])
    assert read
    assert len(set(read)) == len(read)
    pairs = sum(-(-len(document) // 2) for document in documents)
    assert inputs.layout.rows == pairs == len(read)


def test_short_rows_have_even_target_lengths_one_for_each_document(write) -> None:
    sentences, count = 20, 700
    documents = [[2] * sentences] * count
    layout = load(write(documents), masked_lm={"short_row_share": 1.0}).layout
    targets, owner = layout.targets, layout.firsts // sentences
    of_document = targets[np.searchsorted(owner, np.arange(count))]
    assert (targets == of_document[owner]).all()  # BERT draws it before it reads the sentences
    assert (of_document.min(), of_document.max()) == (2, LENGTH - 3)
    middle, deviation = (2 + LENGTH - 3) / 2, (LENGTH - 4) / np.sqrt(12)
    assert abs(of_document.mean() - middle) < 4 * deviation / np.sqrt(count)
    lengths = layout.counts * 2
    assert ((lengths >= targets) | (np.cumsum(layout.counts) % sentences == 0)).all()
    assert (lengths - targets <= 1).all()
    few = load(write(documents), masked_lm={"short_row_share": 0.1}).layout
    is_short = few.targets < LENGTH - 3
    short_documents = len(np.unique(few.firsts[is_short] // sentences)) / count
    assert abs(short_documents - 0.1 * 59 / 60) < 4 * np.sqrt(0.09 / count)


@pytest.mark.parametrize("rows", ["full_sentences", "doc_sentences"])
def test_runs_have_whole_sentences_and_every_one_once_in_an_epoch(write, rows: str) -> None:
    documents = documents_of(120)
    places, inputs = Places(documents), load(write(documents), masked_lm={"rows": rows})
    seen: list[int] = []
    for row in original_ids(epochs_of(inputs, 2)[1]):
        parts = segments_of(row)
        owners = [set(places.document[part]) for part in parts]
        assert all(len(owner) == 1 for owner in owners)
        assert rows == "full_sentences" or len(parts) == 1
        for part in parts:
            assert {int(part[0]), int(part[-1]) + 1} <= places.starts
            seen += part.tolist()
    assert sorted(seen) == list(range(places.bounds[-1]))


def test_full_sentences_fill_rows_greedily_across_documents(write) -> None:
    documents = documents_of(120)
    places, inputs = Places(documents), load(write(documents), masked_lm={"rows": "full_sentences"})
    layout = inputs.layout
    assert isinstance(layout, RunRows)
    order = [int(places.document[start]) for start in layout.starts]
    assert order != sorted(order)
    expected: list[int] = []
    length, owner = LENGTH, -1
    for document in order:
        for tokens in documents[document]:
            added = tokens + (owner >= 0 and owner != document)  # with the separator
            if length + added > LENGTH - 2:
                expected.append(0)
                length, added = 0, tokens
            expected[-1] += tokens
            length, owner = length + added, document
    assert layout.lengths.tolist() == expected


@pytest.mark.parametrize("rows", ["full_sentences", "doc_sentences"])
def test_a_sentence_longer_than_a_row_is_cut_into_rows(write, rows: str) -> None:
    inputs = load(write([[5, 150, 7], [3]]), masked_lm={"rows": rows}, batch_size=1)
    lengths = sorted(inputs.layout.lengths.tolist())
    assert sum(lengths) == 165
    assert lengths[-2:] == [LENGTH - 2] * 2


def test_the_batch_of_a_step_does_not_depend_on_the_first_step(write) -> None:
    files = write(documents_of(60))
    for unit in ("piece", "span"):
        whole = arrays(load(files, masked_lm={"unit": unit}), 0, 8)
        later = arrays(load(files, masked_lm={"unit": unit}), 5, 3)
        for one, two in zip(whole[5:], later, strict=True):
            assert all((one[name] == two[name]).all() for name in one)


def sorted_rows(batch: dict[str, np.ndarray]) -> list[list[int]]:
    names = [name for name in batch if batch[name].ndim == 2]
    return sorted(np.concatenate([batch[name] for name in names], axis=1).tolist())


@pytest.mark.parametrize("unit", ["piece", "word", "ngram", "span"])
def test_copies_repeat_and_epochs_without_copies_differ(write, unit: str) -> None:
    files = write(documents_of(60))
    twice = load(files, masked_lm={"copies": 2, "unit": unit})
    epochs = epochs_of(twice, 3)
    assert sorted_rows(epochs[0]) == sorted_rows(epochs[2]) != sorted_rows(epochs[1])
    assert (epochs[0]["encoder_ids"] != epochs[2]["encoder_ids"]).any()  # in another order
    fresh = load(files, masked_lm={"unit": unit})
    rows = [sorted_rows(epoch) for epoch in epochs_of(fresh, 3)]
    assert rows[0] == sorted_rows(epochs[0])
    assert rows[2] not in rows[:2]


def test_another_seed_has_other_rows(write) -> None:
    files = write(documents_of(60))
    one, two = (sorted_rows(epochs_of(load(files, seed=seed), 1)[0]) for seed in (0, 1))
    assert one != two


def test_roberta_masks_special_pieces_as_often_as_all_others(write) -> None:
    inputs = load(
        write(documents_of(200)),
        batch_size=1024,
        masked_lm={"rows": "full_sentences", "mask_special_pieces": True},
        targets_length=30,
    )
    specials = masked_specials = tokens = masked = 0
    for batch in arrays(inputs, 0, 10):
        ids = original_ids(batch)
        is_special = ids >= CLS
        is_masked = np.zeros_like(is_special)
        for row, (places, targets) in enumerate(
            zip(batch["target_positions"], batch["targets"], strict=True)
        ):
            is_masked[row, places[targets > 0]] = True
        specials, masked_specials = (
            specials + is_special.sum(),
            masked_specials + (is_special & is_masked).sum(),
        )
        tokens, masked = tokens + (ids > 0).sum(), masked + is_masked.sum()
    assert tokens > 100_000
    assert abs(masked / tokens - 0.15) < 4 * np.sqrt(0.15 * 0.85 / tokens)
    assert abs(masked_specials / specials - 0.15) < 4 * np.sqrt(0.15 * 0.85 / specials)


def test_the_counters_are_those_of_the_probed_batches(write) -> None:
    inputs = load(write(documents_of(60)), masked_lm={"unit": "ngram"})
    counters = inputs.counters(steps=4)
    batches = arrays(inputs, 0, 4)
    assert counters["probed_steps"] == 4
    assert counters["rows"] == 4 * BATCH
    assert counters["rows_per_epoch"] == inputs.rows_per_epoch
    assert counters["input_tokens"] == sum(batch["encoder_segments"].sum() for batch in batches)
    assert counters["target_tokens"] == sum((batch["targets"] > 0).sum() for batch in batches)
    assert counters["positive_pairs"] == sum(batch["pair_label"].sum() for batch in batches)
    assert counters["masked_tokens"] == sum((b["encoder_ids"] == MASK).sum() for b in batches)
    assert counters["padding_share"] == pytest.approx(
        1 - counters["input_tokens"] / (4 * BATCH * LENGTH), abs=1e-6
    )
    assert inputs.counters(steps=0) == {"probed_steps": 0}


@pytest.mark.parametrize("rows", ["segment_pair", "sentence_pair", "full_sentences"])
def test_the_spans_of_a_step_are_the_text_of_its_rows(write, rows: str) -> None:
    documents = documents_of(60)
    places, inputs = Places(documents), load(write(documents), masked_lm={"rows": rows})
    (batch,) = arrays(inputs, 3, 1)
    expected = [
        (row, int(places.document[part[0]]), int(part[0]), len(part))
        for row, ids in enumerate(original_ids(batch))
        for part in segments_of(ids)
    ]
    spans = [
        (
            span.row,
            span.document,
            int(inputs.offsets[span.document]) + span.first_token,
            span.tokens,
        )
        for span in spans_in_step(inputs, 3)
    ]
    assert spans == expected


@pytest.mark.parametrize("rows", ["segment_pair", "sentence_pair", "full_sentences"])
def test_the_steps_of_a_document_are_those_whose_spans_name_it(write, rows: str) -> None:
    inputs = load(write(documents_of(60)), masked_lm={"rows": rows}, batch_size=4)
    by_step = [{span.document for span in spans_in_step(inputs, step)} for step in range(12)]
    for document in (0, 31):
        expected = [step for step, documents in enumerate(by_step) if document in documents]
        assert steps_of_document(inputs, document, steps=12) == expected
    with pytest.raises(ArtifactError, match="there is no document 60; they go from 0 to 59"):
        steps_of_document(inputs, 60, steps=12)


def truncated_by_loop(first: int, second: int, most: int) -> tuple[int, int]:
    while first + second > most:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(1, 90), st.integers(0, 90)), min_size=1), st.integers(1, 60))
def test_lengths_are_those_of_removing_one_id_at_a_time(pairs, most: int) -> None:
    lengths = np.array(pairs)
    rows = np.arange(len(pairs))
    one = Segments(np.zeros_like(rows), lengths[:, 0])
    two = Segments(100 + np.zeros_like(rows), 100 + lengths[:, 1])
    short_one, short_two = truncate_pair(one, two, most, RowDraws(0, rows, rows * 0))
    for row, (first, second) in enumerate(pairs):
        assert truncated_by_loop(first, second, most) == (
            short_one.lengths[row],
            short_two.lengths[row],
        )
    for short, full in ((short_one, one), (short_two, two)):
        assert (short.begin >= full.begin).all()
        assert (short.stop <= full.stop).all()


def test_ids_leave_a_segment_at_the_front_and_the_back_by_a_coin() -> None:
    rows = np.arange(100_000)
    one = Segments(np.zeros_like(rows), np.full(100_000, 50))
    short, _ = truncate_pair(
        one, Segments(rows * 0, rows * 0 + 10), 40, RowDraws(0, rows, rows * 0)
    )
    front = short.begin
    assert (short.lengths == 30).all()
    assert abs(front.mean() - 10) < 4 * np.sqrt(5 / 100_000)
    assert abs(front.var() / 5 - 1) < 4 * np.sqrt(2 / 100_000)


def test_only_the_first_tokens_and_one_chunk_of_a_document_are_used(write) -> None:
    documents = documents_of(60)
    places = Places(documents)
    files = write(documents)
    inputs = load(files, unique_tokens=3000, masked_lm={"rows": "doc_sentences"})
    last = int(inputs.layout.starts[-1] + inputs.layout.lengths.sum())
    text = np.concatenate([np.concatenate(segments_of(row)) for row in all_rows(inputs)])
    assert text.max() < 3000 <= places.bounds[np.searchsorted(places.bounds, text.max() + 1) + 1]
    assert last >= text.max()
    chunked = load(files, chunk_tokens=100, masked_lm={"rows": "doc_sentences"})
    owners = [places.document[np.concatenate(segments_of(row))] for row in all_rows(chunked)]
    assert np.bincount(np.concatenate(owners)).max() <= 100


def all_rows(inputs: MaskedInputs) -> np.ndarray:
    return original_ids(epochs_of(inputs, 1)[0])


def test_one_document_has_no_other_one_for_a_pair(write) -> None:
    files = write([[5, 6, 7]])
    for task in ("next_sentence", "sentence_order", "sentence_structure"):
        with pytest.raises(
            CorpusError, match=f"has one document .* {task} .* set pair_task to none"
        ):
            load(files, masked_lm={"pair_task": task})
    assert load(files, masked_lm={"pair_task": "none"}).rows_per_epoch == 1


def test_text_without_a_whole_sentence_is_too_little(write) -> None:
    with pytest.raises(CorpusError, match="no whole sentence in 2 documents; give it more text"):
        load(write([[50], [60]]), unique_tokens=40)
    with pytest.raises(CorpusError, match="no whole sentence in 0 documents"):
        load(write([]))


def test_damaged_files_are_refused_with_the_rule_that_writes_them(write) -> None:
    files = write(documents_of(5))
    for name, rule in (("ids", "tokens"), ("sentences", "sentences"), ("word_starts", "sentences")):
        content = files[name].read_bytes()
        files[name].write_bytes(content[:-1])
        with pytest.raises(ArtifactError, match=f"rerun the rule {rule}"):
            load(files)
        files[name].unlink()
        with pytest.raises(ArtifactError, match=f"is missing; run the rule {rule}"):
            load(files)
        files[name].write_bytes(content)
