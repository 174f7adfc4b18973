"""Run file and overrides -> settings, with errors that name the key and the nearest right one.

Order, later wins: the baseline of `schema.py`, the C4 recipe, a published size, the run file,
overrides of the command line, and for an experiment the settings it changes. Any key may be written
dotted. `origins` says in which line of the run file an error's setting stands.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from t5repro.config.experiments import check_arms
from t5repro.config.field import Section
from t5repro.config.mixtures import resolve, without_mixture
from t5repro.config.origins import FREE_KEYS, Origins, Place, read_yaml
from t5repro.config.published_sizes import published_shape
from t5repro.config.schema import Experiment, Settings
from t5repro.config.sections.c4 import Engine
from t5repro.config.sections.tasks import OwnTask
from t5repro.config.stage_settings import stage_model, stage_settings
from t5repro.config.task_files import check_own_names
from t5repro.config.withdrawn import read_files
from t5repro.config.withdrawn_files import without_withdrawn
from t5repro.errors import SettingsError, nearest
from t5repro.stages import ancestors

RECIPES = Path("configs/c4")
VARIANTS = RECIPES / "variants"
# By all arms of a run:
SHARED = (
    "run",
    "data",
    "experiments",
    "tasks.folder",
    "tasks.files",
    "tasks.text",
    "tasks.own",
    "c4.engine",
    "c4.spark",
)


def load_run_file(path: Path, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings of a run file, with dotted `overrides` on top.

    Raises:
        SettingsError: the file cannot be read, or a setting is unknown or impossible; says in
            which line.
    """
    with Origins([path], overrides).naming():
        return load_settings(read_yaml(path), overrides)


def load_settings(
    values: Mapping[str, Any],
    overrides: Mapping[str, Any] | None = None,
    *,
    keep_withdrawn: bool = False,
) -> Settings:
    """Return validated settings from the values of a run file and dotted overrides.

    Args:
        values: what the run file changes; keys nested or dotted.
        overrides: what the command line changes.
        keep_withdrawn: leave raw files in that `withdrawn/files.yaml` takes out.

    Raises:
        SettingsError: a setting is unknown or impossible; says which, the value, what is
            allowed and the nearest name.
    """
    tree = nested(values)
    merge(tree, nested(overrides or {}))
    # Starting from all values keeps a section's own defaults when a run file states a part of it.
    merged = Settings().model_dump(mode="json")
    merge(merged, _recipe(_file_name(tree, "recipe") or "paper"))
    merge(merged, _variant(_file_name(tree, "variant")))
    merge(merged, published_shape(tree))
    merge(merged, tree)
    merge(merged, resolve(tree))
    settings = _validate(merged)
    if any(item.seeds for item in settings.experiments):
        merged["experiments"] = [
            arm.model_dump(mode="json") for item in settings.experiments for arm in arms_of(item)
        ]
        settings = _validate(merged)
    check_own_names(settings)
    if not keep_withdrawn:
        settings = without_withdrawn(settings, read_files())
    names = [experiment.name for experiment in settings.experiments]
    check_arms({name: settings_of_experiment(settings, name) for name in names})
    return settings


def arms_of(item: Experiment) -> list[Experiment]:
    """Return an experiment's arms: itself, or one for each of its seeds.

    They are arms like any other, so each has its nodes and shares what no seed reaches.
    """
    return [
        item.model_copy(
            update={
                "name": f"{item.name}_seed_{seed}" if number else item.name,
                "change": {**item.change, "seed": seed},
                "seeds": [],
            }
        )
        for number, seed in enumerate(item.seeds)
    ] or [item]


def _file_name(tree: Mapping[str, Any], key: str) -> str | None:
    section = tree.get("c4")
    return section.get(key) if isinstance(section, Mapping) else None


def _recipe(name: str) -> dict[str, Any]:
    return _parameters("recipe", name, RECIPES)


def _variant(name: str | None) -> dict[str, Any]:
    return _parameters("variant", name, VARIANTS) if name else {}


