"""Generated files: complete baseline, editor schema, pages of settings and presets, decisions.

`make generate` writes them and `make check` compares them.
"""

import json
from pathlib import Path
from typing import Any

import yaml
from pydantic import WithJsonSchema

from t5repro.config.baseline import baseline_changes
from t5repro.config.decisions import TABLE, decision_files
from t5repro.config.descriptions import describe_sections
from t5repro.config.load import load_settings
from t5repro.config.origins import INCLUDE
from t5repro.config.presets.page import presets_page
from t5repro.config.presets.table import names
from t5repro.config.run_file import ExperimentForEach, IncludedSources
from t5repro.config.schema import Settings
from t5repro.config.setting_names import describe, leaves
from t5repro.errors import SettingsError

CURE = "run `make generate` and commit the result"


def generated_files() -> dict[Path, str]:
    """Return every generated file and its content."""
    return {
        Path("configs/base.yaml"): _base(),
        Path("configs/schema.json"): json.dumps(_editor_schema(), indent=2) + "\n",
        Path("docs/settings.md"): _page(),
        Path("docs/presets.md"): presets_page(),
        **decision_files(),
    }


def require_checkout() -> None:
    """Refuse to generate files outside of a checkout of the repository.

    Raises:
        SettingsError: the working folder has no decisions, from which a part is generated.
    """
    if not TABLE.is_file():
        raise SettingsError(
            f"{Path.cwd()} has no {TABLE}, so it is no checkout of the repository, to which the "
            "generated files belong; `t5repro dvc generate` writes the dvc.yaml of a project"
        )


def drifted() -> list[str]:
    """Return one message for each generated file that differs from its sources."""
    return [
        f"{path} is out of sync with src/t5repro/config or docs/decisions; {CURE}"
        for path, text in generated_files().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]


def _base() -> str:
    settings = load_settings(baseline_changes())
    head = (
        "# The paper's baseline, complete: every setting with its value.\n"
        "# Generated from src/t5repro/config; a run file contains only settings that it changes.\n"
        "# It downloads CC-MAIN-2019-18 and the task archives from their owners (data.download).\n"
    )
    body = yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    return head + body


def _editor_schema() -> dict[str, Any]:
    """Return the JSON schema of a run file, with the short forms of lists."""
    describe_sections()
    schema = Settings.model_json_schema()
    schema["properties"]["use"]["items"] = {"enum": names(), "type": "string"}
    schema["properties"][INCLUDE] = {
        "description": "Run files that this one changes, such as `configs/base.yaml`.",
        "items": {"type": "string"},
        "type": "array",
    }
    sources = schema["$defs"]["DataSettings"]["properties"]["sources"]
    experiments = schema["properties"]["experiments"]
    for entries, short_form in ((sources, IncludedSources), (experiments, ExperimentForEach)):
        schema["$defs"][short_form.__name__] = short_form.model_json_schema()
        reference = {"$ref": f"#/$defs/{short_form.__name__}"}
        entries["items"] = {"anyOf": [entries["items"], reference]}
    return schema


def _page() -> str:
    lines = [
        "# Settings",
        "",
        "Generated from `src/t5repro/config/sections`. Values are those of the paper's baseline; a",
        "run file in `configs/` contains only settings that it changes, nested or dotted. It may",
        "`include` other run files and change their settings.",
    ]
    section = None
    for name, field in leaves():
        folder = name.rpartition(".")[0]
        if folder != section:
            section = folder
            title = f"`{folder}`" if folder else "The run"
            lines += ["", f"## {title}", "", "| setting | value | allowed | meaning |"]
            lines.append("|---|---|---|---|")
        meaning = describe(name).replace("|", "\\|")
        lines.append(f"| `{name}` | {_value(field)} | {_allowed(field)} | {meaning} |")
    return "\n".join(lines) + "\n"


def _value(field: Any) -> str:
    value = field.get_default(call_default_factory=True)
    if isinstance(value, list) and value and hasattr(value[0], "model_dump"):
        value = [entry.name for entry in value]
    return f"`{json.dumps(value)}`"


def _allowed(field: Any) -> str:
    bounds = {"Ge": "≥", "Gt": ">", "Le": "≤", "Lt": "<"}
    limits = [
        f"{bounds[kind]} {getattr(constraint, kind.lower()):g}"
        for constraint in field.metadata
        if (kind := type(constraint).__name__) in bounds
    ]
    if limits:
        return ", ".join(limits)
    # Names of a table (`model.architecture`), or of a Literal.
    tables = [part.json_schema for part in field.metadata if isinstance(part, WithJsonSchema)]
    choices = (
        tables[0].get("enum")
        if tables and tables[0]
        else getattr(field.annotation, "__args__", None)
    )
    if choices and all(isinstance(choice, str) for choice in choices):
        return ", ".join(f"`{choice}`" for choice in choices)
    name = getattr(field.annotation, "__name__", "")
    return {"bool": "`true`, `false`", "str": "text", "list": "list", "dict": "mapping"}.get(
        name, ""
    )
