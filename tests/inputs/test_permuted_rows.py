"""Rows of XLNet, beside a loop over the text of each slot.

Every id of the corpus occurs once, so that an id tells its position.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t5repro.config.presets.sizes import SIZES
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.pretrain import PretrainSettings, PretrainStage
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import ArtifactError, CorpusError
from t5repro.inputs.permuted_rows import PermutedInputs, load_permuted_inputs
from t5repro.inputs.stream_rows import pieces_of
from t5repro.objectives.row_draws import Draw, RowDraws
from t5repro.systems.step_audit import spans_in_step, steps_of_document

VOCAB = VocabSettings(vocab_size=30_000, extra_ids=100)
CLS, SEP, EOD = 30_100, 30_101, 30_106
FIRST_ID = 3  # of the corpus: the id at position n is n + 3
BATCH, LENGTH, REUSED, TARGETS = 6, 40, 16, 8
SEGMENTS = LENGTH - REUSED - 3

Corpus = Callable[..., dict[str, Path]]


@pytest.fixture
def write(tmp_path: Path) -> Corpus:
    """Write documents as lists of lengths of sentences."""

    def write_documents(documents: list[list[int]]) -> dict[str, Path]:
        bounds = np.cumsum([0, *(length for document in documents for length in document)])
        first = np.cumsum([0, *map(len, documents)])
        names = ("ids", "offsets", "sentences", "word_starts")
        paths = {name: tmp_path / f"train.{name}" for name in names}
        (FIRST_ID + np.arange(bounds[-1])).astype("<u2").tofile(paths["ids"])
        bounds[first].astype("<i8").tofile(paths["offsets"])
        bounds[:-1].astype("<i8").tofile(paths["sentences"])
        starts = np.random.default_rng(0).random(VOCAB.total_ids) < 0.6
        starts.astype(np.uint8).tofile(paths["word_starts"])
        return paths

    return write_documents


def documents_of(count: int, seed: int = 0, longest: int = 12) -> list[list[int]]:
    random = np.random.default_rng(seed)
    return [random.integers(1, 15, random.integers(1, longest)).tolist() for _ in range(count)]


def load(files: dict[str, Path], *, seed: int = 0, **change: Any) -> PermutedInputs:
    options = {"reuse_share": REUSED / LENGTH, **change.pop("permutation_lm", {})}
    sizes = {"batch_size": BATCH, "inputs_length": LENGTH, "targets_length": TARGETS}
    settings = PretrainSettings(
        objective="permutation_lm", **{**sizes, **change}, permutation_lm=options
    )
    stage = PretrainStage(
        seed=0, devices=DevicesSettings(), vocab=VOCAB, model=SIZES["xlnet_tiny"], pretrain=settings
    )
    return load_permuted_inputs(stage, **files, seed=seed)


def slots_of(inputs: PermutedInputs, documents: list[list[int]], number: int = 0) -> Any:
    """Return ids and sentence numbers of each slot of a pass, written out."""
    files = inputs.read.slots(number).stream.files  # only the order of the documents
    bounds = np.cumsum([0, *(sum(lengths) for lengths in documents)])
    text, sentences = [], []
    for begin in files:
        lengths = documents[int(np.searchsorted(bounds, begin))]
        for length in lengths:
            sentences += [sentences[-1] + 1 if sentences else 0] * length
        text += list(range(FIRST_ID + begin, FIRST_ID + begin + sum(lengths)))
        text.append(EOD)
        sentences.append(sentences[-1])
    directions = 2 if inputs.settings.permutation_lm.both_directions else 1
    length = len(text) // (BATCH // directions)
    for slot in range(BATCH):
        start = slot // directions * length
        part = (text[start : start + length], sentences[start : start + length])
        yield tuple(side[::-1] for side in part) if slot % directions else part


def looped_row(ids: list[int], sentences: list[int], step: int, number: int, draws: Any) -> Any:
    """Return a row of a slot by XLNet's ``_split_a_and_b``, or None if it cannot be filled."""
    split, coin, other = draws
    begin = step * REUSED + REUSED
    end, cuts = begin + 1, []
    while end < len(ids):
        if sentences[end] != sentences[end - 1]:
            if end - begin >= SEGMENTS:
                break
            cuts.append(end)
        end += 1
    if end >= len(ids):
        return None
    follows = bool(cuts) and coin >= 0.5
    a_end = cuts[min(int(split * len(cuts)), len(cuts) - 1)] if cuts else end
    if follows:
        b_begin, b_end = a_end, end
    else:
        length = max(1, SEGMENTS - (a_end - begin))
        b_begin = min(int(other * (len(ids) - length)), len(ids) - length - 1)
        b_end = b_begin + length
        while b_begin > 0 and sentences[b_begin - 1] == sentences[b_begin]:
            b_begin -= 1
        while b_end < len(ids) - 1 and sentences[b_end - 1] == sentences[b_end]:
            b_end += 1
    while a_end - begin + b_end - b_begin > SEGMENTS:
        if a_end - begin > b_end - b_begin:
            a_end -= 1
        else:
            b_end -= 1
    a, b = ids[begin:a_end], ids[b_begin:b_end]
    row = [*ids[begin - REUSED : begin], *a, SEP, *b, SEP, CLS]
    types = [0] * (REUSED + len(a) + 1) + [1] * (len(b) + 1) + [2]
    return row, types, follows


