"""Where this checkout and the real data beside it are."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
SHARED_DATA = ROOT.parent / "shared" / "data"
CASES = ROOT / "tests" / "cases"
SUPPORT = ROOT / "tests" / "support"
