"""Names of machines."""

import pytest

from t5repro.config.sections.devices import DevicesSettings
from t5repro.errors import SettingsError
from t5repro.estimate.machines import machine_named, machine_of


@pytest.mark.parametrize(
    ("name", "chips"),
    [("v5e-8", 8), ("v6e-4", 4), ("v4-8", 4), ("v3-8", 4), ("v5p-16", 8), ("v4", 1), ("h100-8", 8)],
)
def test_the_number_of_a_name_is_that_of_its_owner(name: str, chips: int) -> None:
    assert machine_named(name).chips == chips


def test_chips_may_be_given_apart() -> None:
    assert machine_named("v4", chips=32).name == "v4, 32 chips"
    assert machine_named("cpu", chips=1).name == "cpu, 1 core"


@pytest.mark.parametrize(
    ("name", "chips", "message"),
    [
        ("v5", None, "--machine 'v5' is unknown; .* v5e, v5p, .*; nearest: 'v5p'"),
        ("v5e:4x4", None, "is unknown"),
        ("v4-7", None, "number of v4 counts cores, 2 to a chip"),
        ("v5e-0", None, "multiple of 1 from 1 on"),
        ("v5e", 0, "--chips 0 must be 1 or more"),
    ],
)
def test_a_wrong_name_is_refused(name: str, chips: int | None, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        machine_named(name, chips)


def test_the_settings_of_a_run_name_its_machine() -> None:
    assert machine_of(DevicesSettings(kind="tpu", slice="v5e:4x4")).name == "v5e, 16 chips"
    assert machine_of(DevicesSettings(kind="cpu", intra_op_threads=2)).name == "cpu, 2 cores"
    with pytest.raises(SettingsError, match="names no machine; give --machine, such as v5e-8"):
        machine_of(DevicesSettings(kind="gpu"))
