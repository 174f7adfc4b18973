"""The experiments as the page names them: an arm, or the arms that differ in their seed alone."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from t5repro.config.load import settings_of_experiment
from t5repro.config.origins import FREE_KEYS
from t5repro.config.schema import Settings
from t5repro.report.published_scores import rows_called

NO_PRETRAINING_CHANGE = {"pretrain.steps": 0}


@dataclass(frozen=True)
class Group:
    """One experiment of the page.

    Attributes:
        name: of its first arm.
        arms: arms whose settings agree but for the seed.
        seeds: their seeds.
        style: number of its colour.
        changes: dotted setting -> value it changes; of several arms without the seed.
        row: the row of the paper that it stands for.
        paper_row: that row with the tables that print it.
    """

    name: str
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    style: int = 0
    changes: Mapping[str, str] = field(default_factory=dict)
    row: str = ""
    paper_row: str = ""

    @property
    def several(self) -> bool:
        """Whether numbers are means over seeds."""
        return len(self.arms) > 1


def groups(settings: Settings, names: Sequence[str]) -> list[Group]:
    """Return the experiments of the page, in its order.

    Arms of equal settings and another seed that stand for the same row of the paper are one
    experiment, however the run file wrote them.
    """
    known = {item.name: item for item in settings.experiments}
    gathered: list[tuple[tuple[str, str], dict[int, str]]] = []
    for name in names:
        resolved = settings_of_experiment(settings, name)
        key = (resolved.model_dump_json(exclude={"seed", "experiments"}), known[name].row)
        home = next(
            (seeds for other, seeds in gathered if other == key and resolved.seed not in seeds),
            None,
        )
        if home is None:
            gathered.append((key, {resolved.seed: name}))
        else:
            home[resolved.seed] = name
    return [
        Group(
            name=next(iter(seeds.values())),
            arms=tuple(seeds.values()),
            seeds=tuple(seeds),
            style=style,
            changes={
                setting: plain(value)
                for setting, value in known[next(iter(seeds.values()))].change.items()
                if setting != "seed" or len(seeds) == 1
            },
            row=row,
            paper_row=paper_row(row),
        )
        for style, ((_, row), seeds) in enumerate(gathered)
    ]


def paper_row(name: str) -> str:
    """Return a row's name with the tables that print it; nothing for a row that none has."""
    tables = [str(row.table) for row in rows_called(name)]
    if not tables:
        return ""
    return f"“{name}” of {'table' if len(tables) == 1 else 'tables'} {', '.join(tables)}"


def plain(value: Any) -> str:
    """Return a setting's value as text."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def lede(settings: Settings, number: int, tasks: int) -> str:
    """Return the page's first sentences: how many experiments, tasks, and of what size."""
    return (
        f"{counted(number, 'experiment')} on {counted(tasks, 'task')}, "
        f"from the crawl to the scores. The model has {model_words(settings)}; "
        f"it saw {settings.pretrain.steps:,} steps of pre-training and "
        f"{settings.finetune.steps:,} of fine-tuning, as far as an experiment does not change them."
    )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def model_words(settings: Settings) -> str:
    """Return the shape of the model in words."""
    model = settings.model
    return (
        f"{model.num_encoder_layers} + {model.num_decoder_layers} layers of width {model.d_model}"
        f" and {settings.vocab.vocab_size:,} word pieces"
    )


def difference_title(settings: Settings, listed: Sequence[Group]) -> str:
    """Return what the difference of the first two experiments is called; nothing for one."""
    if len(listed) < 2:
        return ""
    names = [group.name for group in listed[:2]]
    first, second = (flat(settings_of_experiment(settings, name)) for name in names)
    changed = {key: value for key, value in second.items() if first[key] != value}
    if changed == NO_PRETRAINING_CHANGE:
        return "pre-training adds"
    return f"{names[0]} − {names[1]}"


def flat(settings: Settings) -> dict[str, Any]:
    """Return dotted setting -> value, free mappings as one value."""
    leaves: dict[str, Any] = {}

    def walk(tree: Mapping[str, Any], prefix: str) -> None:
        for key, value in tree.items():
            name = prefix + key
            if isinstance(value, dict) and key not in FREE_KEYS:
                walk(value, name + ".")
            else:
                leaves[name] = value

    walk(settings.model_dump(mode="json"), "")
    return leaves
