"""What the studies of docs/desk_study.md cost, and what was estimated.

Two estimates, which were printed before the studies, are typed in.
"""

from collections.abc import Sequence
from functools import cache

from studies import unpacked
from study_results import (
    ADAPTERS,
    ARCHITECTURES,
    DESK_STUDIES,
    MIXING,
    MODELING,
    OBJECTIVES,
    RECIPES,
    REPEATS,
    SCALING,
    SEARCH,
    STUDY,
    SYSTEMS,
    records_of,
    settings_of,
)

from desk_page.text import extremes, signed
from t5repro.estimate.machines import machine_named
from t5repro.estimate.plan import Calibration, estimate_run
from t5repro.estimate.rates import MeasuredRate
from t5repro.estimate.records import examples_in
from t5repro.report.cost import job_costs

AIM = 0.3  # the largest error of an estimate; a share of what was spent
# FLOP/s of a core by positions and rows of a batch, and seconds until the first step was done: 20
# steps of two trainings at a time, before the study, of SCALING after it.
PROBED = {
    SCALING: {(168, 16): (47.0e9, 10.8), (128, 32): (50.9e9, 10.5), (96, 32): (59.6e9, 10.5)},
    STUDY: {(168, 16): (88.6e9, 4.5), (128, 32): (86.5e9, 4.7), (96, 32): (88.4e9, 5.2)},
    ARCHITECTURES: {(168, 16): (91.3e9, 4.6), (128, 32): (92.3e9, 4.5), (96, 32): (90.7e9, 4.4)},
    MODELING: {
        (256, 16): (43.8e9, 9.6),
        (128, 16): (44.1e9, 6.0),
        (128, 32): (40.1e9, 11.2),
        (96, 32): (44.1e9, 11.1),
    },
    REPEATS: {(168, 16): (92.1e9, 5.7), (128, 32): (86.8e9, 5.2), (96, 32): (89.0e9, 5.2)},
    ADAPTERS: {(168, 16): (80.8e9, 5.4), (96, 32): (90.2e9, 5.5)},
    MIXING: {
        (168, 16): (86.6e9, 5.1),
        (176, 16): (86.0e9, 4.9),
        (128, 32): (84.6e9, 5.4),
        (96, 32): (89.3e9, 5.5),
    },
    RECIPES: {
        (168, 16): (87.4e9, 5.2),
        (256, 16): (90.5e9, 4.8),
        (128, 32): (87.2e9, 5.2),
        (96, 32): (87.9e9, 5.1),
    },
    SEARCH: {
        (168, 16): (72.7e9, 7.3),
        (128, 16): (65.7e9, 4.5),
        (128, 32): (71.0e9, 6.3),
        (96, 32): (56.3e9, 4.8),
        (96, 64): (66.3e9, 7.3),
    },
    SYSTEMS: {
        (168, 16): (85.5e9, 5.6),
        (128, 16): (80.3e9, 4.1),
        (128, 32): (87.6e9, 5.4),
        (64, 32): (68.7e9, 4.0),
        (64, 64): (84.2e9, 5.1),
    },
}


def hours_of(study: str) -> float:
    """Return the hours of all jobs by the clock, of which each has a core."""
    return sum(cost.seconds or 0 for cost in job_costs(unpacked(study) / "results" / study)) / 3600


def trainings_of(study: str) -> int:
    rules = [record.rule for record in records_of(study).values()]
    return rules.count("pretrain") + rules.count("finetune")


def estimated(study: str, rates: Sequence[MeasuredRate]) -> float:
    examples = examples_in(records_of(study), study)
    calibration = Calibration(samples=[], measured=rates, examples=examples)
    machine = machine_named("cpu-2", None)
    other = next(name for name in DESK_STUDIES if name != study)  # nothing of `study` is done there
    found = estimate_run(settings_of(study), machine, root=unpacked(other), calibration=calibration)
    seconds = {
        "/".join([study, *filter(None, each.node.key)]): each.seconds for each in found.nodes
    }
    return sum(seconds[job] for job in records_of(study)) / 3600  # of a search some are not run


@cache
def estimates() -> dict[str, float]:
    """Return study -> its estimated core-hours."""
    rates = {
        study: [
            MeasuredRate(
                machine="cpu",
                d_model=128,
                length=length,
                rows_per_chip=rows,
                flops_per_second=speed,
                start_seconds=start,
            )
            for (length, rows), (speed, start) in speeds.items()
        ]
        for study, speeds in PROBED.items()
    }
    return {
        **{study: estimated(study, found) for study, found in rates.items()},
        OBJECTIVES: 3.785,  # from records of STUDY and of the first run of RECIPES
    }


def error(study: str) -> float:
    """Return the error of an estimate; a share of what was spent."""
    return estimates()[study] / hours_of(study) - 1


def cost_table() -> list[list[str]]:
    rows = []
    for study in DESK_STUDIES:
        cells = [f"`{study}`", str(trainings_of(study)), f"{hours_of(study):.1f}"]
        if study in estimates():
            cells += [f"{estimates()[study]:.1f}", f"{signed(100 * error(study), 0)} %"]
        rows.append(cells)
    return rows


def cost() -> list[str]:
    assert all(abs(error(study)) < AIM for study in estimates())
    ends = [record.end for record in records_of(REPEATS).values() if record.rule == "finetune"]
    seconds = sorted(end.seconds for end in ends if end)
    widest = max(range(1, len(seconds)), key=lambda number: seconds[number] - seconds[number - 1])
    others, waited = seconds[:widest], seconds[widest:]
    return [
        "its estimate was 2.6 core-hours",  # no record has it
        f"an error below {AIM:.0%}"[:-1],
        f"{len(waited)} of {len(seconds)} fine-tunings",
        f"took {extremes(waited, 0)} seconds in place of {extremes(others, 0)}",
    ]
