"""The command `predict`: answers of a fine-tuned model to texts, or to rows of a task."""

import argparse
import dataclasses
import json
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t5repro.cli.arguments import add_experiment
from t5repro.cli.parsers import Commands, add_command
from t5repro.errors import ArtifactError, FormError, RawDataError, SettingsError
from t5repro.file_forms import FIRST_BYTES, in_place, other_form
from t5repro.strict_json import parse_json

if TYPE_CHECKING:
    from t5repro.inference.model import Prediction
    from t5repro.inference.run import Run


def add_predict(commands: Commands) -> None:
    """Add the command."""
    predict = add_command(
        commands, "predict", _predict, "print the answers of a fine-tuned model to texts"
    )
    predict.add_argument("run", help="folder of a run, or with exported weights")
    predict.add_argument(
        "text",
        nargs="*",
        default=[],  # without one, argparse says that a text is required
        help='inputs, such as "sst2 sentence: a joy"; by default the lines of standard input',
    )
    predict.add_argument(
        "--file",
        type=Path,
        help="an input in each line; .jsonl: its key inputs, with --task its key segments",
    )
    predict.add_argument(
        "--task",
        default="",
        help="task of the inputs, for a network of labels: an input has the segments of a row "
        "without prefix, separated by tabs",
    )
    add_experiment(predict, "experiment, as no_pretraining; by default the first with such tasks")
    predict.add_argument("--step", type=int, help="step of fine-tuning whose weights were kept")
    predict.add_argument("--rev", default="", help="git revision whose weights DVC has")
    predict.add_argument("--beam", action="store_true", help="beam search instead of greedy")
    predict.add_argument(
        "--log-probabilities", action="store_true", help="print that of each answer before it"
    )
    predict.add_argument("--json", action="store_true", help="print a JSON object per line")


def _predict(arguments: argparse.Namespace) -> None:
    for answer in _answers(arguments):
        if arguments.json:
            print(json.dumps(dataclasses.asdict(answer), ensure_ascii=False))
        elif answer.log_probability is not None:
            print(f"{answer.log_probability:.4f}\t{answer.prediction}")
        else:
            print(answer.prediction)


def _answers(arguments: argparse.Namespace) -> "Iterator[Prediction]":
    """Yield an answer for each line, an empty one for a blank line; count inputs that were cut."""
    from t5repro.inference.model import Prediction

    # All at once: a batch has several inputs, and the warning needs their total.
    lines = list(_inputs(arguments))
    inputs = [(row, location) for row, location in lines if row is not None]
    answer = _row_answers if arguments.task else _text_answers
    answers = answer(arguments, inputs)
    if cut := [location for (_, location), a in zip(inputs, answers, strict=True) if a.truncated]:
        print(
            f"t5repro predict: {len(cut)} of {len(inputs)} inputs are longer than the run's "
            f"evaluate.inputs_length, and their ends were cut off; the first: {cut[0]}",
            file=sys.stderr,
        )
    # Blank lines were not predicted; they return to their places here.
    remaining_answers = iter(answers)
    for row, _ in lines:
        yield Prediction("", "") if row is None else next(remaining_answers)


def _text_answers(
    arguments: argparse.Namespace, inputs: Sequence[tuple[Any, str]]
) -> "list[Prediction]":
    from t5repro.inference.load import holds_run, load, load_model

    texts = [_text_of(row, location) if isinstance(row, dict) else row for row, location in inputs]
    # A run has models to choose from; a folder of exported weights is one model.
    if arguments.rev or holds_run(Path(arguments.run)):
        run = load(arguments.run, revision=arguments.rev)
        experiment = arguments.experiment
        if not arguments.rev:  # of a revision, DVC would have to fetch the predictions
            experiment = _experiment_for(run, experiment, texts)
        model = run.model(experiment, step=arguments.step)
    else:
        model = load_model(arguments.run)
        if arguments.experiment or arguments.step is not None:
            raise SettingsError(
                f"{arguments.run} is one model, no run; leave --experiment and --step out"
            )
    return model.predict(texts, beam=arguments.beam, log_probabilities=arguments.log_probabilities)


