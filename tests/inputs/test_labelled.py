"""Examples with labels: what is read, what a batch has, what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t5repro.config.row_shapes import row_shape
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.finetune import FinetuneSettings, FinetuneStage
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.tasks import TaskNames, TaskRows, TasksStage, WindowSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import ArtifactError
from t5repro.files import read_json_lines
from t5repro.inputs.labelled import load_labelled_inputs
from t5repro.inputs.labelled_examples import read_labelled
from t5repro.jobs.tasks import TasksJob
from t5repro.model.labels import CHOICE, SPAN, TAGS, LabelColumns, TaskAnswer
from t5repro.model.segment_rows import SegmentEncoder
from t5repro.model.task_rows import SegmentTexts, TaskRowEncoder
from t5repro.plan.memory import texts_of
from t5repro.tasks.build import write_examples
from t5repro.vocab.special_pieces import special_id
from t5repro.vocab.vocabulary import Vocabulary

ENCODER = {"positions": "learned", "norm": "layer", "norm_placement": "post"}


def example(number: int, targets: str, answer: Any, *segments: str) -> dict[str, Any]:
    return {"inputs": "x", "targets": targets, "idx": number, "answer": answer,
            "segments": segments}  # fmt: skip


@pytest.fixture
def examples(tmp_path: Path) -> dict[str, Path]:
    """A task of labels with pairs, and one of numbers with single texts."""
    labelled = [
        example(n, ("no", "yes")[n % 2], n % 2, "The old mill", f"turns {'slowly ' * n}")
        for n in range(6)
    ]
    numbers = [example(n, f"{n / 2:.1f}", n / 2, "the river " * n) for n in range(4)]
    paths = {}
    for task, task_rows in (("pairs", labelled), ("scores", numbers)):
        paths[task] = tmp_path / f"{task}.jsonl"
        paths[task].write_text("".join(json.dumps(row) + "\n" for row in task_rows))
    return paths


def test_a_number_is_trained_on_as_the_file_has_it_and_not_as_t5_writes_it(tmp_path: Path) -> None:
    """BERT's code and its successors read the score of STS-B; T5 rounds it to fifths."""
    file = tmp_path / "train.tsv"
    columns = "index genre filename year old_index source1 source2 sentence1 sentence2 score"
    file.write_text(
        "\t".join(columns.split()) + "\n" + "\t".join([*"0aaaaaa", "x", "y", "3.3"]) + "\n"
    )
    settings = TasksStage(tasks=TaskRows(segments=True))
    manifest = tmp_path / "manifest.json"
    write_examples(TasksJob(settings, "glue_stsb", {"train": [file]}, tmp_path / "out", manifest))
    (row,) = read_json_lines(tmp_path / "out/train.jsonl")
    assert (row["targets"], row["answer"]) == ("3.2", 3.2)
    read = read_labelled(tmp_path / "out/train.jsonl", predicts_spans=True)
    assert (read.answer.kind, read.targets) == ("number", [3.3])


def stage_of(
    tasks, task_vocab, finetune: dict[str, Any] | None = None, **model: Any
) -> FinetuneStage:
    return FinetuneStage(
        seed=0,
        vocab=task_vocab,
        model=ModelSettings(**model),
        tasks=TaskNames(names=list(tasks), windows=WindowSettings(question_length=6, stride=8)),
        finetune=FinetuneSettings(
            **{
                "inputs_length": 24,
                "batch_size": 5,
                "answers": "labels" if model.get("architecture") == "language_model" else "text",
                **(finetune or {}),
            }
        ),
        devices=DevicesSettings(),
    )


def load(examples, vocabulary, task_vocab, finetune: dict[str, Any] | None = None, **model: Any):
    stage = stage_of(examples, task_vocab, finetune, **model)
    return load_labelled_inputs(stage, examples=examples, vocabulary=vocabulary, seed=0)


@pytest.fixture
def inputs(examples, vocabulary, task_vocab):
    return load(examples, vocabulary, task_vocab)


