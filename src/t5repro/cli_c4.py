"""The command line of C4: which files a job reads, and what runs it. A part of `cli.py`."""

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
    from t5repro.data.download import ADDRESSES
    from t5repro.data.raw import read_path_list

    if arguments.paths is None:
        return arguments.wet, {}, []
    listed, refused = read_path_list(
        arguments.paths, shard=arguments.shard, shards=settings.c4.clean_shards
    )
    prefix = settings.c4.crawl_prefix
    if not prefix.startswith(ADDRESSES):
        return [Path(prefix) / name for name in listed], {}, refused
    addresses = {Path(name): prefix + name for name in listed}
    return list(addresses), addresses, refused


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
    from t5repro.config.stages import Engine, engine_settings

    text: str = arguments.engine or arguments.settings
    if text.endswith((".yaml", ".yml")):
        engine = Engine.model_validate(engine_settings(load_run_file(Path(text))))
    else:
        engine = parse_engine(arguments.engine or "{}")
    if engine.engine == "local":
        yield None, 0
        return
    from t5repro.c4.spark_session import session

    with session(engine.spark, arguments.command) as spark:
        yield spark, engine.spark.partitions
