"""A run in hand: answers, log-probabilities, scores and tables of a finished run."""

import contextlib
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import SUPPORT
from finished_run import RUN, TEXTS, VOCABULARY, WORDS, settings, write_run
from jax_environment import PYTHON
from jax_environment import run as run_program
from run_network import check

import t5repro
from t5repro.cli.main import main
from t5repro.errors import ArtifactError, LineageError, SettingsError
from t5repro.files import read_json, write_json_lines, write_manifest

pytestmark = [
    pytest.mark.keras,
    # Another test of this process may have started TensorFlow.
    pytest.mark.filterwarnings("ignore:TensorFlow already runs with"),
]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkout")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_run(folder)
    return folder


@pytest.fixture
def run(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> t5repro.Run:
    monkeypatch.chdir(checkout)
    run = t5repro.load(RUN)
    assert isinstance(run, t5repro.Run)
    return run


def evaluated(experiment: str) -> list[str]:
    lines = (RUN / "evaluate_predict" / experiment / "one.jsonl").read_text(encoding="utf-8")
    return [json.loads(line)["prediction"] for line in lines.splitlines()]


def test_the_first_experiment_is_the_baseline(run: t5repro.Run) -> None:
    assert run.experiments == ("baseline", "other")
    assert [answer.prediction for answer in run.predict(TEXTS)] == evaluated("baseline")


def test_answers_equal_the_predictions_of_the_stage_greedily_and_with_beams(
    run: t5repro.Run,
) -> None:
    answers = run.predict(TEXTS[::-1], experiment="other", beam=True)
    assert [answer.prediction for answer in answers] == evaluated("other")[::-1]
    assert [answer.inputs for answer in answers] == TEXTS[::-1]


def test_one_text_has_the_answer_that_it_has_among_others(run: t5repro.Run) -> None:
    assert [run.predict([text])[0].prediction for text in TEXTS[:3]] == evaluated("baseline")[:3]
    assert run.predict([]) == []


def test_a_log_probability_is_the_sum_of_the_steps_of_decoding(run: t5repro.Run) -> None:
    text = TEXTS[4]
    answer = run.predict([TEXTS[0], text, TEXTS[7]], log_probabilities=True)[1]
    model = run.model()
    _, vocabulary, (network,) = model._load()
    inputs = np.array([[*vocabulary.encode(text)[:63], 1]], np.int32)
    written: list[int] = []
    total = 0.0
    # One id at a time, without caches; later positions do not matter.
    while len(written) < 12 and written[-1:] != [1]:
        decoder_ids = np.array([[0, *written, *[0] * (12 - len(written))]], np.int32)
        logits = np.asarray(
            network(
                {
                    "encoder_ids": inputs,
                    "encoder_segments": np.ones_like(inputs),
                    "decoder_ids": decoder_ids,
                    "decoder_segments": np.ones_like(decoder_ids),
                }
            )
        )[0, len(written)].astype(np.float64)
        written.append(int(logits.argmax()))
        total -= math.log(np.exp(logits - logits.max()).sum())
    assert answer.prediction == vocabulary.decode(written)
    assert answer.log_probability == pytest.approx(total, abs=1e-4)


def test_inputs_that_were_cut_say_so(run: t5repro.Run) -> None:
    short, long = run.predict(["yes", " ".join(WORDS)])
    assert (short.truncated, long.truncated) == (False, True)


def test_weights_that_are_not_those_of_the_predictions_are_refused(
    run: t5repro.Run, checkout: Path
) -> None:
    weights = checkout / RUN / "finetune/other/weights.safetensors"
    before = weights.read_bytes()
    weights.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    try:
        with pytest.raises(ArtifactError, match=r"finetune/other/weights.*run t5repro verify"):
            run.predict(["yes"], experiment="other")
    finally:
        weights.write_bytes(before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: run.predict(["yes"], experiment="othr"), "no experiment 'othr'; nearest: 'o"),
        (lambda run: run.predict(["yes"], step=7), "step 7 of baseline was not evaluated"),
        (lambda run: run.predict("yes"), "texts is a string"),
        (lambda run: run.predict(["a", 1]), r"texts\[1\] is 1; give strings, such as 'sst2"),
        (lambda run: run.predict(["\ud800"]), "cannot be written as UTF-8"),
        (lambda run: run.predictions("on"), "no task 'on'; nearest: 'one'"),
    ],
)  # fmt: skip
def test_a_wrong_question_is_named_with_the_cure(run: t5repro.Run, call: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        call(run)


def test_predictions_are_a_table(run: t5repro.Run) -> None:
    table = run.predictions("one", experiment="other")
    assert list(table.columns) == ["answer", "idx", "inputs", "prediction", "targets"]
    assert list(table["prediction"]) == evaluated("other")


def test_the_network_of_a_run_is_a_keras_model_with_which_the_run_answers(run: t5repro.Run) -> None:
    check(run)


@pytest.mark.jax
@pytest.mark.skipif(not PYTHON.exists(), reason="JAX is not installed: make .venv-jax/installed")
def test_the_network_of_a_run_on_jax_is_one_too(tmp_path: Path) -> None:
    run_program(PYTHON, str(SUPPORT / "run_network.py"), str(tmp_path))


def test_the_lineage_of_an_answer_names_its_weights(run: t5repro.Run) -> None:
    lineage = run.lineage("results/r/evaluate_predict/baseline/one.jsonl")
    assert "results/r/finetune/baseline/weights.safetensors" in json.dumps(lineage)
    with pytest.raises(LineageError):
        run.lineage("results/r/nothing")


def test_an_exported_model_answers_as_the_run(run: t5repro.Run, tmp_path: Path) -> None:
    from t5repro.publish.weights import export_weights

    export_weights(
        RUN / "finetune/baseline/manifest.json",
        vocabulary=VOCABULARY,
        form="huggingface",
        folder=tmp_path / "exported",
    )
    exported = t5repro.load_model(tmp_path / "exported")
    assert isinstance(exported, t5repro.Model)
    # No library writes the lengths.
    lengths = {"evaluate": settings(()).evaluate}
    exported.settings = exported.settings.model_copy(update=lengths)
    assert [answer.prediction for answer in exported.predict(TEXTS)] == evaluated("baseline")


def test_a_folder_with_neither_a_run_nor_weights_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="contains no readable weights"):
        t5repro.load_model(tmp_path)
    with pytest.raises(ArtifactError, match="load_model opens a folder of weights"):
        t5repro.load(tmp_path)
    (tmp_path / "pretrained/pretrain").mkdir(parents=True)
    with pytest.raises(ArtifactError, match="ends with pre-training, .* weights export"):
        t5repro.load(tmp_path / "pretrained")
    with pytest.raises(ArtifactError, match="there is no folder results/absent"):
        t5repro.load("results/absent")
    with pytest.raises(ArtifactError, match="is not a .keras file"):
        t5repro.load_network(tmp_path)


