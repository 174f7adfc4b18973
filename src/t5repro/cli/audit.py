"""Commands of an audit: trace, pages, verify, impact, withdraw, diff, rebuild.

Each prints an answer, as text or with ``--json``. Exit codes: 0, no findings; 1, findings; 2, the
question cannot be answered.
"""

import argparse
from pathlib import Path

from t5repro.cli.answers import FINDINGS, OK, add_question, print_answer, print_json, print_text
from t5repro.cli.parsers import Commands, OutputFile
from t5repro.cli.verify import add_verify
from t5repro.errors import SettingsError
from t5repro.lineage.graph import Graph, load_graph
from t5repro.lineage.store import Folder, Revision, open_store


def add_audit(commands: Commands) -> None:
    """Add the commands to the parser."""
    trace = add_question(commands, "trace", _trace, "follow an artifact back to the raw files")
    trace.add_argument(
        "artifact", nargs="?", help="file, scores.json#task, prefix of a SHA-256, or a URL"
    )
    trace.add_argument(
        "--text",
        help="find the pages that have this text, among those behind the artifact if named",
    )
    trace.add_argument("--rev", help="git revision, or folder with results")
    trace.add_argument(
        "--pages", action="store_true", help="print the crawl record of every row of a corpus file"
    )
    trace.add_argument(
        "--steps", action="store_true", help="print the pre-training steps that saw a URL's page"
    )
    trace.add_argument("--svg", type=OutputFile, help="write the graph as an SVG file")
    trace.add_argument("--html", type=OutputFile, help="write the graph as an HTML page with links")
    pages = add_question(
        commands, "pages", _pages, "count the pages behind a score, by domain and training"
    )
    pages.add_argument("artifact", help="scores.json, scores.json#task, or another artifact")
    pages.add_argument(
        "--csv",
        type=OutputFile,
        metavar="FILE",
        help="write every page with the steps that read it",
    )
    contamination = add_question(
        commands,
        "contamination",
        _contamination,
        "find evaluated rows in the corpus, and the scores without them",
    )
    contamination.add_argument("artifact", help="scores.json, or scores.json#task")
    contamination.add_argument(
        "--method",
        nargs="+",
        default=["longest"],
        help="methods that decide: longest (default), gpt3, palm, palm_any, llama2, exact, near",
    )
    contamination.add_argument(
        "--words", type=int, help="length of a shared run that counts for longest; default 8"
    )
    contamination.add_argument(
        "--csv", type=OutputFile, metavar="FILE", help="write every field that is found"
    )
    add_verify(commands)
    impact = add_question(
        commands, "impact", _impact, "list the artifacts that depend on a raw source"
    )
    impact.add_argument("raw", help="raw file, URL or domain")
    impact.add_argument(
        "--all-revisions", action="store_true", help="include every revision of the git history"
    )
    withdraw = add_question(
        commands,
        "withdraw",
        _withdraw,
        "remove a raw source and everything made from it",
        writes=lambda arguments: not arguments.dry_run,
    )
    withdraw.add_argument("raw", nargs="?", help="raw file, URL or domain")
    withdraw.add_argument(
        "--list", type=Path, metavar="FILE", help="withdraw all that a list of requests names"
    )
    withdraw.add_argument("--reason", default="", metavar="TEXT", help="recorded and committed")
    withdraw.add_argument("--host", default="", help="site of a robots.txt or ai.txt as --list")
    withdraw.add_argument(
        "--max-share",
        type=float,
        metavar="PERCENT",
        help="refuse a list that names more of the pages; default 5",
    )
    withdraw.add_argument(
        "--dry-run", action="store_true", help="print the changes without making them"
    )
    withdraw.add_argument(
        "--delete-cache", action="store_true", help="delete its objects from DVC's local cache"
    )
    withdraw.add_argument(
        "--delete-remote", action="store_true", help="delete its objects from DVC's remotes"
    )
    diff = add_question(commands, "diff", _diff, "print where two runs diverge, and why")
    diff.add_argument("a", help="git revision, folder with results, or run such as results/demo")
    diff.add_argument("b", help="the other one; . is the working tree")
    rebuild = add_question(
        commands, "rebuild", _rebuild, "rebuild jobs in a clean clone and compare the results"
    )
    rebuild.add_argument("stage", nargs="?", help="rule, or rule/node, or run/rule/node")
    rebuild.add_argument("--sample", type=int, metavar="N", help="rebuild N jobs drawn at random")
    rebuild.add_argument("--seed", type=int, help="seed of the draw; printed if not given")
    rebuild.add_argument(
        "--clean",
        action="store_true",
        help="run all jobs from the raw data on, in a new environment with the committed lock of "
        "packages; needs the package index",
    )
    rebuild.add_argument("--python", help="interpreter of the new environment")
    rebuild.add_argument(
        "--requirements", type=Path, help="lock of the new environment; requirements/cpu-gpu.txt"
    )
    rebuild.add_argument("--profile", default="local", help="Snakemake profile")
    rebuild.add_argument(
        "--configfile", type=Path, nargs="+", default=[], help="run files, if not the profile's"
    )
    rebuild.add_argument(
        "--config",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="settings that the run overrode on its command line",
    )


