"""The command `verify`: files against manifests, records and lock; packages; studies; receipts."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from t5repro.cli.answers import FINDINGS, OK, add_question, print_answer
from t5repro.cli.parsers import Commands
from t5repro.errors import LineageError, SettingsError
from t5repro.files import TEMPORARY_PREFIX
from t5repro.lineage.findings import Finding
from t5repro.lineage.graph import Graph
from t5repro.lineage.store import WORK, Revision, open_store


def add_verify(commands: Commands) -> None:
    """Add the command."""
    verify = add_question(
        commands, "verify", _verify, "check every file against its manifests, records and lock"
    )
    verify.add_argument("rev", nargs="?", help="git revision: check its objects in DVC's cache")
    verify.add_argument("--run", default="", help="report nothing of other runs than this one")
    verify.add_argument("--deep", action="store_true", help="read every byte again")
    verify.add_argument(
        "--environment",
        action="store_true",
        help="check the installed packages instead: every file, versions, start files, byte code",
    )
    verify.add_argument(
        "--study", type=Path, metavar="FOLDER", help="check the archive of a committed study"
    )
    verify.add_argument(
        "--unpack", type=Path, metavar="FOLDER", help="with --study: new folder for its files"
    )
    verify.add_argument(
        "--receipt", type=Path, metavar="FILE", help="check a receipt of removals instead"
    )
    verify.add_argument("--item", default="", help="with --receipt: URL, domain or file asked for")
    verify.add_argument("--salt", default="", help="with --item: the salt its requester has")


def _verify(arguments: argparse.Namespace) -> int:
    from t5repro.lineage.verify import verify_tree
    from t5repro.lineage.verify_revision import verify_revision

    if arguments.environment:
        return _verify_environment(arguments)
    if arguments.study or arguments.unpack:
        return _verify_study(arguments)
    if arguments.receipt or arguments.item or arguments.salt:
        return _verify_receipt(arguments)
    if arguments.run and arguments.rev:
        raise LineageError("--run asks about this checkout; leave it or the revision out")
    store = open_store(Path(), arguments.rev)
    if isinstance(store, Revision):
        verdict = verify_revision(store, deep=arguments.deep)
    else:
        verdict = verify_tree(
            store.root, deep=arguments.deep, run=arguments.run, check_contents=_check_reports
        )
    print_answer(verdict, arguments)
    return FINDINGS if verdict.findings else OK


def _check_reports(root: Path, graph: Graph) -> Iterator[Finding]:
    if any(job.rule == "report" for job in graph.jobs.values()):
        from t5repro.report.check import check_reports  # imports all settings and the report

        yield from check_reports(root, graph)


def _verify_receipt(arguments: argparse.Namespace) -> int:
    from t5repro.audit.receipt_check import check_receipt

    if arguments.receipt is None or arguments.rev:
        raise SettingsError(
            "verify --receipt FILE checks this checkout: --item and --salt belong to it, a "
            "revision does not"
        )
    check = check_receipt(Path(), arguments.receipt, item=arguments.item, salt=arguments.salt)
    print_answer(check, arguments)
    return FINDINGS if check.findings else OK


def _verify_study(arguments: argparse.Namespace) -> int:
    from t5repro.lineage.verify_study import verify_study

    if not arguments.study or arguments.rev:
        raise SettingsError(
            "verify checks either a revision or a study, and --unpack FOLDER is for a study: "
            "t5repro verify --study STUDY --unpack FOLDER"
        )
    if arguments.unpack:
        verdict = verify_study(arguments.study, arguments.unpack)
    else:
        Path(WORK).mkdir(exist_ok=True)  # inside the checkout git knows the commits of the records
        with TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=WORK) as folder:
            verdict = verify_study(arguments.study, Path(folder))
    print_answer(verdict, arguments)
    return FINDINGS if verdict.findings else OK


def _verify_environment(arguments: argparse.Namespace) -> int:
    from t5repro.lineage.verify_environment import verify_environment

    if arguments.rev:
        raise SettingsError(
            f"verify --environment checks this machine and no revision ({arguments.rev}); leave "
            "one of them out"
        )
    verdict = verify_environment(Path())
    print_answer(verdict, arguments)
    return FINDINGS if verdict.findings else OK
