"""Load the settings of a run from its run file and the command line.

Later values replace earlier ones: the baseline of `schema`, the recipe and variant of `c4`, the
recipe of a system, the published size, what follows from own text, the run file, the command line.
The changes of an experiment are applied last (`experiments`). Keys may be nested or dotted.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t5repro.config.dependencies import check_experiments
from t5repro.config.equal_compute import check_budget, steps_of_budget
from t5repro.config.experiments import one_per_seed, own_text_experiments, settings_of_experiment
from t5repro.config.groups import group_tasks
from t5repro.config.mixtures import mixture_settings
from t5repro.config.origins import Origins, read_yaml
from t5repro.config.own_text import own_text_settings, own_text_sources
from t5repro.config.published_sizes import published_shape
from t5repro.config.run_file import expand
from t5repro.config.schema import Settings
from t5repro.config.systems import system_recipe
from t5repro.config.task_files import check_file_names, check_own_names
from t5repro.config.tree import lookup, merge, nested, recipe, variant
from t5repro.config.validation import validate
from t5repro.config.withdrawn import read_files
from t5repro.config.withdrawn_files import without_withdrawn
from t5repro.errors import SettingsError


def load_run_file(path: Path, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings of a run file.

    Args:
        path: run file.
        overrides: settings of the command line, nested or dotted. They replace those of the file.

    Raises:
        SettingsError: the file cannot be read, or a setting is unknown or invalid. The message
            starts with the file and the line.
    """
    with Origins([path], overrides).located_errors():
        return load_settings(read_yaml(path), overrides)


def load_settings(
    values: Mapping[str, Any],
    overrides: Mapping[str, Any] | None = None,
    *,
    keep_withdrawn: bool = False,
) -> Settings:
    """Return validated settings.

    Args:
        values: settings of the run file, nested or dotted.
        overrides: settings of the command line, nested or dotted.
        keep_withdrawn: whether to keep the raw files that `withdrawn/files.yaml` lists.

    Raises:
        SettingsError: a setting is unknown or invalid. The message states its value, the allowed
            values and the nearest existing name.
    """
    tree = nested(values)
    merge(tree, nested(overrides or {}))
    entries = expand(tree)
    check_budget(tree)
    # All values of the baseline: a run file may set a part of a section that has its own defaults.
    merged = Settings().model_dump(mode="json")
    merge(merged, recipe(lookup(tree, "c4", "recipe") or "paper"))
    merge(merged, variant(lookup(tree, "c4", "variant")))
    system = system_recipe(tree)
    merge(merged, system)
    merge(merged, published_shape(tree) or published_shape(system))
    merge(merged, own_text_settings(tree))
    merge(merged, tree)
    merge(merged, mixture_settings(tree))
    merge(merged, group_tasks(tree))
    settings = validate(Settings, merged, entries=entries)
    if settings.pretrain.flops:
        merged["pretrain"]["steps"] = steps_of_budget(settings)
        settings = validate(Settings, merged, entries=entries)
    for name in ["", *own_text_experiments(settings)]:
        if sources := _own_text_sources(settings, name):
            merged["data"]["sources"] = [*merged["data"]["sources"], *sources]
            settings = validate(Settings, merged, entries=entries)
    if any(experiment.seeds for experiment in settings.experiments):
        merged["experiments"] = [
            single.model_dump(mode="json")
            for experiment in settings.experiments
            for single in one_per_seed(experiment)
        ]
        settings = validate(Settings, merged)
    check_own_names(settings)
    check_file_names(settings)
    if not keep_withdrawn:
        settings = without_withdrawn(settings, read_files())
    check_experiments(settings)
    return settings


def _own_text_sources(settings: Settings, experiment: str) -> list[dict[str, Any]]:
    """Return the entries of `data.sources` for own text of the run, or of an experiment."""
    if not experiment:
        return own_text_sources(settings)
    try:
        return own_text_sources(settings_of_experiment(settings, experiment))
    except SettingsError as error:
        error.experiment = experiment
        raise
