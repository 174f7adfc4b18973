"""The register of decisions, from the front matter of ``docs/decisions/D-*.md``.

A decision says how this project behaves where the paper, its released code or two releases of that
code disagree. The front matter of its file is the only source of the table in
``docs/decisions/README.md`` and of ``report/decisions.json``, the report's list of choices.

To add a decision: copy a file, take the next number, run `make generate`.
"""

import json
import re
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from t5repro.config.setting_names import leaf_names
from t5repro.errors import SettingsError

FOLDER = Path("docs/decisions")
TABLE = FOLDER / "README.md"
REPORT_DATA = Path("src/t5repro/report/decisions.json")
TABLE_MARKER = "<!-- The table is generated from the files' front matter: make generate -->\n"
FILE = re.compile(
    r"---\n(?P<front_matter>.*?)\n---\n\n# (?P<number>D-\d{3}) (?P<title>.+)\n", re.DOTALL
)


class Decision(BaseModel):
    """The front matter of a decision.

    Attributes:
        topic: the question, as the table and the report call it.
        paper: behaviour of the paper's text.
        code: behaviour of the released code.
        ours: behaviour of this project.
        settings: settings that select another behaviour; the report shows their values.
        switch: how to select another behaviour, if a list of the settings does not say it.
        effect: effect on scores.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str
    paper: str
    code: str
    ours: str
    settings: tuple[str, ...]
    switch: str = ""
    effect: str

    @property
    def switch_text(self) -> str:
        """The table's cell on how to select another behaviour."""
        return self.switch or ", ".join(f"`{name}`" for name in self.settings) or "none"


def read_decisions(folder: Path = FOLDER) -> dict[Path, Decision]:
    """Return file -> decision, by number.

    Raises:
        SettingsError: a file has no front matter, a wrong number, or names an unknown setting.
    """
    decisions = {}
    for index, path in enumerate(sorted(folder.glob("D-*.md")), start=1):
        match = FILE.match(path.read_text(encoding="utf-8"))
        number = f"D-{index:03}"
        if match is None or match["number"] != number or not path.name.startswith(f"{number}-"):
            raise SettingsError(
                f"{path} must begin with front matter between lines ---, an empty line and the "
                f"title '# {number} …'; numbers are consecutive"
            )
        try:
            decision = Decision.model_validate(yaml.safe_load(match["front_matter"]))
        except (yaml.YAMLError, ValidationError) as error:
            raise SettingsError(f"{path}: front matter: {error}") from error
        if unknown := sorted(set(decision.settings) - set(leaf_names())):
            raise SettingsError(f"{path}: unknown settings {unknown}; see docs/settings.md")
        decisions[path] = decision
    return decisions


def decision_files() -> dict[Path, str]:
    """Return the generated files and their content: the table and the report's data."""
    decisions = read_decisions()
    introduction = TABLE.read_text(encoding="utf-8").partition(TABLE_MARKER)[0]
    rows = [
        "| number | topic | paper | code | ours | switch | effect on scores |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| [{_number(path)}]({path.name}) | {decision.topic} | {decision.paper} "
            f"| {decision.code} | {decision.ours} | {decision.switch_text} | {decision.effect} |"
            for path, decision in decisions.items()
        ),
    ]
    data = [
        {
            "number": _number(path),
            "topic": decision.topic,
            "settings": decision.settings,
            "ours": decision.ours,
        }
        for path, decision in decisions.items()
    ]
    return {
        TABLE: introduction + TABLE_MARKER + "\n" + "\n".join(rows) + "\n",
        REPORT_DATA: json.dumps(data, indent=1, ensure_ascii=False) + "\n",
    }


def _number(path: Path) -> str:
    return path.name[: len("D-000")]
