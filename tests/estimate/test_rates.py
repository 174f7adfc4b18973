"""Speeds: from records, from a file, from the table."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT

from t5repro.errors import SettingsError
from t5repro.estimate.machines import machine_named
from t5repro.estimate.prices import read_price
from t5repro.estimate.rates import data_rate, device_rate, read_rates
from t5repro.estimate.records import Records, Sample, samples_of
from t5repro.estimate.work import Work

V5E = machine_named("v5e-8")
BASE = (768.0, 704.0, 16.0)
RATES = """
rates:
- {machine: v5e, d_model: 768, length: 704, rows_per_chip: 16, flops_per_second: 9.0e+13}
- {machine: v5e, d_model: 1024, length: 704, rows_per_chip: 16, flops_per_second: 1.0e+14}
- {machine: v4, d_model: 768, length: 704, rows_per_chip: 16, flops_per_second: 1.5e+14}
"""


def training(seconds: float, shape: tuple[float, ...] = BASE) -> Sample:
    work = Work(flops=8e15)
    return Sample("r/pretrain/a", "pretrain", "v5e", 8, "bfloat16", shape, work, 1.0, seconds)


def rate_of(samples: list[Sample], *files: Any, shape: tuple[float, ...] = BASE) -> Any:
    return device_rate(
        "pretrain",
        shape,
        machine=V5E,
        precision="bfloat16",
        samples=samples,
        measured=[rate for file in files for rate in file],
    )


def test_without_a_measurement_the_rate_is_a_share_of_the_peak() -> None:
    rate = rate_of([])
    assert (rate.source, rate.low, rate.high) == ("table", 0.6, 1.8)
    assert rate.per_second == pytest.approx(197e12 * 0.45)


def test_records_of_the_nearest_shape_come_before_the_table() -> None:
    far = training(480.0, (1024.0, 704.0, 16.0))
    rate = rate_of([training(1180.0), training(1180.0), far])
    assert (rate.source, rate.per_second) == ("own", pytest.approx(1e12))  # 180 s of start
    assert (rate.low, rate.high) == (0.9, 1.1)
    assert rate_of([training(1180.0)], shape=(1024.0, 70.0, 1.0)).source == "table"  # too far


def test_the_range_of_records_is_that_of_their_times() -> None:
    rate = rate_of([training(1180.0), training(1180.0), training(2180.0)])
    assert (rate.low, rate.high) == (0.9, pytest.approx(2.0))


def test_a_file_of_rates_comes_before_records(tmp_path: Path) -> None:
    path = tmp_path / "rates.yaml"
    path.write_text(RATES)
    rate = rate_of([training(1180.0)], read_rates(path))
    assert (rate.source, rate.per_second, rate.high) == ("rates", 9e13, 1.15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "--rates .* is list; it must be a mapping"),
        ("rates: []", "rates"),
        (RATES.replace("v4", "v44"), "machine 'v44' is unknown; kinds: v2"),
        (RATES.replace("768", "0"), "d_model"),
        (RATES.replace("length", "lenght"), "unknown setting 'rates.*lenght'"),
    ],
)
def test_a_wrong_file_of_rates_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rates.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=message):
        read_rates(path)


def test_a_missing_file_of_rates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--rates .* cannot be read"):
        read_rates(tmp_path / "rates.yaml")


def test_a_small_job_says_nothing_about_a_large_one(records: Records) -> None:
    samples = samples_of(records)
    assert data_rate("c4_clean", 1e6, samples).source == "own"
    assert data_rate("c4_clean", 1e12, samples).source == "table"


def test_records_that_tell_no_speed_are_left_out(records: Records) -> None:
    record = records["demo/finetune/baseline"]
    assert record.end is not None
    failed = replace(record, end=replace(record.end, ok=False))
    killed = replace(record, end=None)
    settings = {**record.start.settings}
    settings["devices"] = {**settings["devices"], "kind": "gpu"}  # of an unknown kind
    on_gpu = replace(record, start=replace(record.start, settings=settings))
    old = replace(record, start=replace(record.start, settings={**settings, "unknown": 1}))
    assert samples_of({"r/finetune/a": record})[0].kind == "cpu"
    assert samples_of({"a": failed, "b": killed, "c": on_gpu, "d": old}) == []


def test_the_files_of_the_page_are_read(tmp_path: Path) -> None:
    page = (ROOT / "docs/estimate.md").read_text(encoding="utf-8")
    rates, prices = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
    path = tmp_path / "file.yaml"
    path.write_text(rates)
    assert [rate.machine for rate in read_rates(path)] == ["h100"]
    path.write_text(prices)
    assert read_price(path, "v5e").per_chip_hour == 1