def test_a_decoder_reads_tasks_of_similarity_in_both_orders(examples, vocabulary, task_vocab):
    tasks = {"glue_mrpc": examples["pairs"], "scores": examples["scores"]}
    inputs = load(tasks, vocabulary, task_vocab, architecture="language_model")
    start, classify = (
        special_id(piece, task_vocab.total_ids) for piece in ("_start_", "_classify_")
    )
    kinds = set()
    for features, _ in inputs.batches(first_step=0, steps=12):
        ids, last = features["decoder_ids"], features["last_positions"][:, 0]
        assert (ids[:, 0] == start).all()
        assert (ids[np.arange(5), last] == classify).all()
        assert (features["decoder_segments"].sum(axis=1) == last + 1).all()
        for row in range(5):
            swapped = features["swapped_ids"][row]
            is_pair = features["label_columns"][row, 1] == 2
            kinds.add(is_pair)
            assert swapped.any() == is_pair
            assert (features["swapped_segments"][row] == (swapped > 0)).all()
            if is_pair:
                assert sorted(swapped) == sorted(ids[row])
                assert (swapped != ids[row]).any()
                assert swapped[last[row]] == classify
    assert kinds == {True, False}


def test_a_mixture_without_similarity_has_one_order(examples, vocabulary, task_vocab) -> None:
    inputs = load(examples, vocabulary, task_vocab, architecture="language_model")
    features, _ = next(iter(inputs.batches(first_step=0, steps=1)))
    assert set(features) == {
        "decoder_ids", "decoder_segments", "last_positions", "label_columns",
    }  # fmt: skip


def test_each_row_has_one_example_its_columns_and_its_target(inputs, task_vocab: VocabSettings):
    assert inputs.labels == {
        "pairs": TaskAnswer("label", ("no", "yes"), segments=2),
        "scores": TaskAnswer("number", segments=1),
    }
    start = special_id("[CLS]", task_vocab.total_ids)
    kinds = set()
    for features, targets in inputs.batches(first_step=0, steps=12):
        ids, segments, types = (
            features[f"encoder_{name}"] for name in ("ids", "segments", "types")
        )
        assert ids.shape == segments.shape == types.shape == (5, 24)
        assert (ids[:, 0] == start).all()
        assert ((ids != 0) == (segments == 1)).all()
        assert (types <= segments).all()
        for row in range(5):
            kinds.add((tuple(features["label_columns"][row]), bool(types[row].any())))
            target = float(targets[row, 0])
            assert target in ((0, 1) if types[row].any() else (0, 0.5, 1, 1.5))
    assert kinds == {((0, 2, 0), True), ((2, 1, 1), False)}


def test_a_step_has_the_same_rows_from_any_first_step(inputs) -> None:
    whole = list(inputs.batches(first_step=0, steps=6))
    later = list(inputs.batches(first_step=4, steps=2))
    for (features, targets), (again, targets_again) in zip(whole[4:], later, strict=True):
        assert np.array_equal(targets, targets_again)
        assert all(np.array_equal(features[name], again[name]) for name in features)


def test_counters_have_the_examples_of_each_task_and_its_labels(inputs) -> None:
    counters = inputs.counters(first_step=0, steps=40)
    assert counters["examples"] == {"pairs": 6, "scores": 4}
    assert sum(counters["drawn"].values()) == 200
    assert counters["labels"] == {"pairs": ["no", "yes"], "scores": []}
    assert counters["rates_drawn"]["pairs"] == pytest.approx(0.6, abs=0.06)
    assert 0 < counters["padding_share"] < 1


def test_the_second_text_of_a_pair_may_come_first(examples, vocabulary, task_vocab) -> None:
    """MT-DNN: the hypothesis has type 0, the premise type 1; single texts are as they were."""
    settings = {"inputs_length": 64}
    given = load(examples, vocabulary, task_vocab, settings)
    other = load(examples, vocabulary, task_vocab, {**settings, "pair_order": "reversed"})
    assert other.labels["pairs"].reverses
    assert not other.labels["scores"].reverses
    start, separator = (special_id(piece, task_vocab.total_ids) for piece in ("[CLS]", "[SEP]"))
    for one, two in zip(rows_of(given), rows_of(other), strict=True):
        first_end = one.index(separator)
        first, second = one[1:first_end], one[first_end + 1 : -1]
        swapped = [*second, separator, *first] if second else first
        assert two == [start, *swapped, separator]


