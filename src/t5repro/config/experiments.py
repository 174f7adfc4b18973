"""Arms that name other arms: fine-tuning that goes on from another's, ensembles."""

from collections.abc import Mapping
from typing import Any

from t5repro.config.schema import Settings
from t5repro.errors import SettingsError

BEFORE_FINETUNING = ("seed", "c4", "vocab", "tokens", "model", "pretrain")
VOCABULARY = ("seed", "c4", "vocab")


def check_arms(arms: Mapping[str, Settings]) -> None:
    """Refuse an arm that names one which it cannot build on.

    Args:
        arms: experiment -> its settings, in the run's order.

    Raises:
        SettingsError: says which arm, what it names and what would do.
    """
    earlier: list[str] = []
    for name, settings in arms.items():
        try:
            if start := settings.finetune.start_from:
                _check_start(name, start, arms, earlier)
            if settings.evaluate.ensemble:
                _check_ensemble(name, arms)
        except SettingsError as error:
            error.experiment = name
            raise
        earlier.append(name)


def _check_start(name: str, start: str, arms: Mapping[str, Settings], earlier: list[str]) -> None:
    where = f"experiment {name!r}: finetune.start_from"
    if start not in earlier:
        raise SettingsError(
            f"{where} is {start!r}; it must be one of the experiments before it: {earlier}"
        )
    own, other = arms[name], arms[start]
    _check_same(where, own, start, other, BEFORE_FINETUNING)
    layers = {item.finetune.method == "adapters" for item in (own, other)}
    widths = {item.finetune.adapter_width for item in (own, other)}
    if other.finetune.method == "adapters" and (len(layers) > 1 or len(widths) > 1):
        raise SettingsError(
            f"{where} is {start!r}, whose network has adapters of width "
            f"{other.finetune.adapter_width}; finetune.method and finetune.adapter_width of both "
            "must be the same"
        )


def _check_ensemble(name: str, arms: Mapping[str, Settings]) -> None:
    where = f"experiment {name!r}: evaluate.ensemble"
    own, members = arms[name], arms[name].evaluate.ensemble
    for member in members:
        if member not in arms:
            raise SettingsError(f"{where} names {member!r}; the experiments are {list(arms)}")
        if arms[member].evaluate.ensemble:
            raise SettingsError(f"{where} names {member!r}, which is an ensemble itself")
        _check_same(where, own, member, arms[member], VOCABULARY)
        _check_same(where, own, member, arms[member], ("model",))
        if layers_of(own) != layers_of(arms[member]):
            raise SettingsError(
                f"{where} names {member!r}, whose adapters are others; finetune.method and "
                "finetune.adapter_width of the ensemble and its members must be the same"
            )


def layers_of(settings: Settings) -> int:
    """Return the inner width of the adapters that a network has; 0: none."""
    return settings.finetune.adapter_width if settings.finetune.method == "adapters" else 0


def _check_same(
    where: str, own: Settings, name: str, other: Settings, keys: tuple[str, ...]
) -> None:
    """Refuse two arms whose settings differ where they must agree."""
    mine, theirs = own.model_dump(mode="json"), other.model_dump(mode="json")
    for key in keys:
        if mine[key] != theirs[key]:
            raise SettingsError(
                f"{where} names {name!r}, but {first_difference(key, mine[key], theirs[key])}; "
                "both must have the same there"
            )


def first_difference(name: str, mine: Any, theirs: Any) -> str:
    """Return the first setting in which two values differ, and both values."""
    if isinstance(mine, dict) and isinstance(theirs, dict) and set(mine) == set(theirs):
        for key in mine:
            if mine[key] != theirs[key]:
                return first_difference(f"{name}.{key}", mine[key], theirs[key])
    return f"{name} is {mine!r} and {theirs!r}"
