"""Commands of tasks and of the paper's rows: a new task, lists, leaderboard submissions."""

import argparse
import shlex
import sys
from pathlib import Path

from t5repro.cli.parsers import Commands, OutputFile, add_command, add_group
from t5repro.errors import SettingsError
from t5repro.progress import printable
from t5repro.task_table import BENCHMARK_TITLES

EXAMPLE_CHARS = 100  # of an input that is printed


def add_tasks(commands: Commands) -> None:
    """Add the commands of the groups `tasks` and `paper`."""
    group = add_group(commands, "tasks", "list, sources, new, submit: the tasks of fine-tuning")
    tasks = add_command(group, "list", _list_tasks, "print the names of all tasks")
    tasks.add_argument("run_file", type=Path, nargs="?", help="include the tasks of this run file")
    sources = add_command(
        group, "sources", _list_sources, "print the origins of the files of tasks"
    )
    sources.add_argument("tasks", nargs="+", metavar="TASK", help="name of a task")
    _add_new_task(group)
    submit = add_command(group, "submit", _submit, "write the zip of a leaderboard submission")
    submit.add_argument("leaderboard", choices=[*BENCHMARK_TITLES])
    submit.add_argument(
        "--predictions", type=Path, required=True, help="folder of evaluate_predict"
    )
    submit.add_argument("--output", type=OutputFile, required=True, help="zip to write")
    submit.add_argument("--run-file", type=Path, help="run file, required if it changes tasks.text")
    submit.add_argument(
        "--trivial",
        action="append",
        default=[],
        metavar="TASK[=FILE]",
        help="answer a task without predictions trivially: glue_wnli by its majority class, "
        "super_glue_record from its test file",
    )
    paper = add_group(commands, "paper", "rows: the rows of published tables")
    add_command(paper, "rows", _list_rows, "print published rows, their experiments and states")


def _add_new_task(commands: Commands) -> None:
    new = add_command(
        commands, "new", _new_task, "propose a run file that fine-tunes on a file of rows"
    )
    new.add_argument("file", type=Path, help=".csv, .tsv, .jsonl or .parquet")
    new.add_argument(
        "--from",
        dest="start",
        default="",
        metavar="FOLDER",
        help="run, its training or a published checkpoint to start from; by default the only run",
    )
    new.add_argument("--target", default="", help="column of the answer")
    new.add_argument("--inputs", default="", metavar="COLUMN,...", help="columns of the input")
    new.add_argument("--labels", default="", metavar="WORD,...", help="words for the labels")
    new.add_argument("--metric", default="", help="metric, such as accuracy or rouge")
    new.add_argument(
        "--validation",
        default="",
        metavar="FILE|SHARE",
        help="file of the validation split, or the share of the rows that are it",
    )
    new.add_argument(
        "--skip-incomplete",
        action="store_true",
        help="leave out rows without a value in a column of the task, and count them",
    )
    new.add_argument(
        "--delimiter",
        default="",
        choices=[",", ";", "tab", "|"],
        help="between the cells of a .csv file; by default what separates the header's names",
    )
    new.add_argument(
        "--encoding", default="", help="of a .csv or .tsv file, such as cp1252; by default utf-8"
    )
    new.add_argument("--name", default="", help="name of the task and of the run")
    new.add_argument("--licence", default="not stated", help="licence of the rows")
    new.add_argument("--out", type=OutputFile, help="run file to write; by default it is printed")


def _new_task(arguments: argparse.Namespace) -> None:
    from t5repro.config.project_files import is_project
    from t5repro.files import write_text
    from t5repro.new_task.proposal import Options
    from t5repro.new_task.rows import check_exists
    from t5repro.new_task.run_file import new_task
    from t5repro.new_task.start import below_working_folder, find_start

    if arguments.out and arguments.out.exists():
        raise SettingsError(f"{arguments.out} exists; remove it, or name another file: --out")
    check_exists(below_working_folder(arguments.file))
    proposed = new_task(
        arguments.file,
        find_start(arguments.start),
        options=Options(
            target=arguments.target,
            inputs=_comma_separated(arguments.inputs),
            labels=_comma_separated(arguments.labels),
            metric=arguments.metric,
            validation=arguments.validation,
            skip_incomplete=arguments.skip_incomplete,
            delimiter="\t" if arguments.delimiter == "tab" else arguments.delimiter,
            encoding=arguments.encoding,
        ),
        name=arguments.name,
        licence=arguments.licence,
    )
    for reason in proposed.reasons:
        print(printable(reason), file=sys.stderr)
    if not arguments.out:
        print(proposed.text, end="")
        return
    write_text(arguments.out, proposed.text)
    print(f"wrote {arguments.out}; run it, then ask the model:")
    if not is_project():
        print("  t5repro init .")
    print(f"  snakemake --profile local --configfile {arguments.out}")
    example = " ".join(proposed.example.split())[:EXAMPLE_CHARS]  # on one line
    print(f"  t5repro predict results/{proposed.name} {shlex.quote(example)}")


def _comma_separated(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text else ()


def _submit(arguments: argparse.Namespace) -> None:
    from t5repro.config.load import load_run_file, load_settings
    from t5repro.config.sections.tasks import TaskTexts
    from t5repro.publish.leaderboard import LEADERBOARDS, write_submission

    settings = load_run_file(arguments.run_file) if arguments.run_file else load_settings({})
    trivial = dict(text.partition("=")[::2] for text in arguments.trivial)
    write_submission(
        LEADERBOARDS[arguments.leaderboard],
        predictions=arguments.predictions,
        texts=TaskTexts(text=settings.tasks.text),
        output=arguments.output,
        manifest=arguments.output.with_suffix(".manifest.json"),
        trivial={task: Path(file) if file else None for task, file in trivial.items()},
    )
    if trivial:
        print(f"not predicted, but answered trivially: {', '.join(trivial)}")
    print(f"wrote {arguments.output} and {arguments.output.with_suffix('.manifest.json')}")


def _list_tasks(arguments: argparse.Namespace) -> None:
    from t5repro.config.known_tasks import known_tasks
    from t5repro.config.load import load_run_file
    from t5repro.config.sections.tasks import TaskTexts

    texts = load_run_file(arguments.run_file).tasks if arguments.run_file else TaskTexts()
    for name in known_tasks(texts):
        print(name)


def _list_sources(arguments: argparse.Namespace) -> None:
    import yaml

    from t5repro.config.run_file import task_sources

    print(yaml.safe_dump(task_sources(arguments.tasks), sort_keys=False), end="")


def _list_rows(arguments: argparse.Namespace) -> None:
    from t5repro.report.row_states import row_states, row_states_text, system_row_states

    print(row_states_text(row_states()))
    print()
    print(row_states_text(system_row_states()))