def rows_of(inputs) -> list[list[int]]:
    texts = inputs.options[0].texts
    return [
        texts.ids[start : start + length].tolist()
        for start, length in zip(texts.starts, texts.lengths, strict=True)
    ]


def test_a_step_of_one_task_has_columns_of_that_task(examples, vocabulary, task_vocab) -> None:
    inputs = load(examples, vocabulary, task_vocab, {"batches": "tasks"})
    steps = [features["label_columns"] for features, _ in inputs.batches(first_step=0, steps=9)]
    assert all((columns == columns[0]).all() for columns in steps)
    # Six examples take two steps of five, four one.
    assert inputs.counters(first_step=0, steps=9)["drawn"] == {"pairs": 30, "scores": 15}


def test_long_examples_may_be_left_out_and_are_counted(examples, vocabulary, task_vocab) -> None:
    lengths = sorted(map(len, rows_of(load(examples, vocabulary, task_vocab))[:6]))
    settings = {"inputs_length": lengths[3]}
    cut = load(examples, vocabulary, task_vocab, settings).counters(first_step=0, steps=4)
    assert cut["truncated_inputs"]["pairs"] == 2
    assert "dropped" not in cut
    inputs = load(examples, vocabulary, task_vocab, {**settings, "long_rows": "drop"})
    counters = inputs.counters(first_step=0, steps=4)
    assert counters["dropped"] == cut["truncated_inputs"]
    assert counters["truncated_inputs"] == {"pairs": 0, "scores": 0}
    kept = {task: cut["examples"][task] - counters["dropped"][task] for task in cut["examples"]}
    assert dict(zip(inputs.mixture.tasks, inputs.mixture.counts.tolist(), strict=True)) == kept


def test_a_task_of_long_examples_only_is_refused(examples, vocabulary, task_vocab) -> None:
    settings = {"long_rows": "drop", "inputs_length": 4}
    with pytest.raises(ArtifactError, match="are longer than finetune.inputs_length 4; raise it"):
        load(examples, vocabulary, task_vocab, settings)


def test_an_answer_network_is_for_labels_of_two_texts(examples, vocabulary, task_vocab) -> None:
    inputs = load(examples, vocabulary, task_vocab, {"pair_head": "san"})
    assert {task: answer.head for task, answer in inputs.labels.items()} == {
        "pairs": "san", "scores": "pooled",
    }  # fmt: skip
    assert (inputs.columns.total, inputs.columns.pooled) == (3, 1)
    text = inputs.columns.as_text()
    assert LabelColumns.from_text(text, "a file").answers == inputs.labels
    assert '"head"' not in LabelColumns({"scores": inputs.labels["scores"]}).as_text()


def write(path: Path, *task_rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in task_rows))
    return path


@pytest.mark.parametrize(
    ("task_rows", "message"),
    [
        ([example(0, "ein Satz", "ein Satz", "a")], "line 1 has the target 'ein Satz'"),
        ([example(0, "him", 1, "a"), example(1, "her", 1, "a")], "line 2 has the target 'her'"),
        ([{"inputs": "a", "targets": "no", "answer": 0}], "line 1 lacks segments"),
        ([], "no examples to train on"),
    ],
    ids=["text", "Winograd schemas", "no segments", "empty"],
)
def test_what_an_encoder_cannot_learn_is_refused(tmp_path, task_rows, message) -> None:
    with pytest.raises(ArtifactError, match=message):
        read_labelled(write(tmp_path / "train.jsonl", *task_rows), predicts_spans=True)


def test_the_label_of_a_question_with_several_answers_is_taken(tmp_path: Path) -> None:
    answer = {"label": 1, "group": 3}
    row = example(0, "True", answer, "q", "a", "p")
    read = read_labelled(write(tmp_path / "train.jsonl", row), predicts_spans=True)
    assert read.answer == TaskAnswer("label", ("", "True"), segments=3)
    assert [texts.segments for texts in read.texts] == [("q", "a", "p")]


