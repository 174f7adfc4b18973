"""The command line of C4: which files a job reads, and what runs it."""

import argparse
import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


def listed_files(
    arguments: argparse.Namespace, settings: Any
) -> tuple[list[Path], dict[Path, str], list[str]]:
    """Return the WET files of the job, where to fetch those listed by address, paths to refuse."""
    from t5repro.data.raw import read_path_list

    if arguments.paths is None:
        return arguments.wet, {}, []
    listed, refused = read_path_list(
        arguments.paths, shard=arguments.shard, shards=settings.c4.clean_shards
    )
    return *_placed(listed, settings.c4.crawl_prefix), refused


def sampled_files(
    arguments: argparse.Namespace, settings: Any
) -> tuple[list[Path], dict[Path, str]]:
    """Return the WET files that Punkt is trained on, and where to fetch those by address."""
    from t5repro.data.raw import evenly_spaced, read_path_list

    if arguments.paths is None:
        return arguments.wet, {}
    listed, _ = read_path_list(arguments.paths, shard=0, shards=1)
    sample = evenly_spaced(listed, settings.c4.punkt_sample_files)
    return _placed(sample, settings.c4.crawl_prefix)


def _placed(listed: Sequence[str], prefix: str) -> tuple[list[Path], dict[Path, str]]:
    from t5repro.data.download import ADDRESSES

    if not prefix.startswith(ADDRESSES):
        return [Path(prefix) / name for name in listed], {}
    addresses = {Path(name): prefix + name for name in listed}
    return list(addresses), addresses


@contextlib.contextmanager
def fetched(
    wet: Sequence[Path], addresses: Mapping[Path, str], output: Path
) -> Iterator[tuple[list[Path], dict[Path, str]]]:
    """Yield WET files that are here, and the listed names of those fetched for the time."""
    from t5repro.data.download import fetch_address

    if not addresses:
        yield list(wet), {}
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=output.parent) as folder:
        names = {Path(folder) / path: path.as_posix() for path in wet}
        for local, path in zip(names, wet, strict=True):
            fetch_address(addresses[path], local)
        yield list(names), names


@contextlib.contextmanager
def on_spark(arguments: argparse.Namespace) -> Iterator[tuple[Any, int]]:
    """Yield a Spark session and its number of partitions, or nothing if this machine is to work."""
    from t5repro.config.load import load_run_file, parse_engine
    from t5repro.config.sections.c4 import Engine
    from t5repro.config.stage_settings import engine_settings

    text: str = arguments.engine or arguments.settings
    if text.endswith((".yaml", ".yml")):
        engine = Engine.model_validate(engine_settings(load_run_file(Path(text))))
    else:
        engine = parse_engine(arguments.engine or "{}")
    if engine.engine == "local":
        yield None, 0
        return
    from t5repro.c4.spark.session import session

    with session(engine.spark, arguments.command) as spark:
        yield spark, engine.spark.partitions


def train_on_crawl(arguments: argparse.Namespace, settings: Any) -> None:
    """Train Punkt on some of the WET files."""
    from t5repro.c4.punkt import train_punkt

    wet, addresses = sampled_files(arguments, settings)
    with fetched(wet, addresses, arguments.manifest) as (files, names):
        train_punkt(
            settings,
            wet=files,
            folder=arguments.folder,
            manifest=arguments.manifest,
            withdrawn=arguments.withdrawn,
            names=names,
        )


def clean_crawl(arguments: argparse.Namespace, settings: Any, lists: Mapping[str, Any]) -> None:
    """Clean the WET files of one job, here or on Spark."""
    from t5repro.c4.build import clean_shard

    select = {
        name: path
        for name, path in (("domains", arguments.domains), ("urls", arguments.urls))
        if path is not None
    }
    wet, addresses, refused = listed_files(arguments, settings)
    with on_spark(arguments) as (spark, _):
        if spark is not None:
            from t5repro.c4.spark import steps as cluster
            from t5repro.data.download import fetch_address

            cluster.clean_shard(
                spark,
                settings,
                wet=wet,
                addresses=addresses,
                fetch=fetch_address,
                refused=refused,
                select=select,
                output=arguments.output,
                manifest=arguments.manifest,
                withdrawn=arguments.withdrawn,
                **lists,
            )
            return
    with fetched(wet, addresses, arguments.output) as (files, names):
        clean_shard(
            settings,
            wet=files,
            names=names,
            refused=refused,
            select=select,
            output=arguments.output,
            manifest=arguments.manifest,
            withdrawn=arguments.withdrawn,
            **lists,
        )
