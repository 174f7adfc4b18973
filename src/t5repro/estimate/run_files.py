"""Settings of several run files, merged as Snakemake merges several ``--configfile``."""

from collections.abc import Sequence
from pathlib import Path

from t5repro.config.load import load_settings
from t5repro.config.origins import Origins
from t5repro.config.project_files import project_file
from t5repro.config.schema import Settings
from t5repro.config.tree import merged


def load_run_files(paths: Sequence[Path]) -> Settings:
    """Return the settings of run files; later files replace values of earlier ones.

    Raises:
        SettingsError: a file cannot be read, or a setting is unknown or invalid.
    """
    origins = Origins([project_file(path) for path in paths])
    with origins.located_errors():
        return load_settings(merged(origins.values))
