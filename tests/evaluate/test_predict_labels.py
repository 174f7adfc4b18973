"""Predictions of an encoder only: the likeliest label of the task, or its number."""

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t5repro.config.presets.sizes import SIZES
from t5repro.config.schema import Settings
from t5repro.config.sections.evaluate import EvaluateSettings, PredictStage
from t5repro.config.sections.tasks import TaskTexts, TextSettings
from t5repro.config.sections.vocab import VocabStage
from t5repro.config.stage_settings import stage_settings
from t5repro.errors import ArtifactError
from t5repro.evaluate.predict import predict
from t5repro.files import read_json, read_json_lines
from t5repro.jobs.corpus import VocabJob
from t5repro.jobs.predict import PredictJob
from t5repro.model.labels import TaskAnswer
from t5repro.publish.leaderboard import LEADERBOARDS, write_submission
from t5repro.task_table import facts_of
from t5repro.tasks.registry import task_named
from t5repro.vocab.train import make_vocabulary

pytestmark = pytest.mark.keras

LABELS = {
    "pairs": TaskAnswer("label", ("no", "yes")),
    "scores": TaskAnswer("number"),
    "three": TaskAnswer("label", ("a", "b", "c")),
}
MODEL = SIZES["bert_tiny"].model_copy(update={"num_encoder_layers": 1, "max_positions": 64})
Row = dict[str, Any]


def settings(**evaluate: Any) -> PredictStage:
    lengths = {"batch_size": 4, "inputs_length": 40, "max_decode_length": 4}
    tree = Settings(evaluate=EvaluateSettings(**{**lengths, **evaluate}))
    values = stage_settings(tree, "evaluate_predict")
    values["vocab"] |= {"vocab_size": 56, "extra_ids": 8}
    values["model"] = MODEL.model_dump(mode="json")
    values["tasks"]["windows"] = {"question_length": 8, "stride": 10}
    return PredictStage.model_validate(values)


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary")
    lines = (f"word{number} and yes or no word{number + 1}" for number in range(200))
    (folder / "sample.txt").write_text("\n".join(lines), encoding="utf-8")
    make_vocabulary(
        VocabJob(
            VocabStage.model_validate(
                {"vocab": {"vocab_size": 56, "extra_ids": 8, "character_coverage": 1.0}}
            ),
            sample=folder / "sample.txt",
            model=folder / "vocab.model",
            pieces=folder / "vocab.pieces",
            manifest=folder / "vocab.json",
        )
    )
    return folder / "vocab.model"


