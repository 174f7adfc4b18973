"""Answers of a network of labels to rows of its tasks, from a finished run."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_run import VOCABULARY, write_vocabulary

import t5repro
from t5repro.cli.main import main
from t5repro.config.presets.sizes import SIZES
from t5repro.config.schema import Settings
from t5repro.config.sections.evaluate import PredictStage
from t5repro.config.stage_settings import stage_settings
from t5repro.errors import ArtifactError, SettingsError
from t5repro.files import read_json_lines, write_json_lines, write_manifest
from t5repro.jobs.predict import PredictJob
from t5repro.model.labels import LabelColumns, TaskAnswer

pytestmark = [
    pytest.mark.keras,
    # Another test of this process may have started TensorFlow.
    pytest.mark.filterwarnings("ignore:TensorFlow already runs with"),
]
RUN = Path("results/r")
PIECES = 104  # leaves rows of the embedding for the special pieces
ANSWERS = {
    "pairs": TaskAnswer("label", ("no", "yes"), segments=2),
    "scores": TaskAnswer("number"),
    "choices": TaskAnswer("choice", ("first", "second")),
    "questions": TaskAnswer("span"),
}
Row = dict[str, Any]


def settings(experiment: str) -> PredictStage:
    tree = stage_settings(Settings(), "evaluate_predict")
    size = "gpt_tiny" if experiment == "gpt" else "bert_tiny"
    one_block = {"num_encoder_layers": 1, "num_decoder_layers": 1, "max_positions": 64}
    tree["model"] = SIZES[size].model_copy(update=one_block).model_dump(mode="json")
    tree["vocab"] |= {"vocab_size": PIECES, "extra_ids": 8}
    tree["evaluate"] |= {"batch_size": 4, "inputs_length": 40, "max_decode_length": 4}
    tree["tasks"]["windows"] = {"question_length": 8, "stride": 10}
    if experiment == "gpt":
        tree["finetune"]["answers"] = "labels"
    return PredictStage.model_validate(tree)


def network(stage: PredictStage, columns: LabelColumns) -> Any:
    from t5repro.model.checkpoints import weight_variables
    from t5repro.systems.answering import build_network

    model = build_network(stage, columns)
    # With initial weights all rows would have one answer.
    random = np.random.default_rng(3)
    for variable in weight_variables(model).values():
        noise = random.normal(size=variable.shape).astype(np.float32)
        variable.assign(np.asarray(variable.numpy()) + 0.3 * noise)
    return model


def rows_of(task: str) -> list[Row]:
    texts = [" ".join(f"word{(7 * n + k) % 50}" for k in range(1 + 3 * (n % 6))) for n in range(9)]
    rows: list[Row] = [
        {"inputs": "x", "targets": "yes", "idx": number, "answer": 1, "segments": [text, "yes no"]}
        for number, text in enumerate(texts)
    ]
    for row in rows:
        if task == "choices":
            row["options"] = ["word3 or", "no"]
        elif task == "questions":
            row["segments"].reverse()
    return rows


def write_experiment(name: str, tasks: list[str]) -> None:
    from t5repro.evaluate.predict import predict
    from t5repro.model.checkpoints import save_weights

    stage = settings(name)
    folder = RUN / "finetune" / name
    weights = folder / "weights.safetensors"
    columns = LabelColumns({task: ANSWERS[task] for task in tasks})
    save_weights(weights, network(stage, columns), columns)
    write_manifest(
        folder / "manifest.json",
        rule="finetune",
        settings={},
        inputs=[VOCABULARY],
        outputs=[weights],
        counters={},
    )
    for task in tasks:
        write_json_lines(RUN / f"tasks/{task}/validation.jsonl", rows_of(task))
    predict(
        PredictJob(
            stage,
            weights=[folder / "manifest.json"],
            examples={task: RUN / f"tasks/{task}/validation.jsonl" for task in tasks},
            vocabulary=VOCABULARY,
            folder=RUN / "evaluate_predict" / name,
            manifest=RUN / "evaluate_predict" / name / "manifest.json",
        )
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_vocabulary(folder, vocab_size=PIECES)
        write_experiment("bert", list(ANSWERS))
        write_experiment("gpt", ["pairs", "choices"])
    return folder


@pytest.fixture
def run(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> t5repro.Run:
    monkeypatch.chdir(checkout)
    run = t5repro.load(RUN)
    assert isinstance(run, t5repro.Run)
    return run


def evaluated(experiment: str, task: str) -> list[str]:
    path = RUN / f"evaluate_predict/{experiment}/{task}.jsonl"
    return [row["prediction"] for row in read_json_lines(path)]


@pytest.mark.parametrize(
    ("experiment", "task"),
    [*(("bert", task) for task in ANSWERS), ("gpt", "pairs"), ("gpt", "choices")],
)
def test_answers_equal_the_predictions_of_the_stage(
    run: t5repro.Run, experiment: str, task: str
) -> None:
    rows = [
        {key: row[key] for key in ("segments", "options") if key in row} for row in rows_of(task)
    ]
    answers = run.predict_rows(rows[::-1], task=task, experiment=experiment)
    expected = evaluated(experiment, task)
    assert [answer.prediction for answer in answers] == expected[::-1]
    assert len(set(expected)) > 1
    assert run.predict_rows(rows[:1], task=task, experiment=experiment)[0].prediction == expected[0]
    assert run.predict_rows([], task=task, experiment=experiment) == []


def test_rows_that_were_cut_say_so(run: t5repro.Run) -> None:
    answers = run.predict_rows(
        [{"segments": ["word1", "no"]}, {"segments": ["word1 " * 60, "no"]}], task="pairs"
    )
    assert [answer.truncated for answer in answers] == [False, True]
    assert answers[0].inputs == "word1\tno"


def test_the_first_network_of_labels_that_has_the_task_answers(run: t5repro.Run) -> None:
    assert run.experiments == ("bert", "gpt")
    row = {"segments": ["word1", "no"]}
    first = run.predict_rows([row], task="scores")
    assert first == run.predict_rows([row], task="scores", experiment="bert")


def test_the_command_takes_segments_between_tabs_and_rows_of_a_file(
    run: t5repro.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    def answers(*words: str) -> list[str]:
        assert main(["predict", RUN.as_posix(), *words]) == 0
        return capsys.readouterr().out.splitlines()

    texts = ["\t".join(row["segments"]) for row in rows_of("pairs")]
    assert answers("--task", "pairs", *texts) == evaluated("bert", "pairs")
    assert answers("--task", "pairs", "--experiment", "gpt", *texts) == evaluated("gpt", "pairs")
    for task in ANSWERS:
        file = f"{RUN}/tasks/{task}/validation.jsonl"
        assert answers("--task", task, "--file", file) == evaluated("bert", task)
    (line,) = answers("--task", "pairs", "--json", texts[0])
    assert json.loads(line) == {
        "inputs": texts[0],
        "prediction": evaluated("bert", "pairs")[0],
        "log_probability": None,
        "truncated": False,
    }


@pytest.mark.parametrize("line", ["[1]", '{"inputs": "a"}', '{"segments": "a"}'])
def test_a_line_without_segments_is_named(
    run: t5repro.Run, capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(f'{{"segments": ["a", "b"]}}\n\n{line}\n', encoding="utf-8")
    assert main(["predict", RUN.as_posix(), "--task", "pairs", "--file", str(file)]) != 0
    message = " ".join(capsys.readouterr().err.split())
    assert "rows.jsonl line 3: 'segments' is " in message
    assert "the key 'segments', which is a list of texts" in message


@pytest.mark.parametrize(
    ("rows", "task", "message"),
    [
        ([{"segments": ["a"]}], "pair", "no network of labels that was evaluated on 'pair'"),
        (["a"], "pairs", r"rows\[0\] is 'a'; a row is {\"segments\": \[text, ...\]}"),
        ([{"segments": "a"}], "pairs", r"rows\[0\] is {'segments': 'a'}"),
        ([{"segments": ["a", "b"]}, {"segments": [1]}], "pairs", r"rows\[1\] is"),
        ([{"segments": []}], "pairs", r"rows\[0\] is"),
        ([{"inputs": "a"}], "pairs", r"rows\[0\] is"),
        ([{"segments": ["\ud800"]}], "pairs", r"rows\[0\] is"),
        ([{"segments": ["a"], "options": [None]}], "choices", r"rows\[0\] is"),
    ],
)
def test_a_wrong_row_is_named_with_its_form(
    run: t5repro.Run, rows: list[Any], task: str, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        run.predict_rows(rows, task=task)


@pytest.mark.parametrize(
    ("row", "task", "message"),
    [
        ({"segments": ["a"]}, "choices", "line 1 of choices has 0 options, .* trained with 2"),
        ({"segments": ["a"]}, "questions", "line 1 of questions has 1 segments, .* reads 2"),
        ({"segments": ["a\\tb"]}, "pairs", "line 1 of pairs has 1 segments, .* reads 2; give"),
    ],
)
def test_a_row_of_another_kind_of_task_is_named(
    run: t5repro.Run, row: Row, task: str, message: str
) -> None:
    with pytest.raises(ArtifactError, match=message):
        run.predict_rows([row], task=task)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a"], "bert has model.architecture encoder .* give rows .* t5repro predict --task"),
        (["--task", "pairs", "--beam", "a"], "leave --beam and --log-probabilities out"),
        (["--task", "pairs", "--experiment", "gtp", "a"], "no experiment 'gtp'; nearest: 'gpt'"),
        (["--task", "scores", "--experiment", "gpt", "a"], "no task 'scores'.* tasks are"),
    ],
)
def test_a_command_that_does_not_suit_the_network_says_what_does(
    run: t5repro.Run, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["predict", RUN.as_posix(), *words]) == 2
    assert re.search(message, " ".join(capsys.readouterr().err.split()))
