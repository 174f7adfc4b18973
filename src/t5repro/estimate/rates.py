"""How fast a machine works: from records of the same kind of machine, a file, or the table.

The sources in their order: ``rates``, a file of the user; ``own``, records of the checkout;
``table``, the peak of the machine times its utilization. The range of a time follows the source.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from t5repro.config.bounded_yaml import parse_yaml
from t5repro.config.field import Section
from t5repro.config.validation import validate
from t5repro.errors import SettingsError
from t5repro.estimate.machines import KINDS, Machine
from t5repro.estimate.records import Sample
from t5repro.estimate.work import Work
from t5repro.files import read_file

# Start of a job: imports, and compiling the step. Seconds; of a CPU measured, the demo's trainings
# without a step take 5 to 6; of others assumed.
START = {"cpu": 5.0, "gpu": 60.0, "tpu": 180.0}
DATA_START = 0.4  # of a job without the model: the demo's shortest
BANDWIDTH_SHARE = 0.5  # of the memory's bandwidth that decoding reaches; assumed

# Bytes read per core and second, and bytes written per byte read. C4's rules: 255 million pages in
# 7,200 files of 131 MB (docs/run_on_spark.md, "A tenth of a crawl"). Others: the demo's records,
# where jobs of a second say little.
MEGA = 1e6
BYTES_PER_SECOND = {
    "data": 500 * MEGA,
    "c4_punkt": 0.6 * MEGA,
    "c4_clean": 9.4 * MEGA,
    "c4_dedup": 86 * MEGA,
    "c4": 15 * MEGA,
    "corpus": 10 * MEGA,
    "vocab_sample": 5 * MEGA,
    "vocab": 1 * MEGA,
    "tokens": 4 * MEGA,
    "sentences": 0.7 * MEGA,
    "tasks": 1 * MEGA,
    "evaluate_score": 0.4 * MEGA,
    "contamination": 5 * MEGA,
    "report": 0.5 * MEGA,
}
BYTES_WRITTEN = {
    "c4_clean": 0.46,
    "c4_dedup": 0.28,
    "c4": 0.43,
    "corpus": 0.5,
    "tokens": 1.5,
    "sentences": 0.14,
}
# Earlier jobs tell the speed of jobs like them: a job of seconds is mostly start.
NEAREST = math.log(10)  # logarithm of the largest ratio in size, or of ratios in shape together
FACTORS = {"own": (0.9, 1.1), "rates": (0.85, 1.15), "table": (0.6, 1.8)}
Source = Literal["own", "rates", "table"]


@dataclass(frozen=True)
class Rate:
    """The speed of a chip, or of a core for jobs without the model.

    Attributes:
        per_second: operations or bytes of a chip in a second.
        source: where it is from.
        low: factor of the shortest plausible time.
        high: factor of the longest.
        start_seconds: before the first step of a job with the model, where it was measured.
    """

    per_second: float
    source: Source
    low: float
    high: float
    start_seconds: float | None = None


class MeasuredRate(Section):
    """A measured speed of a training step."""

    machine: str
    """Kind of chip, as in `--machine`."""
    d_model: int = Field(ge=1)
    """Width of the network."""
    length: int = Field(ge=1)
    """Positions of inputs and targets of a row."""
    rows_per_chip: float = Field(gt=0)
    """Rows of a batch on a chip."""
    flops_per_second: float = Field(gt=0)
    """Model FLOPs of a chip in a second, as `speed.csv` states them, divided by the chips."""
    start_seconds: float | None = Field(None, ge=0)
    """Seconds until the first step is done, most of it compilation; absent: a constant."""


class RatesFile(Section):
    """A file of `--rates`."""

    rates: list[MeasuredRate] = Field(min_length=1)
    """Measured speeds."""


def read_rates(path: Path) -> tuple[MeasuredRate, ...]:
    """Return the speeds of a file of ``--rates``.

    Raises:
        SettingsError: it cannot be read, or has other keys.
    """
    rates = validate(RatesFile, read_mapping(path, "--rates"), label=f"{path}: ").rates
    for rate in rates:
        if rate.machine not in KINDS:
            raise SettingsError(
                f"{path}: machine {rate.machine!r} is unknown; kinds: {', '.join(KINDS)}"
            )
    return tuple(rates)


def read_mapping(path: Path, option: str) -> dict[str, object]:
    """Return the mapping of a YAML or JSON file that an option names.

    Raises:
        SettingsError: it cannot be read, or is not a mapping.
    """
    try:
        value = parse_yaml(read_file(path).decode("utf-8"), path.as_posix())
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{option} {path} cannot be read ({error}); name a YAML or JSON file"
        ) from error
    if not isinstance(value, dict):
        raise SettingsError(
            f"{option} {path} is {type(value).__name__}; it must be a mapping of names to values"
        )
    return value


def device_start(machine: Machine, rate: Rate) -> float:
    """Return the seconds before the first step."""
    return START[machine.kind.device] if rate.start_seconds is None else rate.start_seconds


def device_rate(
    rule: str,
    shape: tuple[float, ...],
    *,
    machine: Machine,
    precision: str,
    samples: Sequence[Sample],
    measured: Sequence[MeasuredRate] = (),
) -> Rate:
    """Return the FLOP/s of a chip for a training or prediction.

    Args:
        rule: `pretrain`, `finetune` or `evaluate_predict`.
        shape: width, positions of a row, rows of a chip.
        machine: the machine.
        precision: `devices.precision`.
        samples: earlier jobs; only the jobs of the nearest shape count, if it is near enough.
        measured: speeds of a file.
    """
    rates = [
        (_distance(shape, (rate.d_model, rate.length, rate.rows_per_chip)), rate)
        for rate in measured
        # The file has speeds of training steps.
        if rate.machine == machine.kind.name and rule != "evaluate_predict"
    ]
    if rates:
        nearest = min(rates, key=lambda pair: pair[0])[1]
        return Rate(nearest.flops_per_second, "rates", *FACTORS["rates"], nearest.start_seconds)
    fitting = [
        (_distance(shape, sample.shape), _flops_per_second(sample))
        for sample in samples
        if (sample.rule, sample.kind, sample.precision) == (rule, machine.kind.name, precision)
    ]
    fitting = [pair for pair in fitting if pair[0] <= NEAREST]
    if fitting:
        # All samples at the least distance count: repetitions and seeds of one training.
        return _own([rate for distance, rate in fitting if distance == min(fitting)[0]])
    per_second = machine.kind.peak(precision) * machine.kind.utilization
    return Rate(per_second, "table", *FACTORS["table"])


def data_rate(rule: str, read: float, samples: Sequence[Sample]) -> Rate:
    """Return the bytes that a core reads in a second in a job without the model.

    Args:
        rule: name of the rule.
        read: bytes that the job reads.
        samples: earlier jobs; only jobs of a similar size count.
    """
    own = [
        # The start is an assumption, so at least half of a job counts as work: the divisor stays
        # positive.
        sample.work.input_bytes / max(sample.seconds - DATA_START, sample.seconds / 2)
        for sample in samples
        if sample.rule == rule and sample.seconds and _is_near(read, sample.work.input_bytes)
    ]
    return _own(own) if own else Rate(BYTES_PER_SECOND[rule], "table", *FACTORS["table"])


def written_share(rule: str, read: float, samples: Sequence[Sample]) -> float:
    """Return the bytes that a job writes for a byte that it reads; see `data_rate`."""
    own = [
        sample.output_bytes / sample.work.input_bytes
        for sample in samples
        if sample.rule == rule and _is_near(read, sample.work.input_bytes)
    ]
    return statistics.median(own) if own else BYTES_WRITTEN.get(rule, 0.0)


def decoding_seconds(work: Work, machine: Machine) -> float:
    """Return the time in which the memory delivers the weights; the chips share the rows."""
    return work.weight_bytes / (machine.kind.bandwidth * BANDWIDTH_SHARE)


def _own(rates: Sequence[float]) -> Rate:
    """Return the median speed with the measured range, widened to at least ten percent."""
    median = statistics.median(rates)
    low, high = FACTORS["own"]
    return Rate(median, "own", min(low, median / max(rates)), max(high, median / min(rates)))


def _flops_per_second(sample: Sample) -> float:
    start_seconds = START[KINDS[sample.kind].device]
    seconds = max(sample.seconds - start_seconds, sample.seconds / 2)
    return sample.work.flops / seconds / sample.chips


def _is_near(value: float, reference: float) -> bool:
    return bool(value and reference) and abs(math.log(value / reference)) <= NEAREST


def _distance(shape: Sequence[float], reference: Sequence[float]) -> float:
    """Return how much two shapes differ: the sum of the logarithms of their ratios."""
    # Logarithms, so that half and double are equally far.
    return sum(abs(math.log(a / b)) for a, b in zip(shape, reference, strict=True))
