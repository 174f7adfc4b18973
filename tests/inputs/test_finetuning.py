"""Tokenised examples and the batches of fine-tuning."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from t5repro.config.sections.finetune import FinetuneSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import ArtifactError, SettingsError, VocabularyError
from t5repro.inputs.finetuning import TaskInputs, Tokenised, load_task_inputs, tokenise
from t5repro.vocab.sentencepiece_model import SentencePieceModel
from t5repro.vocab.vocabulary import Vocabulary, target_marker_ids

MULTILINGUAL = [
    "The mill turns.",
    "  spaces   and\ttabs \n and lines ",
    "Die Mühle — „gegenüber“ – dreht sich; 10 €!",
    "Țăranul își duce grâul; ŢĂRANUL cu sedilă, și ș",
    "L'été à la rivière : « où ? » œuf, Æ",
    "<extra_id_0> turns <extra_id_19> slowly <extra_id_20> <extra_id_1>",
    "a<extra_id_3>b </s> <pad> <unk>",
    "ﬁne ligature, ½ fraction, full width ＡＢＣ, zero\u200bwidth, soft\u00adhyphen",
    "combining e\u0301 and é, K (Kelvin), ﷺ",
    "日本語 русский עברית 🙂👍🏽",
    "",
    " ",
    "\u2581\u2581 x",
    "word " * 300,
]


def settings_of(**more: Any) -> FinetuneSettings:
    return FinetuneSettings(**{"inputs_length": 48, "targets_length": 16, "batch_size": 4, **more})


def load(settings, examples, vocabulary, vocab, seed=0) -> TaskInputs:
    return load_task_inputs(
        settings, examples=examples, vocabulary=vocabulary, vocab=vocab, seed=seed
    )


def segments(batch: tuple[dict[str, Any], Any]) -> list[tuple[list[int], list[int]]]:
    features, targets = batch
    found = []
    for row in range(targets.shape[0]):
        encoder, decoder = (
            features[name][row] for name in ("encoder_segments", "decoder_segments")
        )
        assert encoder.max() == decoder.max() > 0
        for number in range(1, encoder.max() + 1):
            found.append(
                (
                    features["encoder_ids"][row][encoder == number].tolist(),
                    targets[row][decoder == number].tolist(),
                )
            )
    return found


def test_ids_are_those_of_sentencepiece(vocabulary: Path):
    known = Vocabulary.load(vocabulary)
    found = tokenise(MULTILINGUAL, vocabulary=known, max_length=10_000, label="test")
    pieces = np.split(found.ids, found.starts[1:])
    assert [piece.tolist() for piece in pieces] == [
        [*known.encode(text), 1] for text in MULTILINGUAL
    ]
    assert found.lengths.tolist() == [len(piece) for piece in pieces]
    assert not found.cut.any()


def test_ids_are_those_of_sentencepiece_where_two_ways_to_cut_score_alike(
    vocabulary: Path, tmp_path: Path
):
    """``....`` is ``... .`` or ``. ...``, equal but for rounding: releases differ in that."""
    dots = b"\x0a\x03..." + b"\x15" + struct.pack("<f", -5.5)
    model = tmp_path / "dots.model"
    model.write_bytes(vocabulary.read_bytes() + b"\x0a" + bytes([len(dots)]) + dots)
    # The added piece follows the sentinels, which `Vocabulary.load` refuses.
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.read_bytes())
    known = Vocabulary(SentencePieceModel(model.read_bytes(), processor))
    random = np.random.default_rng(0)
    words = " ".join(MULTILINGUAL[:5]).split()
    texts = [
        " ".join(random.choice(words, random.integers(1, 60))) + "." * int(random.integers(4, 12))
        for _ in range(2000)
    ]
    found = tokenise(texts, vocabulary=known, max_length=10_000, label="test")
    pieces = [
        found.ids[start : start + length].tolist()
        for start, length in zip(found.starts, found.lengths, strict=True)
    ]
    assert known.total_ids - 1 in known.encode("....")
    assert pieces == [[*known.encode(text), 1] for text in texts]


@pytest.fixture(scope="module")
def reference(vocabulary: Path) -> Any:
    """The tokenizer of tensorflow-text: an independent reading of the same model."""
    tensorflow_text = pytest.importorskip("tensorflow_text")
    return tensorflow_text.SentencepieceTokenizer(model=vocabulary.read_bytes())


@pytest.fixture(scope="module")
def known(vocabulary: Path) -> Vocabulary:
    return Vocabulary.load(vocabulary)


def by_text(found: Tokenised) -> list[list[int]]:
    """Return the ids of each text without EOS."""
    return [
        found.ids[start : start + length - 1].tolist()
        for start, length in zip(found.starts, found.lengths, strict=True)
    ]


@pytest.mark.keras
def test_hard_texts_have_the_ids_of_tensorflow_text(known: Vocabulary, reference: Any):
    texts = [
        *MULTILINGUAL,
        "a\0b",
        "\0",
        "\ufeffx\ufffd\U0010ffff",
        "n\u0303" * 40 + "\u0301" * 500,
        "\r\n\x0b\x1c\u2028\u3000 a \u00a0 b",
        "\u202eright to left\u202c",
        "mill" * 20_000,
        "\u2581" * 3000,
    ]
    found = tokenise(texts, vocabulary=known, max_length=10**6, label="test")
    assert by_text(found) == reference.tokenize(texts).to_list()


@pytest.mark.keras
@given(st.lists(st.text(max_size=80), min_size=1, max_size=20))
def test_any_text_has_the_ids_of_tensorflow_text(known: Vocabulary, reference: Any, texts):
    found = tokenise(texts, vocabulary=known, max_length=10**6, label="test")
    assert by_text(found) == reference.tokenize(texts).to_list()


def test_texts_of_several_batches_keep_their_order(known: Vocabulary, monkeypatch):
    texts = [f"the mill {number % 90} by the river" for number in range(300)]
    whole = tokenise(texts, vocabulary=known, max_length=9, label="test")
    monkeypatch.setattr("t5repro.inputs.finetuning.TEXTS_PER_BATCH", 7)
    parts = tokenise(texts, vocabulary=known, max_length=9, label="test")
    assert all((a == b).all() for a, b in zip(whole, parts, strict=True))


def test_a_text_that_repeats_is_kept_once(vocabulary: Path):
    known = Vocabulary.load(vocabulary)
    texts = ["The mill", "positive", "The mill", "positive", "positive"]
    found = tokenise(texts, vocabulary=known, max_length=50, label="test")
    assert found.ids.tolist() == [*known.encode("The mill"), 1, *known.encode("positive"), 1]
    assert found.starts.tolist() == [found.starts[0], found.starts[1]] * 2 + [found.starts[1]]
    assert len(found.lengths) == len(found.cut) == 5


def test_long_texts_are_cut_before_eos(vocabulary: Path):
    known = Vocabulary.load(vocabulary)
    fits, long = "The mill", "The mill turns slowly by the river"
    length = len(known.encode(fits)) + 1
    found = tokenise([fits, long], vocabulary=known, max_length=length, label="test")
    assert found.cut.tolist() == [False, True]
    assert found.ids[length:].tolist() == [*known.encode(long)[: length - 1], 1]


def test_batches_hold_whole_examples(
    three_tasks, write_examples, vocabulary: Path, task_vocab: VocabSettings
):
    inputs = load(settings_of(), write_examples(three_tasks), vocabulary, task_vocab)
    known = Vocabulary.load(vocabulary)
    allowed = {
        ((*known.encode(a)[:47], 1), (*known.encode(b)[:15], 1))
        for rows in three_tasks.values()
        for a, b in rows
    }
    dataset = inputs.batches(first_step=0, steps=30)
    found = [pair for batch in dataset for pair in segments(batch)]
    assert len(found) > 200
    assert {(tuple(a), tuple(b)) for a, b in found} <= allowed


def test_the_decoder_reads_the_targets_shifted_within_their_segment(
    three_tasks, write_examples, vocabulary: Path, task_vocab: VocabSettings
):
    inputs = load(settings_of(), write_examples(three_tasks), vocabulary, task_vocab)
    for features, targets in inputs.batches(first_step=0, steps=5):
        numbers = features["decoder_segments"]
        before = np.pad(numbers, ((0, 0), (1, 0)))[:, :-1]
        shifted = np.pad(targets, ((0, 0), (1, 0)))[:, :-1]
        expected = np.where(numbers == before, shifted, 0)
        assert (features["decoder_ids"] == expected).all()


def test_step_n_depends_on_n_alone(
    three_tasks, write_examples, vocabulary: Path, task_vocab: VocabSettings
):
    inputs = load(settings_of(), write_examples(three_tasks), vocabulary, task_vocab)
    whole = [segments(batch) for batch in inputs.batches(first_step=0, steps=25)]
    assert [segments(batch) for batch in inputs.batches(first_step=20, steps=5)] == whole[20:]


def test_neither_the_order_of_tasks_nor_of_files_matters(
    three_tasks, write_examples, vocabulary: Path, task_vocab: VocabSettings
):
    examples = write_examples(three_tasks)
    backwards = dict(reversed(examples.items()))
    one, other = (
        [
            segments(batch)
            for batch in load(settings_of(), order, vocabulary, task_vocab).batches(
                first_step=0, steps=3
            )
        ]
        for order in (examples, backwards)
    )
    assert one == other


def test_every_batch_has_rows_of_the_lengths_of_the_settings(
    three_tasks, write_examples, vocabulary: Path, task_vocab: VocabSettings
):
    inputs = load(settings_of(), write_examples(three_tasks), vocabulary, task_vocab)
    for features, targets in inputs.batches(first_step=0, steps=2):
        assert features["encoder_ids"].shape == (4, 48)
        assert features["decoder_segments"].shape == targets.shape == (4, 16)


def test_counters_say_what_was_asked_drawn_and_cut(
    three_tasks, write_examples, vocabulary: Path, task_vocab: VocabSettings
):
    three_tasks["small"][0] = ("long " * 60, "long " * 30)
    settings = settings_of(mixture_limit=100)
    inputs = load(settings, write_examples(three_tasks), vocabulary, task_vocab)
    counters = inputs.counters(first_step=0, steps=200)
    assert counters["examples"] == {"large": 300, "middle": 100, "small": 20}
    assert counters["rates_asked"] == {"large": 0.454545, "middle": 0.454545, "small": 0.090909}
    batches = list(inputs.batches(first_step=0, steps=200))
    assert sum(counters["drawn"].values()) == sum(len(segments(batch)) for batch in batches)
    assert all(
        abs(counters["rates_drawn"][task] - rate) < 0.05
        for task, rate in counters["rates_asked"].items()
    )
    filled = sum(
        int((features["encoder_ids"] > 0).sum() + (targets > 0).sum())
        for features, targets in batches
    )
    assert counters["padding_share"] == round(1 - filled / (200 * 4 * 64), 6)
    assert counters["truncated_inputs"]["small"] >= 1
    assert counters["truncated_targets"]["small"] >= 1
    assert inputs.counters(first_step=0, steps=0)["padding_share"] == 0


def test_an_equal_mixture_draws_tasks_alike(
    three_tasks, write_examples, vocabulary: Path, task_vocab: VocabSettings
):
    inputs = load(settings_of(mixture="equal"), write_examples(three_tasks), vocabulary, task_vocab)
    assert set(inputs.counters(first_step=0, steps=5)["rates_asked"].values()) == {0.333333}


def test_a_model_of_another_size_is_refused(three_tasks, write_examples, vocabulary: Path):
    with pytest.raises(VocabularyError, match=r"has 140 ids, .* is 220; rerun the rule vocab"):
        load(
            settings_of(),
            write_examples(three_tasks),
            vocabulary,
            VocabSettings(vocab_size=120, extra_ids=100),
        )


def test_a_task_without_examples_is_named(write_examples, vocabulary: Path, task_vocab):
    examples = write_examples({"glue_rte": []})
    with pytest.raises(ArtifactError, match=r"glue_rte/train.jsonl has no examples to train on"):
        load(settings_of(), examples, vocabulary, task_vocab)


def test_a_broken_row_is_named(write_examples, vocabulary: Path, task_vocab):
    examples = write_examples({"glue_rte": [("a", "b")]})
    with examples["glue_rte"].open("a") as handle:
        handle.write('{"inputs": "only"}\n')
    with pytest.raises(ArtifactError, match=r"train.jsonl line 2 lacks inputs or targets"):
        load(settings_of(), examples, vocabulary, task_vocab)


def test_a_decoder_alone_reads_targets_behind_inputs(
    write_examples, three_tasks, vocabulary, task_vocab
):
    examples = write_examples(three_tasks)
    apart = load(settings_of(), examples, vocabulary, task_vocab)
    joined = load_task_inputs(
        settings_of(),
        examples=examples,
        vocabulary=vocabulary,
        vocab=task_vocab,
        seed=0,
        model=ModelSettings(architecture="prefix_language_model"),
    )
    for one, (features, targets) in zip(
        apart.batches(first_step=3, steps=4), joined.batches(first_step=3, steps=4), strict=True
    ):
        pairs = iter(segments(one))
        for row in range(4):
            kept = features["decoder_segments"][row]
            for number in range(1, kept.max() + 1):
                here = kept == number
                inputs, answer = next(pairs)
                ids = features["decoder_ids"][row][here].tolist()
                assert ids == [0, *inputs, *answer][:-1]
                assert targets[row][here].tolist() == [0] * len(inputs) + answer
                assert features["decoder_prefix"][row][here].sum() == len(inputs) + 1
        assert features["decoder_ids"].shape == (4, 48 + 16)


def test_the_word_of_the_paper_can_part_inputs_from_targets(
    write_examples, three_tasks, vocabulary, task_vocab
):
    examples = write_examples(three_tasks)
    word = Vocabulary.load(vocabulary).encode("target:")
    network = ModelSettings(architecture="language_model", target_marker="target_word")
    inputs = load_task_inputs(
        settings_of(),
        examples=examples,
        vocabulary=vocabulary,
        vocab=task_vocab,
        seed=0,
        model=network,
    )
    side = inputs.inputs
    for start, length in zip(side.starts, side.lengths, strict=True):
        assert side.ids[start + length - len(word) : start + length].tolist() == word
    assert side.lengths.max() <= 48
    ends = inputs.targets.starts + inputs.targets.lengths - 1
    assert (inputs.targets.ids[ends] == 1).all()
    with pytest.raises(SettingsError, match=r"inputs_length is 4, the word 'target:' has"):
        load_task_inputs(
            settings_of(inputs_length=4),
            examples=examples,
            vocabulary=vocabulary,
            vocab=task_vocab,
            seed=0,
            model=network,
        )


def test_an_encoder_decoder_ends_its_inputs_with_eos_whatever_the_marker(vocabulary):
    words = Vocabulary.load(vocabulary)
    model = ModelSettings(target_marker="target_word")
    assert target_marker_ids(words, model, inputs_length=48) == (1,)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("good ", "the label 'good ' becomes 'good' in the vocabulary, so the mod"),
        ("m\u00b2", r"the label 'm\u00b2' (has a character|becomes 'm2')"),
        ("\u8a00", "has a character that the vocabulary lacks.*tasks.own.mine.labels"),
    ],
)
def test_a_label_that_the_model_cannot_write_stops_the_training(
    write_examples, vocabulary: Path, task_vocab, label: str, message: str
):
    path = write_examples({"mine": [("an input", label)]})["mine"]
    rows = [json.loads(line) | {"answer": 0} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(SettingsError, match=message):
        load(settings_of(), {"mine": path}, vocabulary, task_vocab)


def test_targets_with_characters_that_the_vocabulary_lacks_are_counted(
    write_examples, vocabulary: Path, task_vocab, capsys
):
    targets = ["the old mill", "{the} mill", '"mill"']
    examples = write_examples({"mine": [("an input", target) for target in targets]})
    load(settings_of(), examples, vocabulary, task_vocab)
    expected = "task mine: 2 of 3 targets have characters that the vocabulary lacks, such as '{'"
    assert expected in capsys.readouterr().err
    examples = write_examples({"mine": [("an input", "the  mill"), ("an input", "the mill")]})
    load(settings_of(), examples, vocabulary, task_vocab)
    expected = "task mine: 1 of 2 targets are changed by the vocabulary, such as 'the  mill' to"
    assert expected in capsys.readouterr().err


def test_the_progress_of_tokenising_counts_different_texts(vocabulary: Path, capsys):
    texts = ["good", "bad", "good", "good"]
    tokenise(texts, vocabulary=Vocabulary.load(vocabulary), max_length=8, label="targets of mine")
    assert "targets of mine: 2/2 different texts" in capsys.readouterr().err
