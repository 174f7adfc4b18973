"""The command line of auditors: trace, verify, impact, withdraw, diff, rebuild.

Exit codes: 0 it is as it should be, 1 something was found, 2 the question cannot be answered.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

Handler = Callable[[argparse.Namespace], int]


def add_audit(commands: Any) -> None:
    """Add the subcommands that answer an auditor."""
    trace = _question(commands, "trace", _trace, "follow an artifact back to the raw files")
    trace.add_argument("artifact", help="file, scores.json#task, start of a SHA-256, or a URL")
    trace.add_argument("--rev", help="git revision, or folder with results, to look in")
    trace.add_argument(
        "--pages", action="store_true", help="crawl record of every row of a corpus file"
    )
    trace.add_argument(
        "--steps", action="store_true", help="steps of pre-training that saw a URL's page"
    )
    trace.add_argument("--svg", type=Path, help="picture to write")
    trace.add_argument("--html", type=Path, help="page to write, to click through")
    verify = _question(commands, "verify", _verify, "hold every file against what vouches for it")
    verify.add_argument("rev", nargs="?", help="git revision whose artifacts to check in the cache")
    verify.add_argument("--deep", action="store_true", help="read every byte again")
    impact = _question(commands, "impact", _impact, "list what a raw source touches")
    impact.add_argument("raw", help="raw file, URL or domain")
    impact.add_argument("--all-revisions", action="store_true", help="of the git history too")
    withdraw = _question(commands, "withdraw", _withdraw, "take a raw source out of everything")
    withdraw.add_argument("raw", help="raw file, URL or domain")
    withdraw.add_argument("--reason", required=True, metavar="TEXT", help="why; committed")
    withdraw.add_argument("--dry-run", action="store_true", help="only say what would go")
    withdraw.add_argument(
        "--delete-cache", action="store_true", help="delete its objects from DVC's local cache"
    )
    diff = _question(commands, "diff", _diff, "say where two runs part, and why")
    diff.add_argument("a", help="git revision, or folder with results")
    diff.add_argument("b", help="the other; . is the working tree")
    rebuild = _question(commands, "rebuild", _rebuild, "build again in a clean clone and compare")
    rebuild.add_argument("stage", nargs="?", help="rule, or rule/node, or run/rule/node")
    rebuild.add_argument("--sample", type=int, metavar="N", help="N jobs drawn at random")
    rebuild.add_argument("--seed", type=int, help="of the draw; printed, so it can be repeated")
    rebuild.add_argument("--profile", default="local", help="of Snakemake")
    rebuild.add_argument("--configfile", type=Path, help="run file, if not the profile's")
    rebuild.add_argument(
        "--config",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="overrides the run was made with",
    )


def _question(commands: Any, name: str, handler: Handler, meaning: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=meaning, description=meaning)
    parser.set_defaults(handler=handler)
    parser.add_argument("--json", action="store_true", help="answer as JSON")
    return parser


def _trace(arguments: argparse.Namespace) -> int:
    from t5repro.audit.commands import trace

    return trace(
        arguments.artifact,
        revision=arguments.rev,
        pages=arguments.pages,
        steps=arguments.steps,
        svg=arguments.svg,
        html=arguments.html,
        as_json=arguments.json,
    )


def _verify(arguments: argparse.Namespace) -> int:
    from t5repro.audit.commands import verify

    return verify(arguments.rev, deep=arguments.deep, as_json=arguments.json)


def _impact(arguments: argparse.Namespace) -> int:
    from t5repro.audit.commands import impact

    return impact(arguments.raw, all_revisions=arguments.all_revisions, as_json=arguments.json)


def _withdraw(arguments: argparse.Namespace) -> int:
    from t5repro.audit.commands import withdraw

    return withdraw(
        arguments.raw,
        reason=arguments.reason,
        dry_run=arguments.dry_run,
        delete_cache=arguments.delete_cache,
        as_json=arguments.json,
    )


def _diff(arguments: argparse.Namespace) -> int:
    from t5repro.audit.commands import diff

    return diff(arguments.a, arguments.b, as_json=arguments.json)


def _rebuild(arguments: argparse.Namespace) -> int:
    from t5repro.audit.commands import rebuild

    return rebuild(
        arguments.stage,
        sample=arguments.sample,
        seed=arguments.seed,
        profile=arguments.profile,
        configfile=arguments.configfile,
        config=arguments.config,
        as_json=arguments.json,
    )
