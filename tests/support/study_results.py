"""What is read of the committed studies: settings, scores, losses, records; and comparisons."""

import csv
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from statistics import fmean, stdev
from typing import Any

from checkout import ROOT
from run_files import load_committed
from scipy.special import stdtrit
from studies import unpacked

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.schema import Settings
from t5repro.lineage.record import Record, read_records
from t5repro.lineage.store import Folder
from t5repro.model.sizes import parameter_count
from t5repro.report.order_statistics import WelchDifference, welch
from t5repro.report.published_scores import baseline_deviation, exceeds_deviation, published_rows
from t5repro.report.rows import ScoreRow
from t5repro.report.scores_csv import read_csv

(
    SCALING,
    STUDY,
    OBJECTIVES,
    ARCHITECTURES,
    MODELING,
    REPEATS,
    ADAPTERS,
    MIXING,
    RECIPES,
    SEARCH,
    SYSTEMS,
) = DESK_STUDIES = (
    "desk_scaling",
    "desk_study",
    "desk_objectives",
    "desk_architectures",
    "desk_language_modeling",
    "desk_repeats",
    "desk_adapters",
    "desk_mixing",
    "desk_recipes",
    "desk_rates",
    "desk_systems",
)
SEEDS = ("", "_seed_1", "_seed_2")
EN_DE, SST2 = "wmt_en_de.bleu", "glue_sst2.accuracy"
QQP, QQP_F1 = "glue_qqp.accuracy", "glue_qqp.f1"
GLUE = "glue.average"

settings_of = cache(load_committed)


@cache
def experiment_settings(study: str, name: str) -> Settings:
    """Return the settings of an experiment, or of one of its fine-tunings."""
    return settings_of_experiment(settings_of(study), name)


@cache
def rows_of(study: str) -> list[ScoreRow]:
    return read_csv(ROOT / "studies" / study / "scores.csv")


@cache
def scores_by_experiment(study: str) -> Mapping[tuple[str, str], list[float]]:
    """Return (experiment, task.metric) -> score of each training that was evaluated."""
    scores = defaultdict(list)
    folder = unpacked(study) / "results" / study / "evaluate_score"
    for one in settings_of(study).experiments:
        path = folder / one.name / "scores.json"
        tasks = json.loads(path.read_text(encoding="utf-8"))["tasks"] if path.is_file() else {}
        for task, entry in tasks.items():
            for metric, value in entry["metrics"].items():
                scores[one.name.partition("_seed_")[0], f"{task}.{metric}"].append(value)
    return scores


@cache
def records_of(study: str) -> Mapping[str, Record]:
    return read_records(Folder(unpacked(study)))


def history(study: str, rule: str, node: str) -> list[Mapping[str, str]]:
    """Return the rows of the history of a training, column -> its text."""
    path = unpacked(study) / "results" / study / rule / node / "history.csv"
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def held_out_losses(study: str, experiment: str) -> list[float]:
    """Return the losses on held-out text; nats a target token."""
    rows = history(study, "pretrain", experiment)
    return [float(row["validation_loss"]) for row in rows if row["validation_loss"]]


def training_losses(study: str, rule: str, node: str) -> dict[int, float]:
    """Return step -> the training loss of the steps since the one before; nats a target token.

    An encoder-decoder's history has it a position of the targets, padding included (D-017), if
    `loss_normaliser` is `padded_size`.
    """
    stage = getattr(experiment_settings(study, node), rule)
    losses, before = {}, 0
    for row in history(study, rule, node):
        step = int(row["step"])
        positions = (step - before) * stage.batch_size * stage.targets_length
        padded = positions / int(row["tokens"]) if stage.loss_normaliser == "padded_size" else 1
        losses[step] = float(row["loss"]) * padded
        before = step
    return losses


def nodes(experiment: str, group: str = "") -> list[str]:
    """Return the names of the trainings of all seeds."""
    return ["_".join(filter(None, (f"{experiment}{seed}", group))) for seed in SEEDS]


