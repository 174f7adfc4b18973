"""Counts in the documents equal the counts in the tree."""

import re

from checkout import ROOT

LOCK = re.compile(r"\| `requirements/([\w-]+)\.txt` \|.*\| ([\d,]+) \| [\d.]+ GB \|")


def documented(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def packages(lock: str) -> int:
    text = (ROOT / f"requirements/{lock}.txt").read_text(encoding="utf-8")
    return len(re.findall(r"^[a-z].*==", text, re.MULTILINE))


def test_the_page_on_installation_counts_the_packages_of_each_lock() -> None:
    counts = {lock: int(count) for lock, count in LOCK.findall(documented("docs/install.md"))}
    assert counts == {lock: packages(lock) for lock in ("cpu-gpu", "runtime")}


def test_the_readme_counts_the_packages_with_and_without_developer_tools() -> None:
    text = " ".join(documented("README.md").split())
    assert f"({packages('runtime')} packages instead of {packages('cpu-gpu')})" in text