def test_the_command_prints_answers_of_standard_input_in_a_process_of_its_own(
    checkout: Path,
) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "t5repro", "predict", RUN.as_posix(), "--log-probabilities"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        input=f"{TEXTS[3]}\n",
        capture_output=True,
        text=True,
        check=False,
    )
    value, _, answer = ran.stdout.rstrip("\n").partition("\t")
    assert float(value) < 0
    assert answer == evaluated_in(checkout, "baseline")[3]


def test_the_command_prints_answers_of_arguments_and_files(
    run: t5repro.Run, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def predict(*words: str) -> list[str]:
        assert main(["predict", RUN.as_posix(), *words]) == 0
        return capsys.readouterr().out.splitlines()

    before = evaluated_in(checkout, "baseline")
    Path("texts").write_text("".join(f"{text}\r\n" for text in TEXTS), encoding="utf-8")
    rows = [json.loads(line) for line in predict("--file", "texts", "--json")]
    assert [row["prediction"] for row in rows] == before
    intermixed = predict(TEXTS[0], "--experiment", "baseline", TEXTS[1], "--json", TEXTS[2])
    rows = [json.loads(line) for line in intermixed]
    assert [row["inputs"] for row in rows] == TEXTS[:3]
    assert [row["prediction"] for row in rows] == before[:3]
    assert predict("--arm", "other", "--beam", TEXTS[0]) == evaluated_in(checkout, "other")[:1]
    with pytest.raises(SystemExit, match="2"):
        main(["predict", RUN.as_posix(), "--bem", TEXTS[0]])
    assert "unrecognized arguments: --bem" in capsys.readouterr().err
    assert main(["predict", RUN.as_posix(), "text", "--file", "texts"]) != 0
    assert "texts and --file are given" in capsys.readouterr().err


def test_each_line_has_a_line_blank_ones_too_and_json_lines_have_their_inputs(
    run: t5repro.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    def answers(file: str) -> list[str]:
        assert main(["predict", RUN.as_posix(), "--file", file]) == 0
        return capsys.readouterr().out.splitlines()

    Path("blank").write_text(f"\n{TEXTS[0]}\n \t\n{TEXTS[1]}\n\n", encoding="utf-8")
    first, second = evaluated("baseline")[:2]
    assert answers("blank") == ["", first, "", second, ""]
    Path("windows").write_bytes(f"\ufeff{TEXTS[0]}\r\n\r\n{TEXTS[1]}\r\n".encode())
    assert answers("windows") == [first, "", second]
    assert answers(f"{RUN}/tasks/one/validation.jsonl") == evaluated("baseline")


def test_inputs_that_were_cut_are_counted_with_the_first_line(
    run: t5repro.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("long").write_text(f"{TEXTS[0]}\n\n{TEXTS[0] * 99}\n{TEXTS[1] * 99}\n", encoding="utf-8")
    assert main(["predict", RUN.as_posix(), "--file", "long"]) == 0
    screen = capsys.readouterr()
    assert len(screen.out.splitlines()) == 4
    assert "2 of 3 inputs are longer than the run's evaluate.inputs_length" in screen.err
    assert "the first: long line 3" in screen.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sst2 sentence: a", "rows.jsonl line 2 is not JSON .* name a file with a text per line"),
        ('{"input": "a"}', "rows.jsonl line 2: 'inputs' is None; each line of a .jsonl file is an"),
        ("[1]", "rows.jsonl line 2: 'inputs' is None"),
        pytest.param("[" * 200_000, "line 2 is not JSON .*levels deep.*; correct it", id="deep"),
        pytest.param('{"inputs": ' + "1" * 5000 + "}", "line 2 is not JSON .*digits", id="digits"),
        ('{"inputs": "a", "inputs": "b"}', "line 2 is not JSON .*'inputs' is set twice"),
    ],
)
def test_a_wrong_json_line_is_named(
    run: t5repro.Run, capsys: pytest.CaptureFixture[str], line: str, message: str
) -> None:
    Path("rows.jsonl").write_text(f'{{"inputs": "a"}}\n{line}\n', encoding="utf-8")
    assert main(["predict", RUN.as_posix(), "--file", "rows.jsonl"]) == 1
    assert re.search(message, capsys.readouterr().err)


def test_inputs_without_a_prefix_of_the_run_are_counted_and_answered(
    run: t5repro.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.prefixes() == {"one": ""}  # its inputs share no beginning: any text is right
    assert main(["predict", RUN.as_posix(), "a joy"]) == 0
    assert "prefix" not in capsys.readouterr().err
    with answers_replaced("baseline", "one"):
        assert main(["predict", RUN.as_posix(), "a joy", "one text: a", "one txt: b"]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 3
    assert printed.err.splitlines()[0] == (
        "t5repro predict: 2 of 3 inputs begin with no prefix of the tasks of results/r; a right "
        "beginning is 'one text: '"
    )


@contextlib.contextmanager
def answers_replaced(experiment: str, task: str) -> Iterator[None]:
    """Give an experiment a single task, whose inputs begin with its name."""
    folder = RUN / "evaluate_predict" / experiment
    manifest, path = folder / "manifest.json", folder / f"{task}.jsonl"
    before = {file: file.read_bytes() for file in folder.iterdir()}
    try:
        write_json_lines(path, [{"inputs": f"{task} text: {text}"} for text in TEXTS])
        values = read_json(manifest)
        write_manifest(
            manifest,
            rule="evaluate_predict",
            settings=values["settings"],
            inputs=[Path(entry["path"]) for entry in values["inputs"]],
            outputs=[path],
            counters={},
        )
        yield
    finally:
        path.unlink()
        for file, content in before.items():
            file.write_bytes(content)


def test_the_experiment_that_was_evaluated_on_the_task_of_a_text_answers(
    run: t5repro.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["two text: a joy", "two text: no"]
    with answers_replaced("baseline", "one"), answers_replaced("other", "two"):
        assert run.experiment_for(texts) == "other"
        assert run.tasks(experiment="other") == ("two",)
        assert run.experiment_for(["one text: a", *texts]) == ""
        assert main(["predict", RUN.as_posix(), *texts]) == 0
        chosen = capsys.readouterr()
        assert main(["predict", RUN.as_posix(), "--experiment", "other", *texts]) == 0
    assert chosen == capsys.readouterr()
    assert "prefix" not in chosen.err


def test_a_run_without_its_predictions_answers_all_the_same(
    run: t5repro.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    path = RUN / "evaluate_predict/baseline/one.jsonl"
    expected, content = evaluated("baseline")[:1], path.read_bytes()
    path.unlink()
    try:
        assert main(["predict", RUN.as_posix(), TEXTS[0]]) == 0
    finally:
        path.write_bytes(content)
    assert capsys.readouterr().out.splitlines() == expected


def evaluated_in(folder: Path, experiment: str) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return evaluated(experiment)


def test_the_package_offers_its_public_names_and_no_others() -> None:
    assert sorted(t5repro.__all__) == [
        "Model",
        "Prediction",
        "Run",
        "load",
        "load_model",
        "load_network",
    ]
    assert all(hasattr(t5repro, name) for name in t5repro.__all__)
    assert set(t5repro.__all__) <= set(dir(t5repro))
    assert not hasattr(t5repro, "predict")
