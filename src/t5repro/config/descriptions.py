"""Descriptions of settings: the string below each field of a section.

Error messages, the report and the generated files need them. pydantic would read them when a
section is imported (`use_attribute_docstrings`), so that every process parsed every section.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from pydantic import BaseModel

from t5repro.config.field import Section


@cache
def descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return field -> the string below it in the source, also of base classes."""
    described: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, Section) and base is not Section:
            described.update(_described_fields(base))
    return described


def _described_fields(section: type[Section]) -> Iterator[tuple[str, str]]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(section))).body
    statements = definition.body if isinstance(definition, ast.ClassDef) else []
    for field, below in pairwise(statements):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            yield field.target.id, inspect.cleandoc(below.value.value)


def describe_sections() -> None:
    """Give pydantic the descriptions of all imported sections, for the JSON schema."""
    sections = list(dict.fromkeys(_subclasses(Section)))
    for section in sections:
        for name, text in descriptions(section).items():
            section.model_fields[name].description = text
    # After all fields, because a section contains others; twice, because it can be rebuilt before
    # those that it contains (`PretrainSettings` before `Denoiser`).
    for section in [*sections, *sections]:
        section.model_rebuild(force=True)


def _subclasses(section: type[Section]) -> Iterator[type[Section]]:
    for subclass in section.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)