def draws_of(step: int, slot: int, seed: int = 0) -> tuple[float, float, float]:
    drawn = RowDraws(seed, np.array([slot]), np.array([step]))

    def fine(use: Draw) -> float:
        high, low = drawn.words(use, 2)[0].astype(float) * 2.0**-32
        return float(high + low * 2.0**-32)

    return fine(Draw.SPLIT), float(drawn.uniform(Draw.PAIR, 1)[0, 0]), fine(Draw.OTHER_SENTENCE)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("both_directions", [True, False])
def test_rows_are_those_of_a_loop_over_the_text_of_their_slot(write, seed, both_directions):
    documents = documents_of(60, seed)
    inputs = load(write(documents), seed=seed, permutation_lm={"both_directions": both_directions})
    steps = inputs.read.steps_of_pass(0)
    assert steps > 10
    seen_follows = set()
    for first, number in ((0, 0), (steps, 1)):
        slots = list(slots_of(inputs, documents, number))
        for step in range(inputs.read.steps_of_pass(number)):
            rows = inputs.read(first + step)
            for slot, (ids, sentences) in enumerate(slots):
                draws = draws_of(first + step, slot, seed)
                row, types, follows = looped_row(ids, sentences, step, number, draws)
                assert rows.ids[slot].tolist() == row
                assert rows.types[slot].tolist() == types
                assert rows.follows[slot] == follows
                seen_follows.add(follows)
        # The pass ends because one slot cannot fill the row after the last.
        after = [
            looped_row(ids, sentences, step + 1, number, draws_of(first + step + 1, slot, seed))
            for slot, (ids, sentences) in enumerate(slots)
        ]
        assert None in after
    assert seen_follows == {True, False}


def test_a_slot_goes_on_where_its_last_row_was_reused_until(write):
    documents = documents_of(80)
    inputs = load(write(documents))
    slots = list(slots_of(inputs, documents))
    for slot, (ids, _) in enumerate(slots):
        read = [
            token
            for step in range(inputs.read.steps_of_pass(0))
            for token in inputs.read(step).ids[slot, :REUSED].tolist()
        ]
        assert read == ids[: len(read)]
    forwards, backwards = slots[0][0], slots[1][0]
    assert forwards == backwards[::-1]
    assert EOD in forwards


