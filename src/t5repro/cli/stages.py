"""The commands of the rules: ``t5repro stage RULE`` does the job of a stage (`jobs/`)."""

import argparse
import contextlib
import importlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from t5repro.cli import c4
from t5repro.cli.arguments import add_log, add_settings, parsed_step
from t5repro.cli.job_options import add_options, expected_inputs, job_of, named_files
from t5repro.cli.parsers import Commands, add_command, add_group
from t5repro.config.sections.devices import TITLES
from t5repro.jobs.table import JOBS
from t5repro.lineage.input_hashes import verify_inputs
from t5repro.lineage.leftovers import exclusive, remove_leftovers_below
from t5repro.progress import announce, name_of_work
from t5repro.stages import BY_NAME


def add_stages(commands: Commands) -> None:
    """Add the command of every stage."""
    group = add_group(commands, "stage", "do the job of a rule; the rules call it")
    _add_preflight(group)
    for stage, job in JOBS.items():
        meaning = (job.__doc__ or "").partition(".")[0]
        parser = add_command(group, stage, partial(_run, stage), meaning[:1].lower() + meaning[1:])
        add_settings(parser)
        add_log(parser)
        add_options(parser, stage)


def _add_preflight(commands: Commands) -> None:
    parser = add_command(
        commands, "preflight", _preflight, "compile a training step for a TPU slice, without a TPU"
    )
    add_settings(parser)
    add_log(parser)
    parser.add_argument("--stage", choices=["pretrain", "finetune"], default="pretrain")
    parser.add_argument("--slice", default="", help="such as v5e:4x4; default: devices.slice")
    parser.add_argument("--python", help="interpreter with the packages of the extra preflight")
    parser.add_argument("--report", type=Path, help="JSON file to write if the step fits")


def _preflight(arguments: argparse.Namespace) -> None:
    from t5repro.train.preflight import default_python, preflight

    preflight(
        parsed_step(arguments, arguments.stage),
        slice_name=arguments.slice,
        python=arguments.python or default_python(),
        report=arguments.report,
    )


def _run(stage: str, arguments: argparse.Namespace) -> None:
    """Do the job of a stage; with a log, its record is written."""
    job = job_of(stage, arguments)
    with _recorded(stage, job, arguments.log[0]) if arguments.log else contextlib.nullcontext():
        expected = expected_inputs(job)
        if stage in c4.ON_ENGINE:
            c4.ON_ENGINE[stage](job, expected)
            return
        manifest = getattr(job, "manifest", None)
        with exclusive(manifest) if manifest else contextlib.nullcontext():
            verify_inputs(expected)
            _STARTS.get(stage, _do)(stage, job)


def _recorded(stage: str, job: Any, log: Path) -> contextlib.AbstractContextManager[None]:
    """Return the context that writes the record of a job."""
    from t5repro.config.stage_settings import received
    from t5repro.lineage.recording import recording

    return recording(
        stage,
        log=log,
        settings=received(stage, job.settings.model_dump(mode="json")),
        files=list(named_files(job)),
        manifest=getattr(job, "manifest", None),
    )


def _do(stage: str, job: Any) -> None:
    _entry(stage)(job)


def _fetch(stage: str, job: Any) -> None:
    data = job.settings.data
    if not Path(data.folder).is_absolute():  # else another checkout may write into it
        remove_leftovers_below(Path(data.folder))
    _do(stage, job)


def _train(stage: str, job: Any) -> None:
    from t5repro.lineage.sources import closure

    _announce_engine(stage, job)
    _entry(stage)(job, code=closure(stage))


def _predict(stage: str, job: Any) -> None:
    from t5repro.engines.devices import prepare

    _announce_engine(stage, job)
    devices = prepare(job.settings.devices)  # before TensorFlow is imported
    _entry(stage)(job, devices=devices)


def _announce_engine(stage: str, job: Any) -> None:
    """Print a sign of life: until the first step it is minutes on a busy machine."""
    announce(f"{name_of_work(stage)}: starting {TITLES[job.settings.devices.engine]}")


def _entry(stage: str) -> Callable[..., None]:
    """Import the function of a stage's entry module that does its job."""
    module = importlib.import_module(f"t5repro.{BY_NAME[stage].module}")
    function: Callable[..., None] = getattr(module, FUNCTIONS[stage])
    return function


_STARTS = {
    "data_fetch": _fetch,
    "pretrain": _train,
    "finetune": _train,
    "evaluate_predict": _predict,
}
FUNCTIONS = {
    "data_fetch": "fetch",
    "data": "check",
    "c4_punkt": "train_punkt",
    "c4_clean": "clean_shard",
    "corpus": "read_own_text",
    "c4_dedup": "deduplicate",
    "c4": "write_corpus",
    "vocab_sample": "sample_corpus",
    "vocab": "make_vocabulary",
    "tokens": "encode_corpus",
    "sentences": "write_sentences",
    "pretrain": "pretrain",
    "tasks": "write_examples",
    "finetune": "finetune",
    "evaluate_predict": "predict",
    "evaluate_score": "score",
    "contamination": "find_contamination",
    "report": "write_report",
}