def _trace(arguments: argparse.Namespace) -> int:
    store = open_store(Path(), arguments.rev)
    graph = load_graph(store)
    if arguments.text is not None:
        return _trace_text(graph, store, arguments)
    if arguments.artifact is None:
        raise SettingsError("trace follows an artifact, a URL or, with --text, a text: name one")
    if not arguments.pages and "://" not in arguments.artifact:
        return _trace_artifact(graph, store, arguments)
    # Imports PyArrow, which takes longer than the trace of an artifact.
    from t5repro.audit.page_trace import pages_of_shard, trace_url

    if arguments.pages:
        shard = pages_of_shard(graph, store, arguments.artifact)
        print_answer(shard, arguments)
        return OK if shard.is_complete else FINDINGS
    print_answer(trace_url(graph, store, arguments.artifact, with_steps=arguments.steps), arguments)
    return OK


def _trace_text(graph: Graph, store: Folder | Revision, arguments: argparse.Namespace) -> int:
    from t5repro.audit.text_trace import trace_text

    refused = [name for name in ("pages", "svg", "html") if getattr(arguments, name)]
    if refused:
        raise SettingsError(f"trace --text writes no --{refused[0]}: leave it out, or take --json")
    print_answer(trace_text(graph, store, arguments.text, arguments.artifact), arguments)
    return OK


def _pages(arguments: argparse.Namespace) -> int:
    from t5repro.audit.score_pages import score_pages
    from t5repro.files import write_text

    store = open_store(Path(), None)
    pages = score_pages(load_graph(store), store, arguments.artifact)
    if arguments.csv:
        write_text(arguments.csv, pages.to_csv())
    print_answer(pages, arguments)
    return OK if pages.is_complete else FINDINGS


def _contamination(arguments: argparse.Namespace) -> int:
    from t5repro.audit.contamination import contamination
    from t5repro.files import write_text

    store = open_store(Path(), None)
    report = contamination(
        load_graph(store),
        store,
        arguments.artifact,
        methods=arguments.method,
        words=arguments.words,
    )
    if arguments.csv:
        write_text(arguments.csv, report.to_csv())
    print_answer(report, arguments)
    return OK


def _trace_artifact(graph: Graph, store: Folder | Revision, arguments: argparse.Namespace) -> int:
    from t5repro.files import write_text
    from t5repro.lineage.evidence import evidence_of
    from t5repro.lineage.trace import to_json, to_text, trace
    from t5repro.report.render_lineage import to_html, to_svg

    answer = trace(graph, store, arguments.artifact)
    if arguments.svg:
        write_text(arguments.svg, to_svg(answer, graph))
    if arguments.html:
        start = answer.jobs[-1].name if answer.jobs else ""
        title = f"Lineage of {arguments.artifact}"
        write_text(arguments.html, to_html(Graph(answer.jobs), title, start=start))
    evidence = evidence_of(store, answer.jobs)
    if arguments.json:
        values = {name: job.to_json() for name, job in evidence.items()}
        print_json({**to_json(answer), "evidence": values})
    else:
        lines = {name: job.lines() for name, job in evidence.items()}
        print_text(to_text(answer, graph, lines))
    refuted = any(job.refuted for job in evidence.values())
    return FINDINGS if answer.broken or refuted else OK


def _impact(arguments: argparse.Namespace) -> int:
    from t5repro.audit.impact import source_impact

    print_answer(
        source_impact(Path(), arguments.raw, all_revisions=arguments.all_revisions), arguments
    )
    return OK


def _withdraw(arguments: argparse.Namespace) -> int:
    from t5repro.audit.withdraw import withdraw
    from t5repro.audit.withdraw_list import withdraw_list

    if (arguments.raw is None) == (arguments.list is None):
        raise SettingsError("withdraw takes a raw file, URL or domain, or --list FILE: name one")
    common = {
        name: getattr(arguments, name)
        for name in ("reason", "dry_run", "delete_cache", "delete_remote")
    }
    of_list = {
        name: value
        for name in ("host", "max_share")
        if (value := getattr(arguments, name)) not in ("", None)
    }
    if arguments.list:
        print_answer(withdraw_list(Path(), arguments.list, **common, **of_list), arguments)
    elif of_list:
        raise SettingsError(f"--{next(iter(of_list)).replace('_', '-')} belongs to --list; add it")
    else:
        print_answer(withdraw(Path(), arguments.raw, **common), arguments)
    return OK


def _diff(arguments: argparse.Namespace) -> int:
    from t5repro.lineage.diff import compare, load_side

    difference = compare(load_side(Path(), arguments.a), load_side(Path(), arguments.b))
    print_answer(difference, arguments)
    return FINDINGS if difference.divergences else OK


def _rebuild(arguments: argparse.Namespace) -> int:
    from t5repro.versions.clean_environment import CleanEnvironment
    from t5repro.versions.rebuild import Invocation, rebuild

    options = {
        name: value
        for name in ("python", "requirements")
        if (value := getattr(arguments, name)) is not None
    }
    if options and not arguments.clean:
        raise SettingsError(f"--{next(iter(options))} belongs to --clean; add it")
    verdict = rebuild(
        Path(),
        arguments.stage,
        sample=arguments.sample,
        seed=arguments.seed,
        run=Invocation(arguments.profile, tuple(arguments.configfile), tuple(arguments.config)),
        clean=CleanEnvironment(**options) if arguments.clean else None,
    )
    print_answer(verdict, arguments)
    return OK if verdict.holds else FINDINGS
