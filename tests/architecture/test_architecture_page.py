"""The tables of `docs/ARCHITECTURE.md` agree with the tree and the stages."""

import re
from pathlib import Path

from checkout import ROOT

import t5repro
from t5repro.stages import STAGES

PACKAGE = Path(t5repro.__file__).parent
PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return re.split(r"^## ", PAGE.split(f"\n## {title}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]


def test_the_layout_names_every_folder_and_every_module_outside_a_folder() -> None:
    first_cells = re.findall(r"^\| (`.*?) \|", section("Layout"), re.MULTILINE)
    listed = {name for cell in first_cells[1:] for name in re.findall(r"`([\w/.]+)`", cell)}
    folders = {
        f"{path.parent.relative_to(PACKAGE).as_posix()}/" for path in PACKAGE.rglob("__init__.py")
    } - {"./"}
    modules = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py", "__main__.py"}
    in_a_row = {"config/sections/"}  # named in the row of its package
    assert listed == (folders | modules) - in_a_row


def test_the_table_of_rules_is_that_of_the_stages() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `([\w/]+)\.py` \|", section("Rules"), re.MULTILINE)
    assert {(rule, module.replace("/", ".")) for rule, module in rows} == {
        (stage.name, stage.module) for stage in STAGES
    }