def test_rows_of_unlike_numbers_of_segments_leave_it_open(tmp_path: Path) -> None:
    rows = [example(0, "no", 0, "a"), example(1, "yes", 1, "a", "b")]
    read = read_labelled(write(tmp_path / "train.jsonl", *rows), predicts_spans=True)
    assert read.answer == TaskAnswer("label", ("no", "yes"), segments=0)


def test_the_options_of_an_example_are_rows_of_one_batch(
    examples, vocabulary, task_vocab, tmp_path
) -> None:
    choices = [
        example(n, ("a1", "a2")[n % 2], n % 2, "The old mill", "Why?")
        | {"options": ["the river", f"word {n}"]}
        for n in range(4)
    ]
    tasks = {"choices": write(tmp_path / "c.jsonl", *choices), "scores": examples["scores"]}
    inputs = load(tasks, vocabulary, task_vocab)
    assert inputs.labels["choices"] == TaskAnswer("choice", ("a1", "a2"), segments=2)
    kinds = set()
    for features, _ in inputs.batches(first_step=0, steps=12):
        ids, types = features["encoder_ids"], features["encoder_types"]
        assert ids.shape == (5, 2, 24)
        for row in range(5):
            is_choice = features["label_columns"][row, 2] == CHOICE
            kinds.add(bool(is_choice))
            # Both options have the same first segment; other rows have no second option.
            first = types[row] == 0
            assert ids[row, 1].any() == is_choice
            if is_choice:
                count = int(ids[row, 0][first[0] & (ids[row, 0] > 0)].size)
                assert np.array_equal(ids[row, 0][:count], ids[row, 1][:count])
    assert kinds == {True, False}


@pytest.mark.parametrize("options_first", [False, True])
def test_the_end_of_a_long_text_is_cut_and_no_option(
    vocabulary: Path, task_vocab: VocabSettings, options_first: bool
) -> None:
    """ALBERT and XLNet read the article first, fairseq's RoBERTa question and option."""
    words = Vocabulary.load(vocabulary)
    encoder = TaskRowEncoder(
        words,
        model=ModelSettings(**ENCODER, architecture="encoder"),
        length=24,
        windows=WindowSettings(),
        options_first=options_first,
    )
    article, options = "The river turns slowly. " * 9, ("the old mill", "the farmer")
    answer = TaskAnswer("choice", ("A", "B"), segments=1)
    encoded = encoder.rows([SegmentTexts((article,), options)], task="any", answer=answer)
    text, *of_options = words.encode_batch([article, *options])
    start, between = (special_id(p, task_vocab.total_ids) for p in ("[CLS]", "[SEP]"))
    for row, option in zip(encoded.rows, of_options, strict=True):
        parts = [text[: 24 - 3 - len(option)], option]
        first, second = reversed(parts) if options_first else parts
        assert row.ids == [start, *first, between, *second, between]
        assert row.first_length == len(first) + 2
        assert row.cut