def test_a_batch_is_a_function_of_its_step(write):
    inputs = load(write(documents_of(60)))
    whole = list(inputs.batches(first_step=0, steps=9))
    parts = list(inputs.batches(first_step=6, steps=3))
    for (features, targets), (again, targets_again) in zip(whole[6:], parts, strict=True):
        assert np.array_equal(targets, targets_again)
        assert all(np.array_equal(features[name], again[name]) for name in features)
    assert {name: values.shape for name, values in features.items()} == {
        **dict.fromkeys(
            ("encoder_ids", "encoder_segments", "encoder_types", "encoder_order"), (BATCH, LENGTH)
        ),
        "target_positions": (BATCH, TARGETS),
    }
    at_positions = np.take_along_axis(features["encoder_ids"], features["target_positions"], 1)
    assert np.array_equal(targets[targets > 0], at_positions[targets > 0])


def test_the_manifest_counts_targets_separators_and_pairs(write):
    inputs = load(write(documents_of(120)))
    steps = inputs.read.steps_of_pass(0) + 4
    counts = inputs.counters(steps=steps)
    probed = counts["probed_steps"]
    rows = probed * BATCH
    assert probed == 32
    assert counts["input_tokens"] == rows * LENGTH
    assert counts["target_tokens"] + counts["selected_separators"] == rows * TARGETS
    assert 0 < counts["selected_separators"] < 0.2 * rows * TARGETS
    assert 0.3 * rows < counts["following_segments"] < 0.7 * rows
    assert counts["epochs"] == pytest.approx(1 + 4 / inputs.read.steps_of_pass(1), abs=1e-4)
    assert inputs.counters(steps=0) == {"probed_steps": 0}


def test_an_audit_names_the_documents_of_a_step_and_the_steps_of_a_document(write):
    documents = documents_of(50)
    inputs = load(write(documents))
    bounds = np.cumsum([0, *(sum(lengths) for lengths in documents)])
    steps = inputs.read.steps_of_pass(0) + 3
    of_document: dict[int, set[int]] = {number: set() for number in range(50)}
    for step in range(steps):
        ids = inputs.read(step).ids
        text = ids[ids < CLS] - FIRST_ID
        of_tokens = np.searchsorted(bounds, text, side="right") - 1
        for document in of_tokens:
            of_document[int(document)].add(step)
        spans = spans_in_step(inputs, step)
        assert sum(span.tokens for span in spans) == len(text)
        covered = [
            token
            for span in spans
            for token in range(
                bounds[span.document] + span.first_token,
                bounds[span.document] + span.first_token + span.tokens,
            )
        ]
        assert sorted(covered) == sorted(text.tolist())
    for document, expected in of_document.items():
        assert steps_of_document(inputs, document, steps=steps) == sorted(expected)
    with pytest.raises(ArtifactError, match="there is no document 50"):
        inputs.steps_of([50], steps=1)


def test_runs_of_places_are_pieces_in_either_direction():
    places = np.array([[5, 6, 7, -1, 7, 6, 5], [9, 8, -1, 3, 4, 20, 21]])
    starts, lengths, rows = pieces_of(places)
    assert starts.tolist() == [5, 5, 8, 3, 20]
    assert lengths.tolist() == [3, 3, 2, 2, 2]
    assert rows.tolist() == [0, 0, 1, 1, 1]


def test_a_corpus_that_fills_no_row_of_each_slot_is_refused(write):
    files = write([[5, 5]] * 8)
    with pytest.raises(CorpusError, match="88 tokens, which do not fill one row of 40 tokens"):
        load(files)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 7}, "batch_size 7 is odd"),
        ({"permutation_lm": {"order_blocks": 5}}, "order_blocks 5 does not divide"),
        ({"targets_length": 38}, "19 and 19 targets"),
        ({"permutation_lm": {"reuse_share": 0.95}}, "reuse_share 0.95 divides"),
    ],
)
def test_rows_that_do_not_exist_are_refused_by_name(change, message):
    options = {"reuse_share": REUSED / LENGTH, **change.pop("permutation_lm", {})}
    sizes = {"batch_size": BATCH, "inputs_length": LENGTH, "targets_length": TARGETS, **change}
    with pytest.raises(ValueError, match=message):
        PretrainSettings(objective="permutation_lm", permutation_lm=options, **sizes)
