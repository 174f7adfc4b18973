"""The options of a stage's command, one for each field of its job, and the job that they make."""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

from t5repro.cli.arguments import parsed_engine, parsed_settings
from t5repro.config.sections.c4 import Engine
from t5repro.errors import SettingsError
from t5repro.jobs.fields import JobField, Read, fields_of
from t5repro.jobs.table import JOBS
from t5repro.lineage.input_hashes import Expected, expected_files, expected_raw_files, manifest_of

NAMED_FILE = "NAME=FILE"


def add_options(parser: argparse.ArgumentParser, stage: str) -> None:
    """Add the option of every field; a field with a default has an option that may be left out."""
    for field in fields_of(JOBS[stage]):
        presence: dict[str, Any] = (
            {"required": True} if field.required else {"default": argparse.SUPPRESS}
        )
        parser.add_argument(field.option, help=field.meaning, **presence, **_words(field))


def job_of(stage: str, arguments: argparse.Namespace) -> Any:
    """Return the job that a command line describes.

    Raises:
        SettingsError: the settings are of another stage, or a word is not NAME=FILE.
    """
    values = {
        field.name: _converter(field)(getattr(arguments, field.name))
        for field in fields_of(JOBS[stage])
        # Options that were left out are absent, so the job has the default of its field.
        if hasattr(arguments, field.name)
    }
    if any(field.type is Engine for field in fields_of(JOBS[stage])):
        values["engine"] = parsed_engine(arguments)
    return JOBS[stage](parsed_settings(arguments, stage), **values)


def expected_inputs(job: Any) -> list[Expected]:
    """Return the files that a job reads, with the hashes that their manifests state.

    Raises:
        ArtifactError: a manifest is missing or was altered.
    """
    data = getattr(job, "data", None)
    return [
        expected
        for field in fields_of(type(job))
        if isinstance(field.role, Read)
        for expected in _expected(field.role, getattr(job, field.name), data)
    ]


def named_files(job: Any) -> Iterator[Path]:
    """Yield every file and folder of a job."""
    for field in sorted(fields_of(type(job)), key=lambda field: field.name):
        yield from _files(getattr(job, field.name))


def _expected(role: Read, value: Any, data: Path | None) -> Iterator[Expected]:
    # Some inputs are checked elsewhere, or git tracks them: their role says so.
    for file in _files(value) if role.origin != "unverified" else ():
        if role.origin == "stage" or (role.origin == "either" and manifest_of(file).is_file()):
            yield from expected_files(file, role.listed)
        elif data is not None:
            yield from expected_raw_files([file], data)


def _files(value: Any) -> Iterator[Path]:
    """Yield the paths in the value of a field: a path, a list or a mapping of paths."""
    if isinstance(value, Path):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for entry in value.values() if isinstance(value, Mapping) else value:
            yield from _files(entry)


def _words(field: JobField) -> dict[str, Any]:
    """Return the keywords of `argparse.ArgumentParser.add_argument` for the type of a field."""
    kind, items = get_origin(field.type) or field.type, get_args(field.type)
    many = "+" if field.required else "*"
    if kind is bool:
        return {"action": "store_true"}
    if kind is Path:  # an optional input of a rule may be no file, so the option has no word
        return {"type": Path} if field.required else {"type": Path, "nargs": "?"}
    if kind is int:
        return {"type": int}
    if kind is Mapping and _keys(field) == "word":
        return {"nargs": many, "metavar": NAMED_FILE}
    if kind is Mapping or items[:1] == (Path,):
        return {"nargs": many, "metavar": "FILE", "type": Path}
    if items[:1] == (int,):
        return {"nargs": many, "metavar": "NUMBER", "type": int}
    return {}


def _converter(field: JobField) -> Callable[[Any], Any]:
    """Return what makes the value of a field of the parsed words of its option."""
    kind, items = get_origin(field.type) or field.type, get_args(field.type)
    if kind is Mapping:
        return {
            "folder": lambda files: {file.parent.name: file for file in files},
            "stem": lambda files: {file.stem: file for file in files},
            "word": named_file if items[1] is Path else named_file_lists,
        }[_keys(field)]
    # Structured values, such as loggers, are one word of JSON.
    if kind is Sequence and items[0] not in (int, Path):
        return json.loads
    return lambda words: words


def _keys(field: JobField) -> str:
    return field.role.keys if isinstance(field.role, Read) else "word"


def named_file(words: Sequence[str]) -> dict[str, Path]:
    """Return ``{"en": Path("list")}`` from ``["en=list"]``.

    Raises:
        SettingsError: a word is not NAME=FILE.
    """
    return dict(map(_pair, words))


def named_file_lists(words: Sequence[str]) -> dict[str, list[Path]]:
    """Return ``{"train": [Path("a"), Path("b")]}`` from ``["train=a", "train=b"]``.

    Raises:
        SettingsError: a word is not NAME=FILE.
    """
    files: dict[str, list[Path]] = {}
    for name, file in map(_pair, words):
        # A split may have several files; their order on the command line is the order of rows.
        files.setdefault(name, []).append(file)
    return files


def _pair(word: str) -> tuple[str, Path]:
    # The first "=" separates: names have none, paths may.
    name, separator, file = word.partition("=")
    if not separator or not name or not file:
        raise SettingsError(f"argument {word!r} must be {NAMED_FILE}")
    return name, Path(file)