@pytest.mark.keras
@pytest.mark.parametrize("architecture", ["encoder", "language_model"])
def test_a_batch_of_padding_has_the_shapes_of_one_of_tasks(
    examples, vocabulary, task_vocab, tmp_path, architecture
) -> None:
    from t5repro.train.fresh_model import example_columns, padding_batch

    choices = [
        example(n, ("a1", "a2")[n % 2], n % 2, "The old mill") | {"options": ["river", f"word {n}"]}
        for n in range(4)
    ]
    questions = [
        example(n, "river", ["river"], "word where", "by the river") | {"spans": [[7, 12]]}
        for n in range(4)
    ]
    copa = {"super_glue_copa": write(tmp_path / "copa.jsonl", *choices)}
    numbers = [example(n, f"{n}.0", float(n), "river", "mill") for n in range(4)]
    scores = {"glue_stsb": write(tmp_path / "scores.jsonl", *numbers)}
    mixtures = [scores, {"glue_cola": examples["pairs"]}, copa | scores]
    if architecture == "encoder":
        mixtures.append(scores | {"squad": write(tmp_path / "squad.jsonl", *questions)})
    for tasks in mixtures:
        stage = stage_of(tasks, task_vocab, architecture=architecture, **ENCODER)
        labels = example_columns(stage).answers
        inputs = load_labelled_inputs(stage, examples=tasks, vocabulary=vocabulary, seed=0)
        kinds = {task: answer.kind for task, answer in inputs.labels.items()}
        assert {task: answer.kind for task, answer in labels.items()} == kinds
        features, targets = padding_batch(stage, 5)
        ((of_tasks, of_targets),) = inputs.batches(first_step=0, steps=1)
        shapes = {name: (array.shape, array.dtype) for name, array in of_tasks.items()}
        assert {name: (array.shape, array.dtype) for name, array in features.items()} == shapes
        assert (targets.shape, targets.dtype) == (of_targets.shape, of_targets.dtype)
        texts = sum(array.size for name, array in of_tasks.items() if name.endswith("_segments"))
        assert texts_of(stage.model, tasks, own={}) == inputs.texts
        shape = row_shape(stage.model, stage.finetune, texts=inputs.texts)
        assert 5 * shape.texts * shape.positions == texts


def test_a_question_is_drawn_as_windows_and_weighs_as_one_example(
    examples, vocabulary, task_vocab, tmp_path
) -> None:
    context = "the mill turns slowly " * 6 + "by the river " + "the mill turns slowly " * 6
    start = context.index("river")
    questions = [
        example(n, "river", ["river"], "word where", context) | {"spans": [[start, start + 5]]}
        for n in range(4)
    ]
    tasks = {"questions": write(tmp_path / "q.jsonl", *questions), "scores": examples["scores"]}
    inputs = load(tasks, vocabulary, task_vocab, architecture="encoder", **ENCODER)
    assert inputs.labels["questions"] == TaskAnswer("span", segments=2)
    counters = inputs.counters(first_step=0, steps=40)
    assert counters["windows"]["questions"] > 2 * counters["examples"]["questions"] == 8
    assert counters["rates_asked"] == {"questions": 0.5, "scores": 0.5}
    decode = Vocabulary.load(vocabulary).decode
    found = set()
    for features, _ in inputs.batches(first_step=0, steps=12):
        for row, (first, last) in enumerate(features["answer_span"]):
            if features["label_columns"][row, 2] == SPAN:
                ids = features["encoder_ids"][row]
                found.add(decode(ids[first : last + 1].tolist()) if first else "")
    assert found == {"", "river"}


def test_questions_without_the_place_of_their_answer_are_left_out_and_counted(
    tmp_path: Path, vocabulary, task_vocab
) -> None:
    rows = [example(n, "river", ["river"], "where", "by the river") for n in range(3)]
    with pytest.raises(ArtifactError, match="line 1 has the target 'river'.*answer_start"):
        read_labelled(write(tmp_path / "q.jsonl", *rows), predicts_spans=True)
    rows[1]["spans"] = [[7, 12]]
    path = write(tmp_path / "one.jsonl", *rows)
    read = read_labelled(path, predicts_spans=True)
    assert (read.spans, read.left_out, len(read.texts)) == ([(7, 12)], 2, 1)
    with pytest.raises(ArtifactError, match="only an encoder spans"):
        read_labelled(path, predicts_spans=False)
    inputs = load({"squad": path}, vocabulary, task_vocab, architecture="encoder", **ENCODER)
    counters = inputs.counters(first_step=0, steps=2)
    assert (counters["examples"], counters["left_out"]) == ({"squad": 1}, {"squad": 2})


def test_a_question_without_an_answer_is_trained_on_the_first_position_of_every_window(
    tmp_path: Path, vocabulary, task_vocab
) -> None:
    rows = [example(n, "river", ["river"], "where", "by the river") for n in range(3)]
    rows[0]["spans"] = [[7, 12]]
    rows[1] |= {"targets": "unanswerable", "answer": []}
    path = write(tmp_path / "train.jsonl", *rows)
    read = read_labelled(path, predicts_spans=True)
    assert read.answer == TaskAnswer("span", ("unanswerable",), segments=2)
    assert (read.spans, read.left_out) == ([(7, 12), (0, 0)], 1)  # the third has no place
    inputs = load({"questions": path}, vocabulary, task_vocab, architecture="encoder", **ENCODER)
    assert [bool(first) for first, _ in inputs.spans] == [True, False]
    assert inputs.counters(first_step=0, steps=1)["labels"] == {"questions": ["unanswerable"]}


