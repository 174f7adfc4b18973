"""The command `runs`: all runs as a table, those that match terms, or those that used a file."""

import argparse
from pathlib import Path

from t5repro.cli.answers import FINDINGS, OK, print_json, print_text
from t5repro.cli.parsers import Commands, OutputFile, add_command


def add_runs(commands: Commands) -> None:
    """Add the command."""
    runs = add_command(
        commands, "runs", _runs, "list all runs, or those with some settings, scores or files"
    )
    runs.add_argument(
        "terms",
        nargs="*",
        metavar="TERM",
        help="KEY:OP:VALUE, all must match; OP is eq, ne, lt, le, gt, ge or has (part of a text)",
    )
    runs.add_argument("--sort", default="", metavar="KEY[:desc]", help="order; missing ones last")
    runs.add_argument("--columns", default="", metavar="KEY,...", help="columns, with commas")
    runs.add_argument("--model", metavar="FILE", help="that depend on this file or SHA-256")
    runs.add_argument("--data", metavar="RAW", help="that may have read a raw file, URL or domain")
    runs.add_argument(
        "--all-revisions", action="store_true", help="include every revision of the git history"
    )
    form = runs.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print all that is known, as JSON")
    form.add_argument("--csv", action="store_true", help="print the columns and scores as CSV")
    form.add_argument(
        "--html", type=OutputFile, metavar="FILE", help="write a page with a drawing, too"
    )


def _runs(arguments: argparse.Namespace) -> int:
    from t5repro.runs.search import search
    from t5repro.runs.table import Query
    from t5repro.runs.terms import parse_term
    from t5repro.runs.used_by import wanted_file

    query = Query(
        terms=tuple(map(parse_term, arguments.terms)),
        sort=arguments.sort,
        columns=tuple(filter(None, arguments.columns.split(","))),
    )
    files = [wanted_file(Path(), arguments.model)] if arguments.model is not None else []
    if arguments.data is not None:
        from t5repro.audit.run_sources import wanted_source  # imports PyArrow

        files.append(wanted_source(Path(), arguments.data))
    table = search(Path(), query, files, all_revisions=arguments.all_revisions)
    if arguments.html:
        from t5repro.files import write_text
        from t5repro.report.runs_page import runs_page

        write_text(arguments.html, runs_page(table))
    if arguments.json:
        print_json(table.to_json())
    else:
        print_text(table.to_csv() if arguments.csv else table.to_text())
    return OK if table.is_complete else FINDINGS
