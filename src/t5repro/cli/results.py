"""Subcommands about a finished run: show, cost, predict, batches."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t5repro.cli.arguments import Commands, add_command, add_experiment
from t5repro.errors import ArtifactError, RawDataError, SettingsError

if TYPE_CHECKING:
    from t5repro.inference.run import Run


def add_results(commands: Commands) -> None:
    """Add the subcommands that show a finished run."""
    show = add_command(commands, "show", _show, "print the scores of a run and its report's path")
    show.add_argument("run", type=Path, help="folder of the run, such as results/demo")
    cost = add_command(commands, "cost", _cost, "print time, memory and machine of every stage")
    cost.add_argument("run", type=Path, help="folder of the run, such as results/demo")
    cost.add_argument(
        "--configfile",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="run files of the run; adds the seconds that they are estimated to take",
    )
    cost.add_argument("--html", type=Path, help="write the table as a page, too")
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
    predict.add_argument("--file", type=Path, help="an input in each line; .jsonl: its key inputs")
    add_experiment(predict, "experiment, as no_pretraining; by default the first with such tasks")
    predict.add_argument("--step", type=int, help="step of fine-tuning whose weights were kept")
    predict.add_argument("--rev", default="", help="git revision whose weights DVC has")
    predict.add_argument("--beam", action="store_true", help="beam search instead of greedy")
    predict.add_argument(
        "--log-probabilities", action="store_true", help="print that of each answer before it"
    )
    predict.add_argument("--json", action="store_true", help="print a JSON object per line")
    batches = add_command(
        commands,
        "batches",
        _batches,
        "print the documents of a pre-training step, or the steps of a document",
    )
    batches.add_argument("manifest", type=Path, help="manifest of the pre-training")
    question = batches.add_mutually_exclusive_group(required=True)
    question.add_argument("--step", type=int, help="number of a step, from 0")
    question.add_argument("--document", type=int, help="index of a document of tokens, from 0")


def _show(arguments: argparse.Namespace) -> None:
    from t5repro.report.text_table import scores_text

    print(scores_text(arguments.run), end="")


def _cost(arguments: argparse.Namespace) -> None:
    from t5repro.files import write_text
    from t5repro.report.cost import cost_page, cost_text, job_costs, stage_costs

    stages = stage_costs(job_costs(arguments.run))
    if arguments.html:
        write_text(arguments.html, cost_page(arguments.run.resolve().name, stages))
    if not arguments.configfile:
        print(cost_text(stages), end="")
        return
    from t5repro.estimate.text import cost_comparison

    print(cost_comparison(stages, _estimated(arguments)), end="")


def _estimated(arguments: argparse.Namespace) -> dict[str, float]:
    """Return stage -> estimated seconds of a finished run."""
    from t5repro.estimate.plan import estimated_seconds
    from t5repro.estimate.run_files import load_run_files
    from t5repro.lineage.graph import read_records
    from t5repro.lineage.store import Folder

    settings, folder = load_run_files(arguments.configfile), arguments.run.resolve()
    if settings.run.name != folder.name:
        raise SettingsError(
            f"--configfile has the run {settings.run.name!r} and {arguments.run} is another; name "
            "the run files of that run"
        )
    return estimated_seconds(settings, read_records(Folder(folder.parents[1])))


def _predict(arguments: argparse.Namespace) -> None:
    from t5repro.inference.load import load
    from t5repro.inference.model import Model

    texts = list(_texts(arguments))
    model = load(arguments.run, revision=arguments.rev)
    if not isinstance(model, Model):
        experiment = arguments.experiment
        if not arguments.rev:  # of a revision, DVC would have to fetch the predictions
            experiment = _experiment_for(model, experiment, texts)
        model = model.model(experiment, step=arguments.step)
    elif arguments.experiment or arguments.step is not None:
        raise SettingsError(
            f"{arguments.run} is one model, no run; leave --experiment and --step out"
        )
    for answer in model.predict(
        texts, beam=arguments.beam, log_probabilities=arguments.log_probabilities
    ):
        if arguments.json:
            print(json.dumps(dataclasses.asdict(answer), ensure_ascii=False))
        elif answer.log_probability is not None:
            print(f"{answer.log_probability:.4f}\t{answer.prediction}")
        else:
            print(answer.prediction)


def _experiment_for(run: "Run", experiment: str, texts: Sequence[str]) -> str:
    """Return the experiment that answers: the named one, or one that knows the texts' beginnings.

    Says on standard error how many texts begin like no task of it: the model answers these, too.
    """
    try:
        experiment = experiment or run.experiment_for(texts)
        prefixes = list(run.prefixes(experiment=experiment).values())
    except ArtifactError:  # answers do not need the predictions of the stage
        return experiment
    others = sum(not text.startswith(tuple(p.rstrip() for p in prefixes)) for text in texts)
    if others and prefixes and all(prefixes):  # a task without a prefix takes any text
        print(
            f"t5repro predict: {others} of {len(texts)} inputs begin with no prefix of the tasks "
            f"of {run.name}; a right beginning is {prefixes[0]!r}",
            file=sys.stderr,
        )
    return experiment


def _texts(arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.text and arguments.file:
        raise SettingsError("texts and --file are given; leave one out")
    if arguments.text:
        yield from arguments.text
        return
    name = arguments.file or "standard input"
    try:
        with arguments.file.open("rb") if arguments.file else sys.stdin.buffer as stream:
            lines = stream.read().splitlines()
    except OSError as error:
        raise RawDataError(f"{name}: {error.strerror}; name a file with a text per line") from error
    has_objects = arguments.file is not None and arguments.file.suffix == ".jsonl"
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise RawDataError(
                f"{name} line {number} is not UTF-8 (byte {error.start}); convert it"
            ) from error
        if text.strip():
            yield _inputs_of(text, f"{name} line {number}") if has_objects else text


def _inputs_of(line: str, place: str) -> str:
    """Return the value of the key ``inputs`` of a JSON object."""
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise RawDataError(
            f"{place} is not JSON ({error}); correct it, or name a file with a text per line"
        ) from error
    text = row.get("inputs") if isinstance(row, dict) else None
    if not isinstance(text, str):
        raise RawDataError(
            f"{place}: 'inputs' is {text!r}; each line of a .jsonl file is an object with the key "
            "'inputs', which is a text"
        )
    return text


def _batches(arguments: argparse.Namespace) -> None:
    from t5repro.inputs.step_audit import open_recorded_inputs, spans_in_step, steps_of_document

    inputs, steps = open_recorded_inputs(arguments.manifest)
    if arguments.step is None:
        read = steps_of_document(inputs, arguments.document, steps=steps)
        print(json.dumps({"document": arguments.document, "steps": read}))
        return
    if not 0 <= arguments.step < steps:
        raise SettingsError(f"--step is {arguments.step}; the training had steps 0 to {steps - 1}")
    for span in spans_in_step(inputs, arguments.step):
        row = dataclasses.asdict(span)
        if span.denoiser is None:  # the objective is no mixture of denoisers
            del row["denoiser"]
        print(json.dumps(row))
