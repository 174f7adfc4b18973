"""Load the settings of a run from its run file and the command line.

`layers` has the order in which settings replace each other. Keys may be nested or dotted.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from t5repro.config.dependencies import check_experiments
from t5repro.config.experiments import (
    own_text_experiments,
    settings_of_experiment,
    with_experiment_per_seed,
)
from t5repro.config.layers import apply_layers, validated
from t5repro.config.origins import Origins
from t5repro.config.own_text import own_text_sources, state_no_tasks
from t5repro.config.run_file import expand
from t5repro.config.schema import Settings
from t5repro.config.sections.data import RawFiles
from t5repro.config.task_files import check_file_names, check_own_names
from t5repro.config.tree import merged
from t5repro.config.unread import check_stated
from t5repro.config.withdrawn import read_files
from t5repro.config.withdrawn_files import without_withdrawn
from t5repro.errors import SettingsError


def load_run_file(path: Path, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings of a run file.

    Args:
        path: run file.
        overrides: settings of the command line, nested or dotted. They replace the file's.

    Raises:
        SettingsError: the file cannot be read, or a setting is unknown or invalid. The message
            starts with the file and the line.
    """
    return load_run_files([path], overrides)


def load_run_files(paths: Sequence[Path], overrides: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings of run files; later files replace values of earlier ones.

    Args:
        paths: run files.
        overrides: settings of the command line, nested or dotted. They replace the files'.

    Raises:
        SettingsError: as of `load_run_file`.
    """
    origins = Origins(paths, overrides)
    with origins.located_errors():
        return load_settings(merged(origins.values), overrides)


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
    change = merged([values, overrides or {}])
    entries = expand(change)
    state_no_tasks(change)
    # All values of the baseline: a run file may set a part of a section that has its own defaults.
    tree = Settings().model_dump(mode="json")
    apply_layers(tree, change)
    settings = validated(tree, entries=entries)
    for name in ["", *own_text_experiments(settings)]:
        sources = [RawFiles(**source) for source in _own_text_sources(settings, name)]
        data = settings.data.model_copy(update={"sources": [*settings.data.sources, *sources]})
        settings = settings.model_copy(update={"data": data})
    settings = with_experiment_per_seed(settings)
    check_own_names(settings)
    check_file_names(settings)
    if not keep_withdrawn:
        settings = without_withdrawn(settings, read_files())
    check_experiments(settings)
    check_stated(settings, change)
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
