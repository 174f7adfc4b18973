"""Settings of the experiments of a run, the nodes that they share, and their dependencies.

An experiment depends on others if it continues their fine-tuning (``finetune.start_from``) or is an
ensemble of them (``evaluate.ensemble``).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from t5repro.config.mixtures import mixture_settings, reset_mixture
from t5repro.config.own_text import check_same_text
from t5repro.config.published_sizes import published_shape
from t5repro.config.schema import Experiment, Settings
from t5repro.config.stage_settings import settings_of_stages
from t5repro.config.tree import lookup, merge, nested, recipe, variant
from t5repro.config.validation import validate
from t5repro.errors import SettingsError
from t5repro.stages import BY_NAME, STAGES, ancestors

# Settings that all experiments of a run share:
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


def one_per_seed(experiment: Experiment) -> list[Experiment]:
    """Return the experiment, or one experiment for each of its seeds.

    They are ordinary experiments: each has its own nodes and shares those that no seed affects.
    """
    return [
        experiment.model_copy(
            update={
                "name": f"{experiment.name}_seed_{seed}" if index else experiment.name,
                "change": {**experiment.change, "seed": seed},
                "seeds": [],
            }
        )
        for index, seed in enumerate(experiment.seeds)
    ] or [experiment]


def settings_of_experiment(settings: Settings, name: str) -> Settings:
    """Return the settings of the run with the changes of one experiment.

    Raises:
        SettingsError: the experiment is unknown, or its changes are unknown or invalid.
    """
    try:
        return _changed_settings(settings, name)
    except SettingsError as error:
        error.experiment = name
        raise


def _changed_settings(settings: Settings, name: str) -> Settings:
    changes = {experiment.name: experiment.change for experiment in settings.experiments}
    if name not in changes:
        raise SettingsError(f"no experiment {name!r}; the run has {sorted(changes)}")
    tree = settings.model_dump(mode="json")
    change = nested(changes[name])
    check_same_text(name, change, settings.corpus)
    new_recipe, new_variant = lookup(change, "c4", "recipe"), lookup(change, "c4", "variant")
    if new_recipe or (new_variant is not None and settings.c4.variant):
        # Restores the values that the run's variant changed.
        merge(tree, recipe(new_recipe or settings.c4.recipe))
    if new_recipe or new_variant is not None:
        merge(tree, variant(settings.c4.variant if new_variant is None else new_variant))
    merge(tree, reset_mixture(change, tree))
    merge(tree, published_shape(change))
    merge(tree, change)
    merge(tree, mixture_settings(change))
    changed = validate(Settings, tree, label=f"experiment {name!r}: ")
    for shared_name in SHARED:
        if _value(changed, shared_name) != _value(settings, shared_name):
            raise SettingsError(
                f"experiment {name!r} changes {shared_name}; all experiments of a run share "
                f"{list(SHARED)}",
                keys=tuple(shared_name.split(".")),
            )
    return changed


def _value(settings: Settings, name: str) -> Any:
    value: Any = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value


def nodes_by_experiment(
    settings: Settings, rule: str, settings_at: Callable[[str], Settings] | None = None
) -> dict[str, str]:
    """Return experiment -> its node of `rule`.

    Experiments share a node if their settings of the rule and of all earlier rules are equal. The
    node has the name of the first of them.

    Args:
        settings: settings of the run.
        rule: name of the rule.
        settings_at: returns the settings of an experiment, for a caller that keeps them: to
            compute them for every rule again takes most of the planning of a large run.
    """
    rules = {rule, *ancestors(rule)}
    first_experiments: dict[str, str] = {}
    nodes = {}
    for experiment in settings.experiments:
        name = experiment.name
        resolved = settings_at(name) if settings_at else settings_of_experiment(settings, name)
        key = json.dumps(settings_of_stages(resolved, sorted(rules)))
        nodes[name] = first_experiments.setdefault(key, name)
    return nodes


def node_of(settings: Settings, rule: str, experiment: str) -> str:
    """Return the node of `rule` that an experiment uses."""
    return nodes_by_experiment(settings, rule)[experiment]


def check_experiments(experiments: Mapping[str, Settings]) -> None:
    """Check the dependencies between experiments.

    Args:
        experiments: experiment -> its settings, in the order of the run file.

    Raises:
        SettingsError: an experiment depends on one that is unknown, comes later or does not fit.
    """
    earlier: list[str] = []
    for name, settings in experiments.items():
        try:
            if start := settings.finetune.start_from:
                _check_start(name, start, experiments, earlier)
            if settings.evaluate.ensemble:
                _check_ensemble(name, experiments)
        except SettingsError as error:
            error.experiment = name
            raise
        earlier.append(name)


def _check_start(
    name: str, start: str, experiments: Mapping[str, Settings], earlier: list[str]
) -> None:
    label = f"experiment {name!r}: finetune.start_from"
    if start not in earlier:
        raise SettingsError(
            f"{label} is {start!r}; it must be one of the experiments before it: {earlier}"
        )
    settings, start_settings = experiments[name], experiments[start]
    before_finetuning = _stages(ancestors("finetune"))
    _check_equal(
        f"{label} names {start!r}",
        _without_devices(settings_of_stages(settings, before_finetuning)),
        _without_devices(settings_of_stages(start_settings, before_finetuning)),
    )
    # Adapters may be added to a trained network; those of a trained network cannot be removed.
    if start_settings.finetune.width and start_settings.finetune.width != settings.finetune.width:
        raise SettingsError(
            f"{label} is {start!r}, whose network has adapters of width "
            f"{start_settings.finetune.adapter_width}; finetune.method and finetune.adapter_width "
            "of both must be the same"
        )


def _check_ensemble(name: str, experiments: Mapping[str, Settings]) -> None:
    label = f"experiment {name!r}: evaluate.ensemble"
    settings = experiments[name]
    for member in settings.evaluate.ensemble:
        if member not in experiments:
            raise SettingsError(
                f"{label} names {member!r}; the experiments are {list(experiments)}"
            )
        member_settings = experiments[member]
        if member_settings.evaluate.ensemble:
            raise SettingsError(f"{label} names {member!r}, which is an ensemble itself")
        _check_equal(
            f"{label} names {member!r}", _ensemble_parts(settings), _ensemble_parts(member_settings)
        )
        if settings.finetune.width != member_settings.finetune.width:
            raise SettingsError(
                f"{label} names {member!r}, which has other adapters; finetune.method and "
                "finetune.adapter_width of the ensemble and its members must be the same"
            )


def _ensemble_parts(settings: Settings) -> dict[str, Any]:
    """Return the settings that the members of an ensemble have in common."""
    vocabulary = settings_of_stages(settings, _stages({"vocab", *ancestors("vocab")}))
    return {"seed": settings.seed, **vocabulary, "model": settings.model.model_dump(mode="json")}


def _stages(names: Iterable[str]) -> list[str]:
    """Return those stages that experiments may have nodes of, in the order of a run."""
    required = set(names)
    return [stage.name for stage in STAGES if stage.name in required and stage.per_experiment]


def _without_devices(stages: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of stages without the devices: weights move from one device to another."""
    return {
        stage: {key: value for key, value in values.items() if key != "devices"}
        for stage, values in stages.items()
    }


def _check_equal(label: str, values: Mapping[str, Any], other_values: Mapping[str, Any]) -> None:
    """Raise SettingsError if two experiments differ in settings that must be equal."""
    for key in values:
        if values[key] != other_values[key]:
            # A stage is no part of a setting's name.
            name = "" if key in BY_NAME else key
            raise SettingsError(
                f"{label}, but {_difference(name, values[key], other_values[key])}; "
                "both must have the same there"
            )


def _difference(name: str, value: Any, other_value: Any) -> str:
    """Return the first setting in which two trees differ, with both values."""
    if isinstance(value, dict) and isinstance(other_value, dict) and set(value) == set(other_value):
        for key in value:
            if value[key] != other_value[key]:
                return _difference(f"{name}.{key}".lstrip("."), value[key], other_value[key])
    return f"{name} is {value!r} and {other_value!r}"