def _row_answers(
    arguments: argparse.Namespace, inputs: Sequence[tuple[Any, str]]
) -> "list[Prediction]":
    """Return the answers of a network of labels."""
    from t5repro.inference.load import holds_run, load

    if arguments.beam or arguments.log_probabilities:
        raise SettingsError(
            "--task is for a network of labels, which writes no text; leave --beam and "
            "--log-probabilities out"
        )
    rows = [_row_of(row, location) for row, location in inputs]
    if not arguments.rev and not holds_run(Path(arguments.run)):
        raise SettingsError(f"{arguments.run} is one model, no run; leave --task out")
    run = load(arguments.run, revision=arguments.rev)
    return run.predict_rows(
        rows, task=arguments.task, experiment=arguments.experiment or "", step=arguments.step
    )


def _experiment_for(run: "Run", experiment: str, texts: Sequence[str]) -> str:
    """Return the experiment that answers: the named one, or one that knows the texts' beginnings.

    Says on standard error how many texts begin like no task of it: the model answers these, too.
    """
    try:
        experiment = experiment or run.experiment_for(texts)
        prefixes = list(run.prefixes(experiment=experiment).values())
    except ArtifactError:  # answers do not need the predictions of the stage
        return experiment
    unprefixed_count = sum(
        not text.startswith(tuple(p.rstrip() for p in prefixes)) for text in texts
    )
    if unprefixed_count and prefixes and all(prefixes):  # a task without a prefix takes any text
        print(
            f"t5repro predict: {unprefixed_count} of {len(texts)} inputs begin with no prefix of "
            f"the tasks of {run.name}; a right beginning is {prefixes[0]!r}",
            file=sys.stderr,
        )
    return experiment


def _inputs(arguments: argparse.Namespace) -> Iterator[tuple[Any, str]]:
    """Yield each input and its place: a text, the object of a JSON line, None for a blank line."""
    if arguments.text and arguments.file:
        raise SettingsError("texts and --file are given; leave one out")
    if arguments.text:
        yield from ((text, "text") for text in arguments.text)
        return
    name = arguments.file or "standard input"
    try:
        with arguments.file.open("rb") if arguments.file else sys.stdin.buffer as stream:
            # Lines of bytes: `str.splitlines` would also divide at U+2028 within a text.
            data = stream.read()
    except OSError as error:
        raise RawDataError(f"{name}: {error.strerror}; name a file with a text per line") from error
    if arguments.file and (form := other_form(arguments.file, data[:FIRST_BYTES])):
        raise FormError(in_place(arguments.file, form))
    lines = data.removeprefix(BOM_UTF8).splitlines()
    has_objects = arguments.file is not None and arguments.file.suffix == ".jsonl"
    for number, line in enumerate(lines, start=1):
        location = f"{name} line {number}"
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise RawDataError(
                f"{location} is not UTF-8 (byte {error.start}); convert it"
            ) from error
        if text.strip():
            yield _object_of(text, location) if has_objects else text, location
        else:
            yield None, location


def _object_of(line: str, location: str) -> dict[str, Any]:
    """Return a JSON object; one without keys for other JSON."""
    try:
        row = parse_json(line.encode())
    except ValueError as error:
        raise RawDataError(
            f"{location} is not JSON ({error}); correct it, or name a file with a text per line"
        ) from error
    # The caller then names the missing key, which also says what a line must be.
    return row if isinstance(row, dict) else {}


def _row_of(row: Any, location: str) -> dict[str, Any]:
    """Return a row of a task: the object of a JSON line, or the segments of a text."""
    if isinstance(row, str):
        return {"segments": row.split("\t")}
    if not isinstance(row.get("segments"), list):
        raise RawDataError(
            f"{location}: 'segments' is {row.get('segments')!r}; each line of a .jsonl file is an "
            "object with the key 'segments', which is a list of texts"
        )
    return dict(row)


def _text_of(row: dict[str, Any], location: str) -> str:
    """Return the value of the key ``inputs``."""
    text = row.get("inputs")
    if not isinstance(text, str):
        raise RawDataError(
            f"{location}: 'inputs' is {text!r}; each line of a .jsonl file is an object with the "
            "key 'inputs', which is a text"
        )
    return text
