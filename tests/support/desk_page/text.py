"""The text of docs/desk_study.md, and how it writes numbers."""

import re
from collections.abc import Iterable, Mapping
from functools import cache

from checkout import ROOT

from t5repro.report.order_statistics import WelchDifference
from t5repro.report.titles import task_title

NAMES = re.compile(  # with digits that are no figures
    r"\b[Tt]ables? \d+(?:(?:,| and| to|, and) \d+)*|[\d,]+(?:(?:,| and|, and) [\d,]+)* repeats"
    r"|\bT5\b|\bWMT14\b|\bMulti30k\b|\bSST-2\b|\bC4\b|\bF1\b|\bUL2\b|\bnanoT5\b|\bSHA-256\b"
    r"|\b95 %|\bseed 0\b|\b10\^15\b|`[^`]*`|\]\([^)]*\)"
)


@cache
def sections() -> Mapping[str, str]:
    """Return heading -> its text, without commands; of the summary the heading is empty."""
    text = (ROOT / "docs/desk_study.md").read_text(encoding="utf-8")
    text = re.sub(r"^```\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    summary, *others = re.split(r"^## ", text, flags=re.MULTILINE)
    return {"": summary} | dict(section.split("\n", maxsplit=1) for section in others)


@cache
def tables(heading: str) -> list[list[list[str]]]:
    """Return the tables of a section, each with its head."""
    blocks = re.findall(r"((?:^\|.*\n)+)", sections()[heading], flags=re.MULTILINE)
    return [
        [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in block.splitlines()
            if not line.startswith("|---")
        ]
        for block in blocks
    ]


def prose(heading: str) -> str:
    """Return the text of a section outside tables and pictures, as one line, and their heads.

    Of the set-up also the table, which is of words.
    """
    lines = [line for line in sections()[heading].splitlines() if line[:1] not in {"|", "!"}]
    for table in tables(heading):
        lines += [" | ".join(row) for row in (table if heading == "Set-up" else table[:1])]
    return " ".join(" ".join(lines).split())


def with_dash(title: str) -> str:
    """Return the page's form of a title in the report."""
    return title.replace(" → ", "–")


def title_of(task: str) -> str:
    return with_dash(task_title(task))


def signed(value: float, decimals: int) -> str:
    return f"{value:+.{decimals}f}".replace("-", "−")


def extremes(values: Iterable[float], decimals: int) -> str:
    found = sorted(values)
    return f"{found[0]:.{decimals}f}–{found[-1]:.{decimals}f}"


def signed_interval(gap: WelchDifference) -> str:
    return f"{signed(gap.value, 1)} ± {gap.margin:.1f}"


def interval(gap: WelchDifference, decimals: int = 1) -> str:
    """Return a difference whose sign the words beside it give."""
    assert gap.value >= 0
    return f"{gap.value:.{decimals}f} ± {gap.margin:.{decimals}f}"
