"""Whether the packages of `run.loggers` are installed, checked when a run is planned.

A training imports them when it starts. If that failed, Snakemake would delete the results of the
training before, which a logger does not change.
"""

from importlib.util import find_spec

from t5repro.config.schema import Settings
from t5repro.errors import SettingsError


def check_logger_packages(settings: Settings) -> None:
    """Check that the package of each logger can be found; none is imported.

    Raises:
        SettingsError: one is not installed.
    """
    for number, logger in enumerate(settings.run.loggers):
        package = logger.callback.partition(".")[0]
        if find_spec(package) is None:
            raise SettingsError(
                f"run.loggers names {logger.callback!r}, and there is no package {package!r}; "
                "correct the name, or install it into this environment with pip",
                keys=("run", "loggers", number, "callback"),
            )
