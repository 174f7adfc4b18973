"""Plans look up who writes a file by its name, with the answers of Snakemake's own search."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from snakemake.io import IOFile
from snakemake.iocontainers import InputFiles
from snakemake.output_index import OutputIndex

from t5repro.versions.output_index import QuickOutputIndex, contains

PART = st.sampled_from(["a", "ab", "b", "1", "{x}", "{y}", "/", ".txt", "{n,[0-9]+}"])
NAME = st.lists(st.sampled_from(["a", "ab", "b", "1", "22", "/", ".txt"]), min_size=1, max_size=5)


@dataclass(eq=False)
class Rule:
    """What an index asks of a rule."""

    patterns: list[str]
    files: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.files = [IOFile(pattern, rule=None) for pattern in self.patterns]

    def products(self) -> list[Any]:
        return self.files

    def is_producer(self, name: str) -> bool:
        return any(file.match(name) for file in self.files)


def pattern(parts: list[str]) -> str:
    """Join parts; a wildcard is named once in a pattern, and no two stand side by side."""
    kept: list[str] = []
    for part in parts:
        follows = kept and kept[-1].startswith("{") and part.startswith("{")
        if not follows and not (part.startswith("{") and part in kept):
            kept.append(part)
    return "".join(kept)


PATTERNS = st.lists(PART, min_size=1, max_size=5).map(pattern)


@given(
    st.lists(st.lists(PATTERNS, min_size=1, max_size=4), min_size=1, max_size=4),
    st.lists(NAME.map("".join), min_size=1, max_size=8),
)
def test_rules_that_write_a_file_are_those_that_snakemake_finds(
    outputs: list[list[str]], names: list[str]
) -> None:
    rules: list[Any] = [Rule(patterns) for patterns in outputs]
    quick, own = QuickOutputIndex(rules), OutputIndex(rules)
    for name in [*names, *names]:  # the second answer is a remembered one
        assert quick.match_producers(name) == own.match_producers(name)


def test_an_input_is_found_also_after_the_inputs_of_a_job_have_grown() -> None:
    files = InputFiles([IOFile(name, rule=None) for name in ("a", "b")])
    assert [contains(files, IOFile(name, rule=None)) for name in ("a", "b", "c")] == [1, 1, 0]
    assert contains(files, "b")
    files.append(IOFile("c", rule=None))
    assert contains(files, IOFile("c", rule=None))