def _parameters(kind: str, name: str, folder: Path) -> dict[str, Any]:
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    if name not in known:
        raise SettingsError(
            f"c4.{kind} is {name!r}; {kind}s in {folder}/ are {known}{nearest(str(name), known)}"
        )
    return {"c4": nested(read_yaml(folder / f"{name}.yaml"))}


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` with dotted keys opened: ``{"a.b": 1}`` becomes ``{"a": {"b": 1}}``."""
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *folders, leaf = str(key).split(".")
        if free := sorted(FREE_KEYS.intersection(folders)):
            raise SettingsError(
                f"setting {key!r} is a part of {free[0]!r}, whose names are free; "
                "write the whole mapping"
            )
        content = nested(value) if isinstance(value, Mapping) and leaf not in FREE_KEYS else value
        for folder in reversed([*folders, leaf]):
            content = {folder: content}
        merge(tree, content)
    return tree


def merge(tree: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Lay `change` over `tree`, mapping by mapping; a list or a free mapping replaces."""
    for key, value in change.items():
        known = tree.get(key)
        if isinstance(value, Mapping) and isinstance(known, dict) and key not in FREE_KEYS:
            merge(known, value)
        else:
            tree[key] = dict(value) if isinstance(value, Mapping) else value


def settings_of_experiment(settings: Settings, name: str) -> Settings:
    """Return the settings of one arm: the run's, with the arm's changes.

    Raises:
        SettingsError: no such arm, or its changes are unknown or impossible.
    """
    try:
        return _changed(settings, name)
    except SettingsError as error:
        error.experiment = name
        raise


def _changed(settings: Settings, name: str) -> Settings:
    arms = {item.name: item for item in settings.experiments}
    if name not in arms:
        raise SettingsError(f"no experiment {name!r}; the run has {sorted(arms)}")
    tree = settings.model_dump(mode="json")
    change = nested(arms[name].change)
    recipe, variant = _file_name(change, "recipe"), _file_name(change, "variant")
    if recipe or (variant is not None and settings.c4.variant):
        # What another variant changed goes back to the recipe.
        merge(tree, _recipe(recipe or settings.c4.recipe))
    if recipe or variant is not None:
        merge(tree, _variant(settings.c4.variant if variant is None else variant))
    merge(tree, without_mixture(change, tree))
    merge(tree, published_shape(change))
    merge(tree, change)
    merge(tree, resolve(change))
    changed = _validate(tree, f"experiment {name!r}: ")
    for leaf in SHARED:
        if _value(changed, leaf) != _value(settings, leaf):
            raise SettingsError(
                f"experiment {name!r} changes {leaf}; arms of one run share {list(SHARED)}",
                keys=tuple(leaf.split(".")),
            )
    return changed


def _value(settings: Settings, name: str) -> Any:
    value: Any = settings
    for word in name.split("."):
        value = getattr(value, word)
    return value


def node_of(settings: Settings, rule: str, experiment: str) -> str:
    """Return the node of `rule` that `experiment` uses: the first arm with equal settings so far.

    Settings are compared over the rule and everything before it, so arms that part only later
    share the node.
    """
    wanted = _closure(settings_of_experiment(settings, experiment), rule)
    for other in settings.experiments:
        if _closure(settings_of_experiment(settings, other.name), rule) == wanted:
            return other.name
    raise AssertionError("an experiment equals itself")


def nodes(settings: Settings, rule: str) -> list[str]:
    """Return the nodes of `rule`, each once, in the order of the experiments."""
    return list(dict.fromkeys(node_of(settings, rule, arm.name) for arm in settings.experiments))


def _closure(settings: Settings, rule: str) -> str:
    rules = {rule, *ancestors(rule)}
    return json.dumps({name: stage_settings(settings, name) for name in sorted(rules)})


def parse_stage(rule: str, text: str) -> Any:
    """Return the typed settings of one stage from the JSON its job received.

    Raises:
        SettingsError: it is not JSON, or not that stage's settings.
    """
    try:
        return stage_model(rule).model_validate_json(text)
    except ValidationError as error:
        raise SettingsError(f"--settings of {rule}: {_first_fault(error)[0]}") from error


def parse_engine(text: str) -> Engine:
    """Return what is to run the steps of `c4`, from the JSON that a job received.

    Raises:
        SettingsError: it is not JSON, or not these settings.
    """
    try:
        return Engine.model_validate_json(text)
    except ValidationError as error:
        raise SettingsError(f"--engine: {_first_fault(error)[0]}") from error


def _validate(values: dict[str, Any], whose: str = "") -> Settings:
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        text, place = _first_fault(error)
        raise SettingsError(f"{whose}{text}", keys=place) from error


def _first_fault(error: ValidationError) -> tuple[str, Place]:
    """Return what is wrong first, and its place in the tree of settings."""
    faults = error.errors()
    fault = next((item for item in faults if item["type"] == "extra_forbidden"), faults[0])
    more = f" ({len(faults) - 1} more faults follow)" if len(faults) > 1 else ""
    return f"{_fault_text(fault)}{more}", fault["loc"]


def _fault_text(fault: ErrorDetails) -> str:
    where = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"unknown setting {where!r}{nearest(where, _names_near(fault['loc']))}"
    if not where:
        return fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "value_error" and isinstance(fault["input"], Mapping):
        return f"{where}: {fault['msg'].removeprefix('Value error, ')}"
    if fault["type"] == "missing":
        return f"setting {where!r} is missing"
    meaning = describe(where)
    means = f"; it means: {meaning}" if meaning else ""
    return f"setting {where!r} is {fault['input']!r}; {fault['msg']}{means}"


def _names_near(place: tuple[Any, ...]) -> list[str]:
    """Return the settings that could be meant at a place: of a task of one's own, its keys."""
    if place[:2] != ("tasks", "own") or len(place) < 4:
        return leaf_names()
    return [".".join([*map(str, place[:3]), key]) for key in OwnTask.model_fields]


def leaves(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every setting as its dotted name and its pydantic field."""
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, Section):
            yield from leaves(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def leaf_names() -> list[str]:
    """Return the dotted name of every setting."""
    return [name for name, _ in leaves()]


def describe(name: str) -> str:
    """Return the meaning of a setting, or nothing for a name that is none."""
    meaning = next((field.description or "" for leaf, field in leaves() if leaf == name), "")
    return " ".join(meaning.split())
