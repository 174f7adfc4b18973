"""Batches of pre-training: what is in them, and that step n depends on n alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import ArtifactError, CorpusError, SettingsError
from t5repro.inputs.batches import Batches
from t5repro.inputs.corpus_layout import first_tokens
from t5repro.inputs.pretraining import load_corpus_inputs
from t5repro.objectives import table
from t5repro.objectives.row_lengths import corruption_limits, segment_length

DOCUMENTS = [40, 7, 130, 3, 25, 64, 90, 11, 200, 55, 5, 77]
LAYOUTS = pytest.mark.parametrize(
    ("noise_mask", "concatenate"),
    [("random_spans", True), ("random_spans", False), ("iid", True), ("iid", False)],
)


def settings_of(noise_mask: str = "random_spans", concatenate: bool = True, **more: Any):
    return PretrainSettings(
        **{
            "noise_mask": noise_mask,
            "concatenate_documents": concatenate,
            "inputs_length": 32,
            "targets_length": 24,
            "batch_size": 4,
            **more,
        }
    )


def load(settings: PretrainSettings, files: tuple[Path, Path], vocab: VocabSettings, seed: int = 0):
    return load_corpus_inputs(settings, ids=files[0], offsets=files[1], vocab=vocab, seed=seed)


def arrays(batches: Batches) -> list[dict[str, np.ndarray]]:
    return [{**features, "targets": targets} for features, targets in batches]


def same(one: list[dict[str, np.ndarray]], other: list[dict[str, np.ndarray]]) -> bool:
    return len(one) == len(other) and all(
        (a[name] == b[name]).all() for a, b in zip(one, other, strict=True) for name in a
    )


def restored(batch: dict[str, np.ndarray]) -> list[list[int]]:
    """Return the raw tokens of each segment, from inputs and targets together."""
    texts = []
    for row in range(len(batch["targets"])):
        for number in range(1, batch["encoder_segments"][row].max() + 1):
            inputs = batch["encoder_ids"][row][batch["encoder_segments"][row] == number]
            targets = batch["targets"][row][batch["decoder_segments"][row] == number]
            assert inputs[-1] == targets[-1] == 1
            noise: dict[int, list[int]] = {}
            for token in targets[:-1].tolist():
                if token >= 900:
                    noise[token] = current = []
                else:
                    current.append(token)
            text: list[int] = []
            for token in inputs[:-1].tolist():
                text += noise.pop(token) if token >= 900 else [token]
            assert not noise
            texts.append(text)
    return texts


@LAYOUTS
def test_step_n_depends_on_n_alone(write_tokens, vocab, noise_mask, concatenate):
    inputs = load(settings_of(noise_mask, concatenate), write_tokens(DOCUMENTS), vocab)
    whole = arrays(inputs.batches(first_step=0, steps=30))
    assert same(arrays(inputs.batches(first_step=23, steps=7)), whole[23:])
    assert not same(whole[:7], whole[23:])


OBJECTIVES = pytest.mark.parametrize(
    "objective",
    ["replace_spans", "drop_tokens", "mass_style", "bert_style", "deshuffling", "prefix_lm", "lm"],
)


def pairs_of(batch: dict[str, np.ndarray]) -> list[list[tuple[list[int], list[int]]]]:
    """Return inputs and targets of each segment, row by row."""
    rows = []
    for row, segments in enumerate(batch["decoder_segments"]):
        inputs, numbers = batch["encoder_ids"][row], batch["encoder_segments"][row]
        rows.append(
            [
                (
                    inputs[numbers == number].tolist(),
                    batch["targets"][row][segments == number].tolist(),
                )
                for number in range(1, segments.max() + 1)
            ]
        )
    return rows


@OBJECTIVES
@pytest.mark.parametrize("concatenate", [True, False])
def test_a_decoder_alone_reads_the_same_pairs_one_behind_the_other(
    write_tokens, vocab, objective, concatenate
):
    ids, offsets = write_tokens(DOCUMENTS)
    settings = settings_of("iid", concatenate, objective=objective, targets_length=34)
    apart, joined = (
        arrays(
            load_corpus_inputs(
                settings, ids=ids, offsets=offsets, vocab=vocab, seed=0, joined=flag
            ).batches(first_step=2, steps=6)
        )
        for flag in (False, True)
    )
    width = 34 if objective == "lm" else 32 + 34
    for pairs, batch in zip(map(pairs_of, apart), joined, strict=True):
        twin = {
            name: np.zeros((4, width), np.int32)
            for name in ("decoder_ids", "decoder_segments", "decoder_prefix", "targets")
        }
        for row, segments in enumerate(pairs):
            start = 0
            for number, (inputs, targets) in enumerate(segments, start=1):
                text = [*inputs, *targets]
                stop = start + len(text)
                twin["decoder_ids"][row, start:stop] = [0, *text[:-1]]
                twin["decoder_segments"][row, start:stop] = number
                twin["decoder_prefix"][row, start : start + len(inputs) + 1] = 1
                twin["targets"][row, start:stop] = [*[0] * len(inputs), *targets]
                start = stop
        assert set(batch) == set(twin)
        for name, expected in twin.items():
            assert (batch[name] == expected).all(), name


@OBJECTIVES
@pytest.mark.parametrize("concatenate", [True, False])
def test_every_objective_is_a_function_of_the_step_and_is_never_cut(
    write_tokens, vocab, objective, concatenate
):
    settings = settings_of("iid", concatenate, objective=objective, targets_length=34)
    inputs = load(settings, write_tokens(DOCUMENTS), vocab)
    whole = arrays(inputs.batches(first_step=0, steps=8))
    assert same(arrays(inputs.batches(first_step=5, steps=3)), whole[5:])
    counters = inputs.counters(steps=8)
    assert counters["cut_inputs"] == counters["cut_targets"] == 0
    assert counters["spans_past_sentinels"] == 0
    fills = concatenate and objective == "lm"  # whose segments are as long as its rows
    assert counters["padding_share"] < 0.9
    assert (counters["padding_share"] == 0) == fills


def test_repeated_data_are_the_first_tokens_of_the_corpus_to_the_token(write_tokens, vocab):
    for concatenate in (True, False):
        settings = settings_of(concatenate=concatenate, unique_tokens=250)
        inputs = load(settings, write_tokens(DOCUMENTS), vocab)
        seen = set()
        for batch in arrays(inputs.batches(first_step=0, steps=60)):
            for row in (batch["encoder_ids"], batch["targets"]):
                seen |= set((row[(row >= 3) & (row < 893)] - 3).tolist())
        # What fills no segment, or is too short to be one, is left out.
        assert seen <= set(range(250))
        assert len(seen) > 200
        assert inputs.offsets[-1] == 250
    with pytest.raises(CorpusError, match="unique_tokens is 708, the corpus has 707 tokens"):
        load(settings_of(unique_tokens=708), write_tokens(DOCUMENTS), vocab)


def test_a_smaller_subset_is_the_beginning_of_a_larger_one():
    offsets = np.cumsum([0, *DOCUMENTS])
    assert first_tokens(offsets, 0) is offsets
    assert first_tokens(offsets, 707).tolist() == offsets.tolist()
    assert first_tokens(offsets, 177).tolist() == [0, 40, 47, 177]
    assert first_tokens(offsets, 178).tolist() == [0, 40, 47, 177, 178]
    assert first_tokens(offsets, 1).tolist() == [0, 1]


def test_sentinels_past_the_vocabulary_are_counted(write_tokens):
    few = VocabSettings(vocab_size=998, extra_ids=2)
    inputs = load(settings_of("iid", noise_density=0.4), write_tokens(DOCUMENTS), few)
    counters = inputs.counters(steps=8)
    assert counters["segments_past_sentinels"] == counters["segments"] == 32
    assert counters["spans_past_sentinels"] > 32


@LAYOUTS
def test_the_seed_changes_every_batch(write_tokens, vocab, noise_mask, concatenate):
    files = write_tokens(DOCUMENTS)
    settings = settings_of(noise_mask, concatenate)
    one, other = (
        arrays(load(settings, files, vocab, seed).batches(first_step=0, steps=5)) for seed in (0, 1)
    )
    assert all(
        (a["encoder_ids"] != b["encoder_ids"]).any() for a, b in zip(one, other, strict=True)
    )


@LAYOUTS
def test_every_batch_has_int32_of_one_shape(write_tokens, vocab, noise_mask, concatenate):
    inputs = load(settings_of(noise_mask, concatenate), write_tokens(DOCUMENTS), vocab)
    batches = arrays(inputs.batches(first_step=0, steps=3))
    assert len(batches) == 3
    for batch in batches:
        assert {name: array.shape for name, array in batch.items()} == {
            "encoder_ids": (4, 32),
            "encoder_segments": (4, 32),
            "decoder_ids": (4, 24),
            "decoder_segments": (4, 24),
            "targets": (4, 24),
        }
        assert {array.dtype for array in batch.values()} == {np.dtype("int32")}


@LAYOUTS
def test_the_decoder_reads_the_targets_shifted_within_their_segment(
    write_tokens, vocab, noise_mask, concatenate
):
    inputs = load(settings_of(noise_mask, concatenate), write_tokens(DOCUMENTS), vocab)
    for batch in arrays(inputs.batches(first_step=0, steps=5)):
        segments = batch["decoder_segments"]
        before = np.pad(segments, ((0, 0), (1, 0)))[:, :-1]
        shifted = np.pad(batch["targets"], ((0, 0), (1, 0)))[:, :-1]
        assert (batch["decoder_ids"] == np.where(segments == before, shifted, 0)).all()
        assert ((batch["targets"] > 0) == (segments > 0)).all()
        assert ((batch["encoder_ids"] > 0) == (batch["encoder_segments"] > 0)).all()


def test_rows_of_a_stream_are_full_and_restore_the_text(write_tokens, vocab):
    inputs = load(settings_of(targets_length=8), write_tokens(DOCUMENTS), vocab)
    assert inputs.segment_tokens == 34
    raw = np.fromfile(write_tokens(DOCUMENTS)[0], "<u2")
    starts = set(np.cumsum([0, *DOCUMENTS[:-1]]).tolist())
    for batch in arrays(inputs.batches(first_step=0, steps=10)):
        assert (batch["encoder_segments"] == 1).all()
        assert (batch["targets"][:, -1] == 1).all()
        for text in restored(batch):
            assert len(text) == 34
            jumps = np.flatnonzero(np.diff(text) != 1) + 1
            assert set(text) <= set(raw.tolist())
            # ids count up within a document, so a jump lands on the start of another one
            assert {text[place] - 3 for place in jumps} <= starts


def test_packed_rows_restore_segments_of_single_documents(write_tokens, vocab):
    inputs = load(settings_of(concatenate=False), write_tokens(DOCUMENTS), vocab)
    offsets = np.cumsum([0, *DOCUMENTS])
    seen: list[tuple[int, int]] = []
    epoch = -(-inputs.rows_per_epoch // 4)
    for batch in arrays(inputs.batches(first_step=0, steps=epoch)):
        for text in restored(batch):
            first = text[0] - 3
            assert text == list(range(first + 3, first + 3 + len(text)))
            document = np.searchsorted(offsets, first, side="right")
            assert first + len(text) <= offsets[document]
            seen.append((first, len(text)))
    assert sum(dict(seen).values()) >= sum(DOCUMENTS) - 3 * len(DOCUMENTS)
    assert max(np.bincount([first for first, _ in seen])) <= 2  # twice where the epoch ran over


def test_an_epoch_of_the_stream_takes_every_segment_once(write_tokens, vocab):
    inputs = load(settings_of(batch_size=1), write_tokens([700]), vocab)
    for epoch in (0, 3):
        texts = [
            restored(batch)[0]
            for batch in arrays(
                inputs.batches(
                    first_step=epoch * inputs.rows_per_epoch, steps=inputs.rows_per_epoch
                )
            )
        ]
        starts = sorted(text[0] for text in texts)
        assert (np.diff(starts) == inputs.segment_tokens).all()


def test_epochs_cut_the_stream_at_different_places(write_tokens, vocab):
    inputs = load(settings_of(batch_size=1), write_tokens([700]), vocab)
    rows = inputs.rows_per_epoch
    batches = arrays(inputs.batches(first_step=0, steps=8 * rows))
    phases = {(restored(batch)[0][0] - 3) % 34 for batch in batches[::rows]}
    assert len(phases) == 8


def test_more_rows_than_an_epoch_make_a_batch_of_several_epochs(write_tokens, vocab):
    inputs = load(settings_of(batch_size=16), write_tokens([120]), vocab)
    assert inputs.rows_per_epoch < 16
    (batch,) = arrays(inputs.batches(first_step=0, steps=1))
    assert (batch["encoder_segments"] == 1).all()


def test_iid_rows_are_one_token_shorter_and_never_overflow(write_tokens, vocab):
    inputs = load(settings_of("iid"), write_tokens(DOCUMENTS), vocab)
    assert inputs.segment_tokens == 31
    counters = inputs.counters(steps=200)
    assert counters["cut_inputs"] == 0
    assert counters["segments"] == 4 * 32


def test_ids_of_four_bytes_are_read(tmp_path: Path):
    vocab = VocabSettings(vocab_size=70_000, extra_ids=100)
    ids = 60_000 + np.arange(400)
    ids.astype("<u4").tofile(tmp_path / "train.ids")
    np.array([0, 400]).astype("<i8").tofile(tmp_path / "train.offsets")
    inputs = load(settings_of(), (tmp_path / "train.ids", tmp_path / "train.offsets"), vocab)
    (batch,) = arrays(inputs.batches(first_step=0, steps=1))
    assert batch["encoder_ids"].max() == 70_099
    assert 60_000 <= batch["encoder_ids"][0, 0] < 60_400


def test_counters_say_what_is_in_the_batches(write_tokens, vocab):
    inputs = load(settings_of(concatenate=False), write_tokens(DOCUMENTS), vocab)
    batches = arrays(inputs.batches(first_step=0, steps=20))
    filled = sum((b["encoder_ids"] > 0).sum() + (b["targets"] > 0).sum() for b in batches)
    counters = inputs.counters(steps=20)
    assert counters["probed_steps"] == 20
    assert counters["input_tokens"] + counters["target_tokens"] == filled
    assert counters["padding_share"] == round(1 - filled / (20 * 4 * (32 + 24)), 6)
    assert counters["segments"] == sum(b["encoder_segments"].max(axis=1).sum() for b in batches)
    assert counters["cut_targets"] == counters["cut_inputs"] == 0
    assert inputs.counters(steps=0) == {"probed_steps": 0}


@OBJECTIVES
def test_objectives_without_inputs_have_no_room_for_them(write_tokens, vocab, objective):
    settings = settings_of("iid", objective=objective, targets_length=34)
    assert (settings.packed_inputs_length == 0) == (table.OBJECTIVES[objective].inputs is None)
    if objective == "lm":
        counters = load(settings, write_tokens(DOCUMENTS), vocab).counters(steps=4)
        assert counters["padding_share"] == 0


def test_spans_past_the_last_sentinel_are_counted(write_tokens):
    few = VocabSettings(vocab_size=990, extra_ids=2)
    counters = load(
        settings_of("iid", noise_density=0.5, targets_length=32), write_tokens(DOCUMENTS), few
    ).counters(steps=4)
    assert counters["segments_past_sentinels"] == counters["segments"] == 16
    assert counters["spans_past_sentinels"] > 16 * 3


def test_long_targets_of_iid_noise_are_cut_and_counted(write_tokens, vocab):
    inputs = load(settings_of("iid", targets_length=8), write_tokens(DOCUMENTS), vocab)
    assert inputs.counters(steps=50)["cut_targets"] > 0
    for batch in arrays(inputs.batches(first_step=0, steps=10)):
        ends = (batch["targets"] > 0).sum(axis=1) - 1
        assert (batch["targets"][np.arange(4), ends] == 1).all()


@LAYOUTS
def test_pieces_are_of_the_documents_in_the_batch_of_their_step(
    write_tokens, vocab, noise_mask, concatenate
):
    inputs = load(settings_of(noise_mask, concatenate), write_tokens(DOCUMENTS), vocab)
    offsets = np.cumsum([0, *DOCUMENTS])
    for step, batch in enumerate(arrays(inputs.batches(first_step=0, steps=6))):
        ids = np.concatenate([batch["encoder_ids"].ravel(), batch["targets"].ravel()])
        tokens = ids[(ids >= 3) & (ids < 893)] - 3
        found = np.unique(np.searchsorted(offsets, tokens, side="right") - 1)
        documents = np.searchsorted(offsets, inputs.pieces(step).starts, side="right") - 1
        assert np.unique(documents).tolist() == found.tolist()


def test_the_baseline_of_the_paper_has_rows_of_511_tokens():
    assert segment_length(PretrainSettings()) == 511
    spans = PretrainSettings(noise_mask="random_spans", targets_length=114)
    assert segment_length(spans) == 568
    assert corruption_limits(spans, 568)[568].tolist() == [512, 114]


def test_targets_that_cannot_fit_are_refused():
    settings = PretrainSettings(noise_mask="random_spans", targets_length=113)
    with pytest.raises(SettingsError, match=r"targets_length is 113, .* gives 114 targets"):
        segment_length(settings)


def test_the_final_sentinel_of_the_paper_takes_one_more_target(write_tokens, vocab):
    ids, offsets = write_tokens(DOCUMENTS)
    for concatenate in (True, False):
        inputs = load_corpus_inputs(
            settings_of(concatenate=concatenate, targets_length=9, final_sentinel=True),
            ids=ids,
            offsets=offsets,
            vocab=vocab,
            seed=0,
        )
        for batch in arrays(inputs.batches(first_step=0, steps=5)):
            last = batch["targets"] == 1
            assert (batch["targets"][:, :-1][last[:, 1:]] >= 900).all()
            assert last.sum() == batch["decoder_segments"].max(axis=1).sum()
        assert inputs.counters(steps=20)["cut_targets"] == 0
    with pytest.raises(SettingsError, match="gives 115 targets"):
        segment_length(
            PretrainSettings(noise_mask="random_spans", targets_length=114, final_sentinel=True)
        )


def test_a_corpus_that_fills_no_row_is_refused(write_tokens, vocab):
    with pytest.raises(CorpusError, match="the corpus has 9 tokens"):
        load(settings_of(), write_tokens([4, 5]), vocab)


def test_ids_and_offsets_that_differ_are_refused(write_tokens, vocab):
    ids, offsets = write_tokens([50, 50])
    ids.write_bytes(ids.read_bytes()[:-4])
    with pytest.raises(ArtifactError, match=r"train.ids contains 98 ids, its offsets end at 100"):
        load(settings_of(), (ids, offsets), vocab)


def test_ids_of_another_vocabulary_are_refused(write_tokens):
    small = VocabSettings(vocab_size=50, extra_ids=10)
    with pytest.raises(ArtifactError, match=r"contains the id 102, the vocabulary ends at 59"):
        load(settings_of(), write_tokens([50, 50]), small)
