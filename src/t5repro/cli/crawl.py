"""The command `crawl plan`: what fetching a crawl would take, before anything is fetched."""

import argparse
from pathlib import Path

from t5repro.cli.parsers import Commands, add_command, add_group
from t5repro.errors import RawDataError, SettingsError

DEFAULT_SAMPLE = 64  # files


def add_crawl(commands: Commands) -> None:
    """Add the command."""
    group = add_group(commands, "crawl", "plan: the crawl before it is fetched")
    parser = add_command(
        group, "plan", _plan, "print files, bytes, hours and disk of a crawl's fetch"
    )
    parser.add_argument(
        "run_file",
        type=Path,
        nargs="?",
        default=Path("configs/base.yaml"),
        help="run file with c4.crawl_paths and c4.crawl_prefix; default: configs/base.yaml",
    )
    parser.add_argument("--paths", type=Path, help="list of WET paths; default: c4.crawl_paths")
    parser.add_argument("--prefix", help="address before each path; default: c4.crawl_prefix")
    parser.add_argument(
        "--rate", default="100MB/s", help="of all connections together; default: 100MB/s"
    )
    parser.add_argument(
        "--sample",
        type=int,
        default=DEFAULT_SAMPLE,
        metavar="FILES",
        help=f"files whose size the server is asked for; default: {DEFAULT_SAMPLE}, 0: none",
    )


def _plan(arguments: argparse.Namespace) -> None:
    from t5repro.config.load import load_run_file
    from t5repro.config.project_files import project_file
    from t5repro.config.sections.c4 import languages_to_train
    from t5repro.data.fetch_plan import parse_rate, plan_fetch, plan_lines

    if arguments.sample < 0:
        raise SettingsError(f"--sample {arguments.sample} must be 0 or a number of files")
    settings = load_run_file(project_file(arguments.run_file))
    c4, rate = settings.c4, parse_rate(arguments.rate)
    path_list = arguments.paths
    if path_list is None:
        if not c4.crawl_paths:
            raise SettingsError(
                f"{arguments.run_file}: c4.crawl_paths is empty, so no WET file is fetched; pass "
                "--paths with a list of WET paths"
            )
        path_list = Path(settings.data.folder) / c4.crawl_paths
        if not path_list.is_file():
            origins = [s.origin for s in settings.data.sources if c4.crawl_paths in s.files]
            raise RawDataError(
                f"{path_list}, the list of WET paths, is missing; get it from "
                f"{origins[0] if origins else 'its owner'} and put it there, or pass it to --paths"
            )
    plan = plan_fetch(
        path_list,
        c4.crawl_prefix if arguments.prefix is None else arguments.prefix,
        sample=arguments.sample,
        with_wat=c4.signals.source == "wat",
    )
    lines = plan_lines(
        plan,
        rate=rate,
        shards=c4.clean_shards,
        parts=c4.clean_parts,
        punkt=c4.punkt_sample_files if languages_to_train(c4) else 0,
    )
    print("\n".join(lines))
