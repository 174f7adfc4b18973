"""The tables of scores and losses of docs/desk_study.md, from the committed studies."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from statistics import fmean

from studies import unpacked
from study_results import (
    ADAPTERS,
    ARCHITECTURES,
    EN_DE,
    GLUE,
    MIXING,
    MODELING,
    OBJECTIVES,
    QQP,
    RECIPES,
    REPEATS,
    SCALING,
    SEEDS,
    STUDY,
    difference,
    exceeds,
    experiment_settings,
    held_out,
    last_losses,
    manifest,
    paper,
    parameters_of,
    rows_of,
    rows_of_the_paper,
    score_gaps,
    scores_by_experiment,
    settings_of,
    shown_scores,
    student_margin,
)

from desk_page.text import signed, signed_interval, title_of, with_dash
from t5repro.estimate.power import ColumnPower, column_powers, spreads
from t5repro.report.experiments import group_arms
from t5repro.report.order_statistics import AGREES, CONTRADICTS, WITHIN, WelchDifference
from t5repro.report.ordering import Pair, orderings
from t5repro.report.scaling import Scaling, scalings
from t5repro.report.titles import UNDEFINED, format_mean, metric_title

PRETRAINED = ("baseline", "no_pretraining")
TARGETS = tuple(rows_of_the_paper(OBJECTIVES))
WIDTHS = (32, 128, 512, 2048)  # of adapters
METHODS = rows_of_the_paper(ADAPTERS)
MIXTURE = "mixture_of_denoisers"


def score_table(
    study: str, experiments: Sequence[str], *, examples: bool = False
) -> list[list[str]]:
    rows = []
    for row in rows_of(study):
        if row.arm != experiments[0] or row.value is None:  # an average without some of its tasks
            continue
        key = f"{row.task}.{row.metric}"
        cells = [scores_by_experiment(study)[experiment, key] for experiment in experiments]
        assert {len(cell) for cell in cells} == {len(SEEDS)}
        assert row.baseline is not None
        first = [title_of(row.task), metric_title(row.metric), *[str(row.examples)] * examples]
        means = [format_mean(cell, digits=2) for cell in cells]
        rows.append([*first, f"{row.baseline:.2f}", *means])
    return rows


def averaged(study: str, title: str) -> str:
    """Return what is compared with a column of the paper."""
    titles = [title_of(name) for name in settings_of(study).tasks.names if "glue" in name]
    glue = " and ".join(titles) if len(titles) == 2 else f"the {len(titles)} tasks of GLUE"
    means = {"GLUE": f"mean of {glue}", "mean of the complete columns": "mean of these two"}
    return means.get(title, with_dash(title))


def order_table(study: str, number: int) -> list[list[str]]:
    settings = settings_of(study)
    experiments = group_arms(settings, [entry.name for entry in settings.experiments])
    found = orderings(rows_of(study), experiments, split="validation", seed=settings.seed)
    (table,) = (table for table in found if table.number == number)
    return [
        [
            averaged(study, column.title),
            column.correlation,
            column.interval,
            shown_pairs(column.pairs),
            shown_pairs(pair for pair in column.pairs if pair.counts),
        ]
        for column in table.columns
        if column.interval != UNDEFINED
    ]


def shown_pairs(pairs: Iterable[Pair]) -> str:
    verdicts = Counter(pair.verdict for pair in pairs)
    if not verdicts:
        return UNDEFINED
    found = f"{verdicts[AGREES]} agree, {verdicts[CONTRADICTS]} contradict"
    return f"{verdicts.total()}: {found}, {verdicts[WITHIN]} within"


def method_table() -> list[list[str]]:
    """Return of each method its trained parameters, and the scores here and in the paper."""
    rows = []
    for name, row in METHODS.items():
        trained = manifest(ADAPTERS, "finetune", name)["counters"]["trained_parameters"]
        scores = format_mean(scores_by_experiment(ADAPTERS)[name, EN_DE], digits=2)
        rows.append([f"`{name}`", f"{trained:,}", scores, f"{paper(row, 10, EN_DE):.2f}"])
    return rows


def rows_of_table(study: str, table: int, facts: Callable[[str], list[str]]) -> list[list[str]]:
    """Return of each row of a table facts and scores, and two averages of the paper."""
    rows = []
    for name, row in rows_of_the_paper(study, table).items():
        cells = [format_mean(values, digits=2) for values in shown_scores(study, name)]
        cells += [f"{paper(row, table, column):.2f}" for column in (GLUE, EN_DE)]
        rows.append([f"`{name}`", *facts(name), *cells])
    return rows


def shown_loss(study: str, name: str) -> str:
    return format_mean(held_out(study, name), digits=3)


def architecture_table(study: str) -> list[list[str]]:
    def size_and_loss(name: str) -> list[str]:
        return [f"{parameters_of(study, name):,}", shown_loss(study, name)]

    return rows_of_table(study, 2, size_and_loss)


def modeling_gaps() -> dict[str, list[WelchDifference]]:
    """Return architecture -> scores after language modeling, minus those after denoising."""
    pairs = zip(rows_of_the_paper(ARCHITECTURES), rows_of_the_paper(MODELING), strict=True)
    return {
        denoising: score_gaps(MODELING, modeling, ARCHITECTURES, denoising)
        for denoising, modeling in pairs
    }


def modeling_table() -> list[list[str]]:
    rows = []
    denoising = rows_of_the_paper(ARCHITECTURES)
    in_paper = dict(zip(denoising, rows_of_the_paper(MODELING).values(), strict=True))
    for name, gaps in modeling_gaps().items():
        cells = [signed_interval(gap) for gap in gaps]
        for column in (GLUE, EN_DE):
            gap = paper(in_paper[name], 2, column) - paper(denoising[name], 2, column)
            cells.append(signed(gap, 2))
        rows.append([f"`{name}`", *cells])
    return rows


def unique_tokens(name: str) -> int:
    """Return the tokens of the repeated text; 0 is all."""
    return experiment_settings(REPEATS, name).pretrain.unique_tokens


def repeat_table() -> list[list[str]]:
    def text_and_losses(name: str) -> list[str]:
        tokens = f"{unique_tokens(name):,}" if unique_tokens(name) else "all"
        trained = format_mean(last_losses(REPEATS, "pretrain", name), digits=3)
        return [tokens, trained, shown_loss(REPEATS, name)]

    return rows_of_table(REPEATS, 9, text_and_losses)


def shares(name: str) -> list[float]:
    """Return the percentages of SST-2, QQP, English-German and the text in the examples drawn."""
    counters = manifest(MIXING, "finetune", name)["counters"]
    counts = {**counters["drawn"], "text": counters["corpus"]["rows"]}
    shown = ("glue_sst2", "glue_qqp", "wmt_en_de", "text")
    return [100 * counts[each] / sum(counts.values()) for each in shown]


def mixing_table() -> list[list[str]]:
    def shown_shares(name: str) -> list[str]:
        is_mixture = not experiment_settings(MIXING, name).finetune.groups
        return [f"{share:.1f}" for share in shares(name)] if is_mixture else [UNDEFINED] * 4

    return rows_of_table(MIXING, 11, shown_shares)


def recipe_gaps(name: str) -> list[float]:
    """Return the loss of a recipe minus that of the baseline, of each seed."""
    pairs = zip(held_out(RECIPES, name), held_out(RECIPES, "baseline"), strict=True)
    return [loss - other for loss, other in pairs]


def recipe_table() -> list[list[str]]:
    """Return of each recipe loss and scores, and the loss's difference if the targets are equal."""
    rows = []
    for name in rows_of_the_paper(RECIPES):  # of which it has none
        gaps = recipe_gaps(name) if name != MIXTURE else []
        shown = f"{signed(fmean(gaps), 3)} ± {student_margin(gaps):.3f}" if any(gaps) else ""
        cells = [shown_loss(RECIPES, name), shown]
        cells += [format_mean(values, digits=2) for values in shown_scores(RECIPES, name)]
        rows.append([f"`{name}`", *cells])
    return rows