def held_out(study: str, experiment: str, index: int = -1) -> list[float]:
    """Return a loss on held-out text of each seed; nats a target token."""
    return [held_out_losses(study, node)[index] for node in nodes(experiment)]


def last_losses(study: str, rule: str, experiment: str, group: str = "") -> list[float]:
    """Return the training loss of the last logged steps of each seed; nats a target token."""
    found = (training_losses(study, rule, node) for node in nodes(experiment, group))
    return [losses[max(losses)] for losses in found]


def manifest(study: str, rule: str, node: str = "*") -> Any:
    """Return the manifest of a job, or of the only one of a rule."""
    (path,) = (unpacked(study) / "results" / study / rule).glob(f"{node}/manifest.json")
    return json.loads(path.read_text(encoding="utf-8"))


def mean_of(study: str, experiment: str, key: str) -> float:
    return fmean(scores_by_experiment(study)[experiment, key])


def difference(study: str, key: str, first: str, second: str) -> WelchDifference:
    scores = scores_by_experiment(study)
    return welch(scores[first, key], scores[second, key])


def rows_of_the_paper(study: str, table: int | None = None) -> dict[str, str]:
    """Return experiment -> the row of the paper that it repeats; of a table, if one is given."""
    published = [entry for entry in published_rows() if entry.table == table]
    return {
        one.name: one.row
        for one in settings_of(study).experiments
        if "_seed_" not in one.name
        if table is None or any(entry.is_reproduced_by(one.row) for entry in published)
    }


def exceeds(gap: WelchDifference) -> bool:
    """Return whether a difference is positive and beyond the spread."""
    assert gap.margin is not None
    return gap.value > gap.margin


def is_within(gap: WelchDifference) -> bool:
    assert gap.margin is not None
    return abs(gap.value) <= gap.margin


def negative(gap: WelchDifference) -> WelchDifference:
    """Return the difference with its terms exchanged."""
    return replace(gap, value=-gap.value)


def paper(row: str, table: int, column: str) -> float:
    """Return a score of the paper: of a row of a table, by its name there or in another table."""
    rows = [entry for entry in published_rows() if entry.table == table]
    (value,) = {entry.values[column] for entry in rows if entry.is_reproduced_by(row)}
    return value


def is_told_apart(score: float, other: float, column: str) -> bool:
    """Return whether the paper tells two scores apart, by two deviations of its baseline."""
    return bool(exceeds_deviation(score - other, baseline_deviation(column, split="validation")))


def glue_average(study: str, experiment: str) -> list[float]:
    """Return the mean of a study's tasks of GLUE, each of its metrics' mean, of each seed."""
    metrics = defaultdict(list)
    for (name, key), values in scores_by_experiment(study).items():
        if name == experiment and key.startswith("glue_"):
            metrics[key.partition(".")[0]].append(values)
    tasks = [map(fmean, zip(*values, strict=True)) for values in metrics.values()]
    return [fmean(scores) for scores in zip(*tasks, strict=True)]


def shown_scores(study: str, experiment: str) -> list[list[float]]:
    """Return the scores that a table of pre-trainings shows."""
    scores = scores_by_experiment(study)
    return [
        scores[experiment, SST2],
        scores[experiment, QQP],
        glue_average(study, experiment),
        scores[experiment, EN_DE],
    ]


def score_gaps(study: str, first: str, other_study: str, second: str) -> list[WelchDifference]:
    """Return the shown scores of an experiment minus those of another one."""
    pairs = zip(shown_scores(study, first), shown_scores(other_study, second), strict=True)
    return [welch(ours, others) for ours, others in pairs]


def parameters_of(study: str, experiment: str) -> int:
    settings = experiment_settings(study, experiment)
    return parameter_count(settings.model, settings.vocab.embedding_rows)


def student_margin(values: Sequence[float]) -> float:
    """Return half of the 95 % interval of a mean."""
    return stdev(values) / len(values) ** 0.5 * float(stdtrit(len(values) - 1, 0.975))
