"""Folders of this checkout and of the real data next to it."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SHARED_DATA = ROOT.parent / "shared" / "data"
CASES = ROOT / "tests" / "cases"
SUPPORT = ROOT / "tests" / "support"
