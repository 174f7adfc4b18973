"""Commands with a new name: the old one is refused, and the message has the new one."""

from collections.abc import Sequence

from t5repro.stages import STAGES

# Names of rules that commands have as well; only the job of a rule has the option.
COMMANDS = ("tasks", "contamination")
RENAMED = {
    "new-task": "tasks new",
    "submit": "tasks submit",
    "list_tasks": "tasks list",
    "list_sources": "tasks sources",
    "list_mixtures": "config presets",
    "list_rows": "paper rows",
    "fetch_plan": "crawl plan",
    "overlap": "contamination",
    "rehydrate": "dvc rehydrate",
    "frozen": "dvc raw",
    "import_weights": "weights import",
    "export_weights": "weights export",
    "export_server": "weights saved-model",
    "publish": "weights publish",
    **{
        old: f"stage {old}"
        for stage in STAGES
        for old in [f"{stage.name} --settings" if stage.name in COMMANDS else stage.name]
    },
}


def refusal(words: Sequence[str]) -> str | None:
    """Return the message about an old name at the start of a command line; None without one."""
    for old, new in RENAMED.items():
        if list(words[: len(old.split())]) == old.split():
            return f"t5repro {old} is now t5repro {new}"
    return None