@pytest.fixture(scope="module")
def write_weights(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write weights with a head; return their manifest."""

    def write(seed: int, labels: Mapping[str, TaskAnswer] = LABELS) -> Path:
        from t5repro.model.checkpoints import save_weights
        from t5repro.model.encoder import Encoder
        from t5repro.model.labels import LabelColumns

        columns = LabelColumns(labels)
        network = Encoder(
            MODEL,
            embedding_rows=128,
            dropout_rate=0.0,
            seed=seed,
            labels=columns.total,
            predicts_spans=columns.has_spans,
            tags=columns.tags,
        )
        # Initial heads are so small that their labels hardly differ.
        random = np.random.default_rng(seed)
        for name in ("label_head", "span_head", "tag_head"):
            if head := getattr(network, name, None):
                head.matrix.assign(20 * random.normal(size=head.matrix.shape))
        folder = tmp_path_factory.mktemp("weights")
        save_weights(folder / "weights.safetensors", network, columns)
        (folder / "manifest.json").write_text("{}", encoding="utf-8")
        return folder / "manifest.json"

    return write


def rows_of(count: int) -> list[Row]:
    texts = [" ".join(f"word{(7 * n + k) % 50}" for k in range(1 + n % 6)) for n in range(count)]
    return [
        {"inputs": "x", "targets": "yes", "idx": n, "answer": 1, "segments": [text, "yes or no"]}
        for n, text in enumerate(texts)
    ]


def predictions(
    folder: Path, rows: Mapping[str, list[Row]], vocabulary: Path, *weights: Path, **more: Any
) -> dict[str, list[str]]:
    examples = {}
    for task, task_rows in rows.items():
        examples[task] = folder / "in" / task / "validation.jsonl"
        examples[task].parent.mkdir(parents=True, exist_ok=True)
        examples[task].write_text("".join(json.dumps(row) + "\n" for row in task_rows))
    predict(
        PredictJob(
            settings(**more),
            weights=weights,
            examples=examples,
            vocabulary=vocabulary,
            folder=folder / "out",
            manifest=folder / "out/manifest.json",
        )
    )
    return {
        task: [row["prediction"] for row in read_json_lines(folder / f"out/{task}.jsonl")]
        for task in rows
    }


def logits_of(manifest: Path, vocabulary: Path, rows: list[Row]) -> np.ndarray:
    """Return the columns of the head for each row, one row at a time without padding."""
    from t5repro.model.checkpoints import load_weights
    from t5repro.model.segment_rows import SegmentEncoder
    from t5repro.systems.answering import build_network
    from t5repro.systems.label_answers import shared_labels
    from t5repro.vocab.vocabulary import Vocabulary

    path = manifest.parent / "weights.safetensors"
    network = build_network(settings(), shared_labels([path]))
    load_weights(path, network)
    encoder = SegmentEncoder(Vocabulary.load(vocabulary), model=settings().model, length=40)
    logits = []
    for row in encoder.rows([row["segments"] for row in rows]):
        types = np.arange(len(row.ids)) >= row.first_length
        features = {"ids": row.ids, "segments": np.ones(len(row.ids)), "types": types}
        arrays = {f"encoder_{name}": np.array([one], int) for name, one in features.items()}
        logits.append(np.asarray(network(arrays))[0])
    return np.array(logits)


def test_each_task_has_words_of_its_own_labels_and_numbers_are_decimals(
    tmp_path: Path, vocabulary: Path, write_weights: Callable[..., Path]
) -> None:
    weights = write_weights(1)
    answers = predictions(tmp_path, dict.fromkeys(LABELS, rows_of(23)), vocabulary, weights)
    pairs, number, three = np.split(logits_of(weights, vocabulary, rows_of(23)), [2, 3], axis=1)
    assert answers["pairs"] == [("no", "yes")[column] for column in pairs.argmax(axis=1)]
    assert answers["three"] == [("a", "b", "c")[column] for column in three.argmax(axis=1)]
    assert [float(text) for text in answers["scores"]] == pytest.approx(number[:, 0], abs=1e-3)
    assert len(set(answers["scores"])) > 10
    written = next(iter(read_json_lines(tmp_path / "out/pairs.jsonl")))
    assert set(written) == {"idx", "inputs", "targets", "answer", "prediction"}
    counters = json.loads((tmp_path / "out/manifest.json").read_text())["counters"]["tasks"]
    assert counters["pairs"] == {"examples": 23, "truncated_inputs": 0}


def test_an_answer_network_reads_the_pair_in_the_order_of_training(
    tmp_path: Path, vocabulary: Path
) -> None:
    """MT-DNN: head and order are those that the file of the weights names."""
    from t5repro.model.checkpoints import save_weights
    from t5repro.model.labels import LabelColumns
    from t5repro.systems.answering import build_network

    columns = LabelColumns(
        {
            "pairs": TaskAnswer("label", ("no", "yes"), 2, head="san", reverses=True),
            "scores": TaskAnswer("number"),
        }
    )
    network = build_network(settings(), columns)
    random = np.random.default_rng(2)
    for variable in network.san_head.weights:
        variable.assign(random.normal(size=variable.shape) * 0.3)
    manifest, rows = tmp_path / "manifest.json", rows_of(23)
    manifest.write_text("{}", encoding="utf-8")
    turned = [{**row, "segments": row["segments"][::-1]} for row in rows]
    middle = 0.0
    for _ in range(2):  # the second time about half of the rows get each label
        network.san_head.networks[0].classes.bias.assign_add([-middle, 0.0])
        save_weights(tmp_path / "weights.safetensors", network, columns)
        logits, given = (logits_of(manifest, vocabulary, some)[:, :2] for some in (turned, rows))
        middle = np.median(logits[:, 0] - logits[:, 1])
    answers = predictions(tmp_path, {"pairs": rows}, vocabulary, manifest)
    assert answers["pairs"] == [("no", "yes")[column] for column in logits.argmax(axis=1)]
    assert len(set(answers["pairs"])) == 2
    assert np.abs(logits - given).max() > 0.01
    assert np.exp(logits).sum(axis=1) == pytest.approx(1, abs=1e-5)


def test_an_answer_does_not_depend_on_its_neighbours(
    tmp_path: Path, vocabulary: Path, write_weights: Callable[..., Path]
) -> None:
    weights, rows = write_weights(1), rows_of(9)
    together = predictions(tmp_path / "all", {"scores": rows}, vocabulary, weights)["scores"]
    alone = [
        predictions(tmp_path / str(n), {"scores": [row]}, vocabulary, weights)["scores"][0]
        for n, row in enumerate(rows)
    ]
    assert [float(text) for text in alone] == pytest.approx(
        [float(text) for text in together], abs=1e-3
    )


def test_the_padded_length_of_a_row_does_not_depend_on_its_neighbours(
    tmp_path: Path,
    vocabulary: Path,
    write_weights: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from t5repro.model import task_answers

    lengths: list[int] = []
    call = task_answers.call_compiled

    def recorded(model: Any, key: Any, graph: Any, *arrays: np.ndarray) -> np.ndarray:
        lengths.append(arrays[0].shape[1])
        return call(model, key, graph, *arrays)

    monkeypatch.setattr(task_answers, "call_compiled", recorded)
    short, middle, long = (
        {"inputs": "x", "targets": "no", "idx": n, "answer": 0, "segments": ["yes " * n]}
        for n in (2, 31, 38)
    )
    weights = write_weights(1)
    for number, rows in enumerate(([middle], [middle, long], [short])):
        predictions(tmp_path / str(number), {"pairs": rows}, vocabulary, weights)
    assert lengths == [40, 40, 32]


def test_a_task_without_training_rows_has_the_head_of_its_labels(
    tmp_path: Path, vocabulary: Path, write_weights: Callable[..., Path]
) -> None:
    three = TaskAnswer("label", ("entailment", "neutral", "contradiction"))
    two = TaskAnswer("label", ("entailment", "not_entailment"))
    weights = write_weights(3, {"glue_mnli": three, "glue_rte": two})
    names = ("glue_mnli_matched", "glue_mnli_mismatched", "glue_ax", "super_glue_axb")
    rows = rows_of(23)
    answers = predictions(tmp_path, dict.fromkeys((*names, "glue_rte"), rows), vocabulary, weights)
    of_mnli, _ = np.split(logits_of(weights, vocabulary, rows), [3], axis=1)
    expected = [three.words[column] for column in of_mnli.argmax(axis=1)]
    assert [answers[name] for name in names[:3]] == [expected] * 3
    assert answers["super_glue_axb"] == answers["glue_rte"]
    alone = write_weights(3, {"glue_rte": two})
    with pytest.raises(ArtifactError, match="fine-tune on glue_mnli, or leave glue_ax out"):
        predictions(tmp_path, {"glue_ax": rows}, vocabulary, alone)


def test_an_ensemble_has_the_mean_of_its_members(
    tmp_path: Path, vocabulary: Path, write_weights: Callable[..., Path]
) -> None:
    members, rows = [write_weights(1), write_weights(2)], {"scores": rows_of(5)}
    single = [
        [float(text) for text in predictions(tmp_path / str(n), rows, vocabulary, one)["scores"]]
        for n, one in enumerate(members)
    ]
    both = predictions(tmp_path / "both", rows, vocabulary, *members)["scores"]
    assert [float(text) for text in both] == pytest.approx(np.mean(single, axis=0), abs=1e-3)


def test_what_cannot_be_predicted_is_refused_with_its_cure(
    tmp_path: Path, vocabulary: Path, write_weights: Callable[..., Path]
) -> None:
    weights = write_weights(1)
    with pytest.raises(ArtifactError, match="no labels of other, only of .'pairs'"):
        predictions(tmp_path, {"other": rows_of(2)}, vocabulary, weights)
    without = [{key: row[key] for key in row if key != "segments"} for row in rows_of(2)]
    with pytest.raises(ArtifactError, match=r"task pairs line 1 lacks segments.*tasks\.segments"):
        predictions(tmp_path, {"pairs": without}, vocabulary, weights)
    other = write_weights(2, {"pairs": LABELS["pairs"]})
    with pytest.raises(ArtifactError, match=r"members of evaluate\.ensemble need the same tasks"):
        predictions(tmp_path, {"pairs": rows_of(2)}, vocabulary, weights, other)


def test_a_network_of_spans_alone_is_read_again(
    tmp_path: Path, vocabulary: Path, write_weights: Callable[..., Path]
) -> None:
    """It has no column of labels, and its file still names its tasks."""
    weights = write_weights(5, {"questions": TaskAnswer("span")})
    rows = {"questions": with_context(rows_of(4))}
    answers = predictions(tmp_path, rows, vocabulary, weights)["questions"]
    contexts = [row["segments"][1] for row in rows["questions"]]
    assert all(text in context for text, context in zip(answers, contexts, strict=True))
    assert any(answers)


def test_examples_of_another_kind_than_the_networks_are_refused(
    tmp_path: Path, vocabulary: Path, write_weights: Callable[..., Path]
) -> None:
    kinds = {"choices": TaskAnswer("choice", ("a", "b")), "questions": TaskAnswer("span")}
    weights = write_weights(4, kinds)
    with pytest.raises(ArtifactError, match="line 1 of choices has 0 options, .* with 2"):
        predictions(tmp_path, {"choices": rows_of(2)}, vocabulary, weights)
    alone = [row | {"segments": ["word1"]} for row in rows_of(2)]
    with pytest.raises(ArtifactError, match="line 1 of questions has 1 segments"):
        predictions(tmp_path, {"questions": alone}, vocabulary, weights)


def with_context(rows: list[Row]) -> list[Row]:
    """Give the rows a text that is longer than a row of ids."""
    context = " ".join(f"word{(3 * k) % 50} and" for k in range(12))
    return [
        row | {"segments": [row["segments"][0], f"{n} {context}"]} for n, row in enumerate(rows)
    ]


def test_spans_and_options_are_answered_beside_labels(
    tmp_path: Path, vocabulary: Path, write_weights: Callable[..., Path]
) -> None:
    """The span is the likeliest of all windows, each read alone without padding."""
    from t5repro.model.checkpoints import load_weights
    from t5repro.model.task_rows import TaskRowEncoder, encode_rows, texts_of
    from t5repro.model.windows import best_windows
    from t5repro.systems.answering import build_network
    from t5repro.systems.label_answers import shared_labels
    from t5repro.vocab.vocabulary import Vocabulary

    kinds = {
        "choices": TaskAnswer("choice", ("first", "second")),
        "pairs": LABELS["pairs"],
        "questions": TaskAnswer("span"),
    }
    options = {"options": ["word1 and", "no word2 word3"]}
    rows = {
        "choices": [row | options for row in rows_of(9)],
        "pairs": rows_of(9),
        "questions": with_context(rows_of(9)),
    }
    weights = write_weights(4, kinds)
    answers = predictions(tmp_path, rows, vocabulary, weights, answer_length=5, span_candidates=20)
    assert set(answers["choices"]) == {"first", "second"}
    assert set(answers["pairs"]) <= {"no", "yes"}
    path = weights.parent / "weights.safetensors"
    columns = shared_labels([path])
    network = build_network(settings(), columns)
    load_weights(path, network)
    encoder = TaskRowEncoder(
        Vocabulary.load(vocabulary), model=MODEL, length=40, windows=settings().tasks.windows
    )
    encoded = encode_rows(encoder, texts_of(rows), columns)
    assert len(encoded["questions"].rows) > 9

    def logits(row: Any) -> tuple[np.ndarray, np.ndarray]:
        types = np.arange(len(row.ids)) >= row.first_length
        features = {"ids": row.ids, "segments": np.ones(len(row.ids)), "types": types}
        arrays = {f"encoder_{name}": np.array([one], int) for name, one in features.items()}
        labels, ends = network(arrays)
        return np.asarray(labels)[0], np.asarray(ends)[0]

    column = columns.columns["choices"].first
    scores = np.array([logits(row)[0][column] for row in encoded["choices"].rows]).reshape(9, 2)
    assert answers["choices"] == [("first", "second")[best] for best in scores.argmax(axis=1)]
    best: dict[int, tuple[float, str]] = {}
    windows = encoded["questions"].windows
    for number, window in enumerate(windows):
        ends, start = logits(window.row)[1], window.row.first_length
        own = [other for other in windows if other.example == window.example]
        bests = best_windows(own[-1].pieces[1], [other.pieces for other in own])
        of_example = number - windows.index(own[0])
        tops = [set(np.argsort(-ends[:, side], kind="stable")[:20]) for side in range(2)]
        for first in range(start, start + len(window.ranges)):
            for last in range(first, min(first + 5, start + len(window.ranges))):
                is_best = bests[window.pieces[0] + first - start] == of_example
                if first in tops[0] and last in tops[1] and is_best:
                    found = (float(ends[first, 0] + ends[last, 1]), window.answer(first, last))
                    best[window.example] = max(best.get(window.example, (-1e9, "")), found)
    assert answers["questions"] == [best.get(row, (0, ""))[1] for row in range(9)]
    assert len(set(answers["questions"])) > 3
    counters = json.loads((tmp_path / "out/manifest.json").read_text())["counters"]["tasks"]
    assert counters["questions"]["examples"] == counters["choices"]["examples"] == 9


def leaderboard_rows(task: str, kind: str) -> list[Row]:
    """Return three rows of a test set, with the ids of its leaderboard."""
    rows = [{**row, "targets": "<unknown>", "answer": None} for row in rows_of(3)]
    if kind == "choice":
        rows = [{**row, "options": ["word1 and", "no word2"]} for row in rows]
    if task == "super_glue_multirc":
        ids = [(5, 8, 0), (5, 8, 1), (6, 9, 0)]
        keys = ("paragraph", "question", "answer")
        pairs = zip(rows, ids, strict=True)
        rows = [{**row, "idx": dict(zip(keys, numbers, strict=True))} for row, numbers in pairs]
    return rows


def test_an_encoder_fills_the_zips_of_both_leaderboards_with_labels_of_theirs(
    tmp_path: Path, vocabulary: Path, write_weights: Callable[..., Path]
) -> None:
    texts = TaskTexts(text=TextSettings(winograd="labels"))
    record = tmp_path / "record.jsonl"
    passage = {"text": "Ann met Bob.", "entities": [{"start": 0, "end": 2}]}
    queries = [{"query": "@placeholder left", "idx": number} for number in range(3)]
    record.write_text(json.dumps({"passage": passage, "qas": queries, "idx": 0}) + "\n")
    trivial: dict[str, Path | None] = {"glue_wnli": None, "super_glue_record": record}
    files = {task: file for board in LEADERBOARDS.values() for task, file in board.items()}
    answered = [task for task in files if task not in trivial]
    kinds = {task: facts_of(task).answer for task in answered} | {"super_glue_wsc": "label"}
    heads = {task: TaskAnswer(kind, task_named(task, texts).labels) for task, kind in kinds.items()}
    rows = {task: leaderboard_rows(task, heads[task].kind) for task in answered}
    predictions(tmp_path, rows, vocabulary, write_weights(5, heads))
    for board, count in (("glue", 11), ("super_glue", 10)):
        submissions = {task: replace(file, rows=3) for task, file in LEADERBOARDS[board].items()}
        output = tmp_path / f"{board}.zip"
        write_submission(
            submissions,
            predictions=tmp_path / "out",
            texts=texts,
            output=output,
            manifest=tmp_path / f"{board}.json",
            trivial={task: path for task, path in trivial.items() if task in submissions},
        )
        with zipfile.ZipFile(output) as archive:
            assert archive.testzip() is None
            assert len(archive.namelist()) == count
        counters = read_json(tmp_path / f"{board}.json")["counters"]
        # A network of labels writes nothing else: no answer had to be replaced.
        assert {entry.get("invalid", 0) for entry in counters.values()} == {0}
        assert [task for task in counters if "trivial" in counters[task]] == [
            task for task in submissions if task in trivial
        ]


def test_a_question_without_an_answer_has_the_odds_of_it_and_the_span_in_its_row(
    tmp_path: Path, vocabulary: Path, write_weights: Callable[..., Path]
) -> None:
    """The threshold decides the text and neither the span nor the odds."""
    weights = write_weights(4, {"squad_2": TaskAnswer("span", ("unanswerable",))})
    rows = {"squad_2": with_context(rows_of(9))}
    texts = predictions(tmp_path, rows, vocabulary, weights)["squad_2"]
    written = list(read_json_lines(tmp_path / "out/squad_2.jsonl"))
    odds = sorted(row["null_odds"] for row in written)
    assert [row["prediction"] for row in written] == texts
    assert all(
        row["prediction"] == (row["span"] if row["null_odds"] <= 0 else "unanswerable")
        for row in written
    )
    limit = odds[4]
    predictions(tmp_path, rows, vocabulary, weights, null_threshold=limit)
    again = list(read_json_lines(tmp_path / "out/squad_2.jsonl"))
    assert [row["prediction"] == "unanswerable" for row in again] == [
        row["null_odds"] > limit for row in written
    ]
    assert 0 < sum(row["prediction"] == "unanswerable" for row in again) < 9
    keys = ("span", "null_odds")
    assert [[row[key] for key in keys] for row in again] == [
        [row[key] for key in keys] for row in written
    ]


def test_every_word_of_a_sentence_is_answered_with_a_tag(
    tmp_path: Path, vocabulary: Path, write_weights: Callable[..., Path]
) -> None:
    weights = write_weights(4, {"names": TaskAnswer("tags", ("O", "B-PER", "I-PER"), 1)})
    sentences = [" ".join(f"word{n + k}" for k in range(1 + 29 * (n % 2))) for n in range(6)]
    rows = [row | {"segments": [text]} for row, text in zip(rows_of(6), sentences, strict=True)]
    answers = predictions(tmp_path, {"names": rows}, vocabulary, weights)["names"]
    assert [len(text.split(" ")) for text in answers] == [1, 30] * 3
    tags = {tag for text in answers for tag in text.split(" ")}
    assert {"O"} < tags <= {"O", "B-PER", "I-PER"}
    # A row of 40 pieces has no room for all of the long sentences.
    assert all(text.endswith(" O") for text in answers[1::2])
    counters = json.loads((tmp_path / "out/manifest.json").read_text())["counters"]["tasks"]
    assert counters["names"] == {"examples": 6, "truncated_inputs": 3}
