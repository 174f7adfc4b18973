"""The measured spread of a run: how far its numbers move if only rounding changes.

Training amplifies a difference in the last bit of one weight until scores differ. The spread is
measured once per run by twins: trainings that start with one weight other than the committed one,
by one unit in the last place (`benchmarks/spread.py`). Its file is committed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import stdev
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from t5repro.errors import ArtifactError

FOLDER = Path("configs/spread")


@dataclass(frozen=True)
class Spread:
    """The standard deviation of every number that the twins of an experiment gave.

    Attributes:
        run: name of the run.
        experiment: the experiment that was repeated; its spread serves for the others of the run.
        twins: number of trainings.
        machine: CPU and versions of the machine that measured, for the reader.
        code: rule -> SHA-256 of its code, for the reader.
        settings: stage -> dotted name -> value of the settings of the measured jobs.
        deviations: rule -> name of a number -> sample standard deviation.
    """

    run: str
    experiment: str
    twins: int
    machine: dict[str, str]
    code: dict[str, str]
    settings: dict[str, dict[str, Any]]
    deviations: dict[str, dict[str, float]]

    def other_setting(
        self,
        settings: Mapping[str, Mapping[str, Any]],
        defaults: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    ) -> str | None:
        """Return the first setting of a run that this was not measured with, None if there is none.

        Args:
            settings: stage -> dotted name -> value, of all stages of the run.
            defaults: the same, of a run that states nothing. The measured jobs had that value of
                a setting that came later.
        """
        for stage, measured in sorted(self.settings.items()):
            current = settings.get(stage, {})
            before = {**defaults.get(stage, {}), **measured}
            for name in sorted(measured.keys() | current.keys()):
                if before.get(name) != current.get(name):
                    return f"{stage}.{name}"
        return None


_SPREAD = TypeAdapter(Spread)


def spread_path(run: str) -> Path:
    """Return the path of the spread of a run in the checkout."""
    return FOLDER / f"{run}.json"


def deviations_of(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the sample standard deviation of each number that all of two or more runs have."""
    names = set.intersection(*map(set, runs))
    return {name: stdev(run[name] for run in runs) for name in names}


def widest(spreads: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the largest deviation of each number."""
    largest: dict[str, float] = {}
    for name, deviation in (item for spread in spreads for item in spread.items()):
        largest[name] = max(deviation, largest.get(name, 0.0))
    return largest


def parse_spread(text: bytes, name: str) -> Spread:
    """Return a spread from its JSON text.

    Args:
        text: JSON.
        name: of the file, for error messages.

    Raises:
        ArtifactError: it is not a spread.
    """
    try:
        return _SPREAD.validate_json(text)
    except ValidationError as error:
        raise ArtifactError(
            f"{name} is not a spread ({error.errors()[0]['msg']}); restore it with git checkout, "
            "or measure it with python benchmarks/spread.py"
        ) from error