@cache
def scaling() -> Scaling:
    settings = settings_of(SCALING)
    experiments = group_arms(settings, [entry.name for entry in settings.experiments])
    folder = unpacked(SCALING) / "results" / SCALING / "pretrain"
    paths = {entry.name: folder / entry.name / "history.csv" for entry in settings.experiments}
    (found,) = scalings(settings, experiments, rows_of(SCALING), paths)
    return found


def gains(key: str) -> list[WelchDifference]:
    """Return a score at each amount of compute, minus that without pre-training."""
    return [difference(SCALING, key, name, "no_pretraining") for name in scaling().experiments]


def scaling_table() -> list[list[str]]:
    series = scaling()
    rows = [["held-out loss", "nats a target token", "–", "–", *series.losses, ""]]
    worth = {(with_dash(gain.title), gain.metric): gain.worth_from for gain in series.gains}
    names = ("no_pretraining", *series.experiments)
    for task, metric, *cells in score_table(SCALING, names):
        found = worth.get((task, metric))
        if found is None:  # not the first metric of the task: not in the report
            assert (task, metric) == ("QQP", "accuracy")
            found = series.operations[-1]
            assert [exceeds(gap) for gap in gains(QQP)] == [False] * 4 + [True]
        rows.append([task, metric, *cells, found])
    return rows


@cache
def powers() -> list[ColumnPower]:
    return column_powers(spreads([rows_of(OBJECTIVES), rows_of(STUDY)]), range(1, 13))


def power_table() -> list[list[str]]:
    """Return of each table the pairs of rows that three seeds tell apart, for two columns."""
    columns = {
        (entry.table, entry.column): f"{entry.told_apart(len(SEEDS))} of {len(entry.differences)}"
        for entry in powers()
    }
    numbers = sorted({number for number, _ in columns})
    return [
        [str(number), *(columns.get((number, column), "–") for column in (GLUE, EN_DE))]
        for number in numbers
    ]
