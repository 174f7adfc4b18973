"""Subcommands of tasks: lists of tasks and mixtures, origins of files, leaderboard submissions."""

import argparse
from pathlib import Path

from t5repro.cli.arguments import Commands, add_command


def add_tasks(commands: Commands) -> None:
    """Add the subcommands `submit`, `list_tasks`, `list_sources` and `list_mixtures`."""
    submit = add_command(commands, "submit", _submit, "write the zip of a leaderboard submission")
    submit.add_argument("leaderboard", choices=["glue", "super_glue"])
    submit.add_argument(
        "--predictions", type=Path, required=True, help="folder of evaluate_predict"
    )
    submit.add_argument("--output", type=Path, required=True, help="zip to write")
    submit.add_argument("--run-file", type=Path, help="run file, required if it changes tasks.text")
    tasks = add_command(commands, "list_tasks", _list_tasks, "print the names of all tasks")
    tasks.add_argument("run_file", type=Path, nargs="?", help="include the tasks of this run file")
    sources = add_command(
        commands, "list_sources", _list_sources, "print the origins of the files of tasks"
    )
    sources.add_argument("tasks", nargs="+", metavar="TASK", help="name of a task")
    add_command(
        commands, "list_mixtures", _list_mixtures, "print the named mixtures with their tasks"
    )


def _submit(arguments: argparse.Namespace) -> None:
    from t5repro.config.load import load_run_file, load_settings
    from t5repro.config.sections.tasks import TaskTexts
    from t5repro.publish.leaderboard import LEADERBOARDS, write_submission

    settings = load_run_file(arguments.run_file) if arguments.run_file else load_settings({})
    write_submission(
        LEADERBOARDS[arguments.leaderboard],
        predictions=arguments.predictions,
        texts=TaskTexts(text=settings.tasks.text),
        output=arguments.output,
        manifest=arguments.output.with_suffix(".manifest.json"),
    )
    print(f"wrote {arguments.output} and {arguments.output.with_suffix('.manifest.json')}")


def _list_tasks(arguments: argparse.Namespace) -> None:
    from t5repro.config.load import load_run_file
    from t5repro.config.task_layouts import TASK_FILES

    own = load_run_file(arguments.run_file).tasks.own if arguments.run_file else {}
    for name in (*TASK_FILES, *own):
        print(name)


def _list_sources(arguments: argparse.Namespace) -> None:
    import yaml

    from t5repro.config.run_file import task_sources

    print(yaml.safe_dump(task_sources(arguments.tasks), sort_keys=False), end="")


def _list_mixtures(arguments: argparse.Namespace) -> None:
    from t5repro.config.mixtures import MIXTURES

    for name, mixture in MIXTURES.items():
        note = " (with C4)" if mixture.c4 else ""
        print(f"{name}: {mixture.kind}{note}: {' '.join(mixture.tasks)}")