def test_the_first_piece_of_each_word_has_its_tag(tmp_path: Path, vocabulary, task_vocab) -> None:
    tags = [["O", "B-X", "I-X"], ["B-A", "O", "O"]]
    rows = [
        example(n, "X: x", {"tags": of_row, "entities": []}, "the river turns")
        for n, of_row in enumerate(tags)
    ]
    path = write(tmp_path / "train.jsonl", *rows)
    read = read_labelled(path, predicts_spans=True)
    assert read.answer == TaskAnswer("tags", ("O", "B-A", "B-X", "I-X"), segments=1)
    assert read.tags == [[0, 2, 3], [1, 0, 0]]
    with pytest.raises(ArtifactError, match="take the task out"):
        read_labelled(path, predicts_spans=False)
    scores = write(tmp_path / "s.jsonl", *(example(n, "1.0", 1.0, "the mill") for n in range(2)))
    tasks = {"names": path, "scores": scores}
    inputs = load(tasks, vocabulary, task_vocab, architecture="encoder", **ENCODER)
    assert (inputs.columns.total, inputs.columns.tags) == (1, 4)
    pieces = Vocabulary.load(vocabulary)
    lengths = [len(pieces.encode(word)) for word in ("the", "river", "turns")]
    starts = np.cumsum([1, *lengths])[:-1]  # behind [CLS]
    expected = {tuple(tag + 1 for tag in of_row) for of_row in read.tags}
    found = set()
    for features, _ in inputs.batches(first_step=0, steps=8):
        of_pieces = features["piece_tags"]
        assert of_pieces.shape == features["encoder_ids"].shape
        for row, kind in zip(of_pieces, features["label_columns"][:, 2], strict=True):
            assert row.any() == (kind == TAGS)
            if kind == TAGS:
                assert np.flatnonzero(row).tolist() == starts.tolist()
                found.add(tuple(row[starts].tolist()))
    assert found == expected


def test_words_behind_the_end_of_a_row_have_no_tag(vocabulary, task_vocab) -> None:
    pieces = Vocabulary.load(vocabulary)
    encoder = SegmentEncoder(pieces, model=ModelSettings(**ENCODER), length=6)
    sentence = ["the", "river", "\u200b", *["mill"] * 9]
    (row,), (places,) = encoder.word_rows([sentence])
    assert row.cut
    assert len(row.ids) == 6
    inside = [place for place in places if place]
    assert inside == sorted(set(inside))
    assert max(inside) < 5
    assert len(places) == len(sentence)


def test_a_sentence_with_other_numbers_of_tags_and_words_is_refused(tmp_path: Path) -> None:
    row = example(0, "", {"tags": ["O"], "entities": []}, "the river")
    with pytest.raises(ArtifactError, match="line 1 has 1 tags and 2 words"):
        read_labelled(write(tmp_path / "t.jsonl", row), predicts_spans=True)


def test_an_option_that_is_never_the_answer_has_no_word_and_is_refused(tmp_path: Path) -> None:
    rows = [example(n, "a1", 0, "x") | {"options": ["one", "two"]} for n in range(3)]
    with pytest.raises(ArtifactError, match=r"2 options, of which the answers are \[0\]"):
        read_labelled(write(tmp_path / "c.jsonl", *rows), predicts_spans=True)


def test_rows_with_other_numbers_of_options_are_refused(tmp_path: Path) -> None:
    rows = [example(n, "a", 0, "x") | {"options": ["one", "two", "three"][: n + 1]} for n in (1, 2)]
    with pytest.raises(ArtifactError, match=r"rows with \[2, 3\] options"):
        read_labelled(write(tmp_path / "c.jsonl", *rows), predicts_spans=True)
