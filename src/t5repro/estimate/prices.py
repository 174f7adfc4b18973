"""Prices of machines, from a file of the user. The project knows no price."""

import datetime
from pathlib import Path

from pydantic import Field

from t5repro.config.field import Section
from t5repro.config.validation import validate
from t5repro.errors import SettingsError, nearest
from t5repro.estimate.machines import KINDS
from t5repro.estimate.rates import read_mapping


class Price(Section):
    """The price of a kind of chip; every field is required."""

    per_chip_hour: float = Field(ge=0)
    """Price of a chip for an hour; of a CPU, of a core."""
    currency: str = Field(min_length=1)
    """Currency, such as USD."""
    as_of: datetime.date
    """Day on which the price was read."""
    source: str = Field(min_length=1)
    """Where the price is from."""


class _Prices(Section):
    prices: dict[str, Price]


def read_price(path: Path, kind: str) -> Price:
    """Return the price of a kind of chip from a file of ``--prices``.

    Raises:
        SettingsError: the file cannot be read, has other keys, or lacks the kind.
    """
    values = read_mapping(path, "--prices")
    for name in values:
        if name not in KINDS:
            raise SettingsError(
                f"--prices {path}: machine {name!r} is unknown; kinds: {', '.join(KINDS)}"
                f"{nearest(str(name), KINDS)}"
            )
    prices = validate(_Prices, {"prices": values}, label=f"{path}: ").prices
    if kind not in prices:
        raise SettingsError(
            f"--prices {path} has no price of {kind}; it has {sorted(prices)}; add one with "
            "per_chip_hour, currency, as_of and source"
        )
    return prices[kind]
