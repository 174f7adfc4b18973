"""Roles of the fields of a job: files that are read, files that are written, and who names them."""

import inspect
import re
from collections.abc import Hashable, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, cast, get_args, get_origin

Kind = Literal["output", "folder", "work", "logs", "resource", "wildcard", "option"]


@dataclass(frozen=True)
class Read:
    """A field with files that a job reads.

    Attributes:
        origin: ``stage``, files of an earlier stage; ``raw``, files that the rule `data` checked;
            ``either`` of both; all are verified before the job starts. ``unverified`` files have
            no manifest.
        listed: patterns of further files that the job reads, as the manifest lists them.
        keys: what names a file in a mapping: its folder, its own name, or KEY=FILE.
    """

    origin: Literal["stage", "raw", "either", "unverified"] = "stage"
    listed: tuple[str, ...] = ()
    keys: Literal["folder", "stem", "word"] = "word"


@dataclass(frozen=True)
class Place:
    """A field with a file or folder that a job writes, or a value that is not a file it reads.

    Attributes:
        kind: ``output`` is a file that the rule declares, ``folder`` the folder of the manifest,
            ``work`` and ``logs`` a folder below these for the job, ``resource`` a resource of
            Snakemake, which reruns nothing, ``wildcard`` a part of the names of outputs, ``option``
            a value of the plan.
    """

    kind: Kind


STAGE, RAW, UNVERIFIED = Read(), Read("raw"), Read("unverified")
BY_FOLDER = Read(keys="folder")
OUTPUT, FOLDER, WORK, LOGS = Place("output"), Place("folder"), Place("work"), Place("logs")
RESOURCE, WILDCARD, OPTION = Place("resource"), Place("wildcard"), Place("option")


Manifest = Annotated[Path, OUTPUT]
Folder = Annotated[Path, FOLDER]
Work = Annotated[Path, WORK]
Vocabulary = Annotated[Path, STAGE]
KeptSteps = Annotated[Sequence[int], OPTION]
DataManifest = Annotated[Path | None, UNVERIFIED]
IDS = ("*.ids", "*.offsets")


@dataclass(frozen=True)
class JobField:
    """A field of a job.

    Attributes:
        name: its name.
        type: its type, without the role and without None.
        role: how its value reaches the job.
        required: whether it has no default.
        meaning: its line of the docstring.
    """

    name: str
    type: Any
    role: Read | Place
    required: bool
    meaning: str

    @property
    def option(self) -> str:
        """The option of the command."""
        return "--" + self.name.replace("_", "-")


def fields_of(job: type[Any]) -> tuple[JobField, ...]:
    """Return the fields of a job except its settings, in their order."""
    return _fields_of(cast(Hashable, job))


@cache
def _fields_of(job: Any) -> tuple[JobField, ...]:
    meanings: dict[str, str] = {}
    for base in reversed(job.__mro__[:-1]):
        meanings |= _attributes(inspect.getdoc(base) or "")
    return tuple(
        JobField(
            field.name,
            *_type_and_role(field.type),
            required=field.default is MISSING and field.default_factory is MISSING,
            meaning=meanings[field.name],
        )
        for field in fields(job)
        if field.name != "settings"
    )


def _type_and_role(annotation: Any) -> tuple[Any, Read | Place]:
    if get_origin(annotation) is not Annotated:
        raise TypeError(f"{annotation} has no role: Annotated[..., Read() or Place(...)]")
    value, role = get_args(annotation)
    if isinstance(value, UnionType):
        (value,) = (part for part in get_args(value) if part is not NoneType)
    return value, role


def _attributes(text: str) -> dict[str, str]:
    """Return attribute -> its description, from the docstring of a class."""
    _, _, listing = text.partition("Attributes:\n")
    entries = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", listing, re.MULTILINE)
    return {name: " ".join(meaning.split()).removesuffix(".") for name, meaning in entries}
