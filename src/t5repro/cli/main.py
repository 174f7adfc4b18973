"""The command line: one subcommand per rule, and a few for people.

The only reader of arguments. Each subcommand imports its stage when it runs, so that an audit or
a dry run never waits for TensorFlow.
"""

import argparse
import contextlib
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from t5repro import __version__
from t5repro.cli import c4
from t5repro.cli.arguments import add_examples, add_kept_steps, by_folder, by_name, pairs
from t5repro.cli.audit import add_audit
from t5repro.cli.export import add_export
from t5repro.cli.preflight import add_preflight
from t5repro.cli.publish import add_exchange
from t5repro.cli.tasks import add_task_commands
from t5repro.cli.versions import add_lineage
from t5repro.errors import SettingsError, T5ReproError
from t5repro.progress import announce, log_to

INTERRUPTED = 130  # what a shell reports after Ctrl-C
TERMINATED = 143  # what a shell reports after SIGTERM

Handler = Callable[[argparse.Namespace], int | None]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; return the exit code."""
    arguments = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _terminate)
    log = getattr(arguments, "log", None)
    with log_to(log) if log else contextlib.nullcontext():
        try:
            with _recorded(arguments):
                code: int | None = arguments.handler(arguments)
            return code or 0
        except T5ReproError as error:
            announce(f"t5repro {arguments.command}: {error}")
            return error.exit_code
        except KeyboardInterrupt:
            announce(f"t5repro {arguments.command}: stopped; run the same command to go on")
            return INTERRUPTED


def _recorded(arguments: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """Return what writes the job's record; nothing for commands that are no rule's."""
    rule = arguments.command
    if not getattr(arguments, "log", None):
        return contextlib.nullcontext()
    from t5repro.config.stage_settings import received
    from t5repro.lineage.record import recording
    from t5repro.stages import BY_NAME

    if rule not in BY_NAME:
        return contextlib.nullcontext()
    settings = _settings(arguments, "data" if rule == "data_fetch" else None)
    return recording(
        rule,
        log=arguments.log,
        settings=received(rule, settings.model_dump(mode="json")),
        files=_named_files(arguments),
        manifest=getattr(arguments, "manifest", None),
    )


def _named_files(arguments: argparse.Namespace) -> list[Path]:
    """Return every file that the command line names, but for the log."""
    named = []
    for option, value in sorted(vars(arguments).items()):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Path) and option != "log":
                named.append(item)
            elif isinstance(item, str) and option != "settings" and "=" in item:
                named.append(Path(item.partition("=")[2]))
    return named


class _Terminated(SystemExit):
    """SIGTERM: unwinds like Ctrl-C, so that temporary files go and state is saved."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated(TERMINATED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="t5repro", description="T5 from the crawl to the scores, with a record of every step."
    )
    parser.add_argument("--version", action="version", version=f"t5repro {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_data(commands)
    _add_c4(commands)
    _add_vocab(commands)
    _add_training(commands)
    add_preflight(commands)
    _add_evaluation(commands)
    add_audit(commands)
    add_exchange(commands, _settings)
    add_export(commands)
    _add_people(commands)
    return parser


def _command(
    commands: Any, name: str, handler: Handler, meaning: str, **paths: str
) -> argparse.ArgumentParser:
    """Add the subcommand of a rule: its settings, its log, and one option per path."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=meaning, description=meaning)
    parser.set_defaults(handler=handler)
    parser.add_argument(
        "--settings",
        required=True,
        help="the stage's settings as JSON, or a run file to take them from",
    )
    parser.add_argument("--log", type=Path, help="file that gets everything printed")
    for option, what in paths.items():
        parser.add_argument("--" + option.replace("_", "-"), type=Path, required=True, help=what)
    return parser


def _settings(arguments: argparse.Namespace, rule: str | None = None) -> Any:
    from t5repro.config.load import load_run_file
    from t5repro.config.stage_settings import stage_model, stage_settings
    from t5repro.config.validation import parse_stage

    rule = rule or arguments.command
    text: str = arguments.settings
    if text.endswith((".yaml", ".yml")):
        values = stage_settings(load_run_file(Path(text)), rule)
        return stage_model(rule).model_validate(values)
    return parse_stage(rule, text)


# data


def _add_data(commands: Any) -> None:
    _command(
        commands,
        "data_fetch",
        _data_fetch,
        "copy or download the raw inputs",
        downloads="folder for archives between runs",
    )
    _command(
        commands,
        "data",
        _data,
        "check the raw inputs against the run file",
        manifest="manifest to write",
    )


def _data_fetch(arguments: argparse.Namespace) -> None:
    from t5repro.data.fetch import fetch

    fetch(_settings(arguments, "data"), downloads=arguments.downloads)


def _data(arguments: argparse.Namespace) -> None:
    from t5repro.data.check import check

    check(_settings(arguments), manifest=arguments.manifest)


# c4


def _add_c4(commands: Any) -> None:
    punkt = _command(
        commands,
        "c4_punkt",
        _c4_punkt,
        "train Punkt parameters on a part of the crawl",
        folder="folder of parameters",
        manifest="manifest to write",
    )
    _add_wet(punkt)
    punkt.add_argument("--withdrawn", type=Path, help="list of withdrawn URLs and domains")
    clean = _command(
        commands,
        "c4_clean",
        _c4_clean,
        "clean the pages of one shard of the crawl",
        output="Parquet file of pages",
        manifest="manifest to write",
    )
    _add_lists(clean)
    clean.add_argument("--withdrawn", type=Path, help="list of withdrawn URLs and domains")
    _add_wet(clean)
    clean.add_argument("--domains", type=Path, help="list of the domains to read")
    clean.add_argument("--urls", type=Path, help="list of the addresses to read")
    clean.add_argument("--shard", type=int, default=0, help="which part of the list")
    dedup = _command(
        commands,
        "c4_dedup",
        _c4_dedup,
        "decide which pages and spans to remove",
        output="decisions",
        manifest="manifest to write",
    )
    dedup.add_argument("--cleaned", type=Path, nargs="+", required=True, help="outputs of c4_clean")
    write = _command(
        commands,
        "c4",
        _c4,
        "write the corpus by language and split",
        decisions="output of c4_dedup",
        folder="folder of the corpus",
        manifest="manifest to write",
    )
    write.add_argument("--cleaned", type=Path, nargs="+", required=True, help="outputs of c4_clean")
    _add_lists(write)
    for command in (clean, dedup, write):
        command.add_argument(
            "--engine",
            default="",
            help="`c4.engine` and `c4.spark` as JSON, or a run file to take them from",
        )


def _add_wet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wet", type=Path, nargs="*", default=[], help="WET files")
    parser.add_argument("--paths", type=Path, help="list of WET paths, instead of --wet")


def _add_lists(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--punkt",
        nargs="*",
        default=[],
        metavar="LANGUAGE=FOLDER",
        help="folders of Punkt parameters (punkt_tab layout)",
    )
    parser.add_argument(
        "--bad-words", nargs="*", default=[], metavar="LANGUAGE=FILE", help="lists of bad words"
    )


def _lists(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"punkt": pairs(arguments.punkt), "bad_words": pairs(arguments.bad_words)}


def _c4_punkt(arguments: argparse.Namespace) -> None:
    c4.train_punkt(arguments, _settings(arguments))


def _c4_clean(arguments: argparse.Namespace) -> None:
    c4.clean_shard(arguments, _settings(arguments), _lists(arguments))


def _c4_dedup(arguments: argparse.Namespace) -> None:
    c4.deduplicate(arguments, _settings(arguments))


def _c4(arguments: argparse.Namespace) -> None:
    c4.write_corpus(arguments, _settings(arguments), _lists(arguments))


# vocab, tokens


def _add_vocab(commands: Any) -> None:
    _command(
        commands,
        "vocab_sample",
        _vocab_sample,
        "draw the text the vocabulary is trained on",
        corpus="manifest of the corpus",
        output="text file",
        manifest="manifest to write",
    )
    vocab = _command(
        commands,
        "vocab",
        _vocab,
        "train the SentencePiece vocabulary",
        model="model to write",
        pieces="list of pieces to write",
        manifest="manifest to write",
    )
    source = vocab.add_mutually_exclusive_group(required=True)
    source.add_argument("--sample", type=Path, help="output of vocab_sample")
    source.add_argument("--model-file", type=Path, help="SentencePiece model to take over")
    _command(
        commands,
        "tokens",
        _tokens,
        "write the corpus as ids",
        corpus="manifest of the corpus",
        vocabulary="SentencePiece model",
        folder="folder of ids",
        manifest="manifest to write",
    )


def _vocab_sample(arguments: argparse.Namespace) -> None:
    from t5repro.vocab.sample import sample_corpus

    sample_corpus(
        _settings(arguments),
        corpus=arguments.corpus,
        output=arguments.output,
        manifest=arguments.manifest,
    )


def _vocab(arguments: argparse.Namespace) -> None:
    from t5repro.vocab.train import adopt_vocabulary, train_vocabulary

    settings = _settings(arguments)
    outputs = {"model": arguments.model, "pieces": arguments.pieces, "manifest": arguments.manifest}
    if arguments.model_file is None:
        train_vocabulary(settings, sample=arguments.sample, **outputs)
    else:
        adopt_vocabulary(settings, source=arguments.model_file, **outputs)


def _tokens(arguments: argparse.Namespace) -> None:
    from t5repro.vocab.encode import encode_corpus

    encode_corpus(
        _settings(arguments),
        corpus=arguments.corpus,
        vocabulary=arguments.vocabulary,
        folder=arguments.folder,
        manifest=arguments.manifest,
    )


# tasks, training


def _add_training(commands: Any) -> None:
    tasks = _command(
        commands,
        "tasks",
        _tasks,
        "write one task's examples as text to text",
        folder="folder of examples",
        manifest="manifest to write",
    )
    tasks.add_argument("--task", required=True, help="name of the task")
    tasks.add_argument(
        "--files", nargs="+", required=True, metavar="SPLIT=FILE", help="files, split by split"
    )
    pretrain = _command(
        commands,
        "pretrain",
        _pretrain,
        "pre-train on the corpus",
        tokens="manifest of the ids",
        folder="folder of weights",
        work="folder of resumable state",
        manifest="manifest to write",
    )
    _add_monitor(pretrain)
    pretrain.add_argument("--start-from", type=Path, help="folder of a published checkpoint")
    finetune = _command(
        commands,
        "finetune",
        _finetune,
        "fine-tune on the mixture of tasks",
        weights="manifest of the pre-trained weights",
        vocabulary="SentencePiece model",
        folder="folder of weights",
        work="folder of resumable state",
        manifest="manifest to write",
    )
    add_examples(finetune, "examples", "training examples; the folder names the task")
    _add_monitor(finetune)
    finetune.add_argument("--tokens", type=Path, help="manifest of the ids, if they are drawn too")


def _add_monitor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--monitor", type=Path, help="folder of speeds and TensorBoard files")
    parser.add_argument(
        "--resume-changed",
        action="store_true",
        help="resume from the newest checkpoint although settings, inputs, code or libraries "
        "differ; the manifest records it",
    )


def _tasks(arguments: argparse.Namespace) -> None:
    from t5repro.tasks.build import write_examples

    files: dict[str, list[Path]] = {}
    for item in arguments.files:
        ((split, path),) = pairs([item]).items()
        files.setdefault(split, []).append(path)
    write_examples(
        _settings(arguments),
        task=arguments.task,
        files=files,
        folder=arguments.folder,
        manifest=arguments.manifest,
    )


def _pretrain(arguments: argparse.Namespace) -> None:
    from t5repro.train.pretrain import pretrain

    pretrain(
        _settings(arguments),
        tokens=arguments.tokens,
        start_from=arguments.start_from,
        folder=arguments.folder,
        work=arguments.work,
        manifest=arguments.manifest,
        monitor=arguments.monitor,
        resume_changed=arguments.resume_changed,
    )


def _finetune(arguments: argparse.Namespace) -> None:
    from t5repro.train.finetune import finetune

    finetune(
        _settings(arguments),
        weights=arguments.weights,
        examples=by_folder(arguments.examples),
        vocabulary=arguments.vocabulary,
        tokens=arguments.tokens,
        folder=arguments.folder,
        work=arguments.work,
        manifest=arguments.manifest,
        monitor=arguments.monitor,
        resume_changed=arguments.resume_changed,
    )


# evaluate, report


def _add_evaluation(commands: Any) -> None:
    predict = _command(
        commands,
        "evaluate_predict",
        _predict,
        "predict the targets of every task",
        vocabulary="SentencePiece model",
        folder="folder of predictions",
        manifest="manifest to write",
    )
    predict.add_argument(
        "--weights",
        nargs="+",
        type=Path,
        required=True,
        metavar="FILE",
        help="manifest of the fine-tuned weights; of an ensemble, those of its members",
    )
    add_kept_steps(predict)
    add_examples(predict, "examples", "examples to predict; the folder names the task")
    score = _command(
        commands,
        "evaluate_score",
        _score,
        "score the predictions",
        output="scores to write",
        manifest="manifest to write",
    )
    add_kept_steps(score)
    add_examples(score, "predictions", "predictions; the file is named after the task")
    add_examples(score, "train", "training examples, for the majority class")
    report = _command(
        commands,
        "report",
        _report,
        "write the report",
        html="page to write",
        trace="lineage page to write",
        csv="table to write",
        manifest="manifest to write",
    )
    for option, what in (
        ("scores", "scores of each experiment"),
        ("pretrain-history", "history of pre-training of each experiment"),
        ("finetune-history", "history of fine-tuning of each experiment"),
        ("corpus", "manifest of the corpus of each experiment"),
    ):
        report.add_argument(
            f"--{option}", nargs="+", required=True, metavar="EXPERIMENT=FILE", help=what
        )


def _predict(arguments: argparse.Namespace) -> None:
    settings = _settings(arguments)
    from t5repro.model.devices import prepare

    devices = prepare(settings.devices)
    from t5repro.evaluate.predict import predict

    predict(
        settings,
        weights=arguments.weights,
        kept_steps=arguments.kept_steps,
        examples=by_folder(arguments.examples),
        vocabulary=arguments.vocabulary,
        folder=arguments.folder,
        manifest=arguments.manifest,
        devices=devices,
    )


def _score(arguments: argparse.Namespace) -> None:
    from t5repro.evaluate.score import score

    score(
        _settings(arguments),
        predictions=by_name(arguments.predictions),
        train=by_folder(arguments.train),
        kept_steps=arguments.kept_steps,
        output=arguments.output,
        manifest=arguments.manifest,
    )


def _report(arguments: argparse.Namespace) -> None:
    from t5repro.report.page import write_report

    pretrain, finetune = pairs(arguments.pretrain_history), pairs(arguments.finetune_history)
    write_report(
        _settings(arguments),
        scores=pairs(arguments.scores),
        histories={
            name: {"pretrain": pretrain[name], "finetune": finetune[name]} for name in pretrain
        },
        corpus=pairs(arguments.corpus),
        html=arguments.html,
        trace=arguments.trace,
        csv=arguments.csv,
        manifest=arguments.manifest,
    )


# for people


def _add_people(commands: Any) -> None:
    show = commands.add_parser("show", help="print the scores of a run and where its report is")
    show.add_argument("run", type=Path, help="folder of the run, such as results/demo")
    show.set_defaults(handler=_show)
    frozen = commands.add_parser("frozen", help="compare the raw inputs with data.dvc")
    frozen.add_argument("record", type=Path, nargs="?", default=Path("data.dvc"))
    frozen.set_defaults(handler=_frozen)
    add_lineage(commands)
    config = commands.add_parser("config", help="print, generate or check settings")
    config.add_argument("action", choices=["show", "generate", "check"])
    config.add_argument("run_file", type=Path, nargs="?", default=Path("configs/base.yaml"))
    config.set_defaults(handler=_config)
    batches = commands.add_parser(
        "batches", help="which documents a step of pre-training saw, or which steps saw a document"
    )
    batches.add_argument("manifest", type=Path, help="manifest of the pre-training")
    asked = batches.add_mutually_exclusive_group(required=True)
    asked.add_argument("--step", type=int, help="number of a step, from 0")
    asked.add_argument("--document", type=int, help="place among the documents of tokens, from 0")
    batches.set_defaults(handler=_batches)
    add_task_commands(commands)


def _show(arguments: argparse.Namespace) -> None:
    from t5repro.report.text_table import scores_text

    print(scores_text(arguments.run), end="")


def _frozen(arguments: argparse.Namespace) -> None:
    from t5repro.versions.raw_data_check import check_raw_data

    print(f"the raw inputs are those of {arguments.record}: {check_raw_data(arguments.record)}")


def _config(arguments: argparse.Namespace) -> None:
    from t5repro.config import generate
    from t5repro.config.load import load_run_file
    from t5repro.files import write_text
    from t5repro.versions import dvc_pipeline

    if arguments.action == "generate":
        for path, text in generate.generated_files().items():
            write_text(path, text)
            print(f"wrote {path}")
        for path, text in dvc_pipeline.generated().items():
            write_text(path, text)
            print(f"wrote {path}")
    elif arguments.action == "check":
        if faults := generate.drifted() + dvc_pipeline.drifted():
            raise SettingsError("\n".join(faults))
        print("generated files are in sync")
    else:
        print(load_run_file(arguments.run_file).model_dump_json(indent=2))


def _batches(arguments: argparse.Namespace) -> None:
    import dataclasses
    import json

    from t5repro.inputs.step_audit import open_recorded_inputs, spans_in_step, steps_of_documents

    inputs, steps = open_recorded_inputs(arguments.manifest)
    if arguments.step is None:
        found = steps_of_documents(inputs, [arguments.document], steps=steps)
        print(json.dumps({"document": arguments.document, "steps": found[arguments.document]}))
        return
    if not 0 <= arguments.step < steps:
        raise SettingsError(f"--step is {arguments.step}; the training had steps 0 to {steps - 1}")
    for span in spans_in_step(inputs, arguments.step):
        print(json.dumps(dataclasses.asdict(span)))
