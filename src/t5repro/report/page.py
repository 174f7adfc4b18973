"""The report of a run: an HTML page, the same scores as CSV, and the lineage page.

The page is one file without script or network. Its bytes are a function of scores, histories,
corpus counters and settings; it contains no time and no machine.

It receives the settings of the whole run, because it lists every setting that can affect a score.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.config.experiments import pretraining_flops, settings_of_experiment
from t5repro.config.schema import Settings
from t5repro.config.sections.model import tuned_family
from t5repro.files import write_manifest, write_text
from t5repro.jobs.report import ReportJob
from t5repro.report.answers import answers_page, read_predictions
from t5repro.report.best_checkpoints import checkpoint_tables
from t5repro.report.bootstrap import Resamples, resample
from t5repro.report.comparability import departures, has_corpus_of_run
from t5repro.report.contamination import contamination_page, passage_links, searched_corpora
from t5repro.report.corpus import corpora
from t5repro.report.corpus_page import CorpusFiles, corpus_page_text
from t5repro.report.decisions import all_settings, changed_choices, choices_in_force
from t5repro.report.differences import mean_difference
from t5repro.report.experiments import (
    Experiment,
    difference_title,
    group_arms,
    histories_by_arm,
    histories_of_phase,
    introduction,
    model_size,
)
from t5repro.report.held_out import HeldOutRow, held_out_rows, operations_of_step
from t5repro.report.lineage_page import write_lineage_page
from t5repro.report.links import ResultLinks, link, manifest_of, read_scores, source_files
from t5repro.report.loss_curves import LossCurve, operations_curve, training_curve, validation_curve
from t5repro.report.metrics import metrics_text
from t5repro.report.ordering import orderings
from t5repro.report.paper_tables import paper_tables, table_anchor
from t5repro.report.phases import phase_rows
from t5repro.report.published_scores import TASK_BY_TASK, paper_source
from t5repro.report.published_table import OurScores
from t5repro.report.render_lineage import FILE_PREFIX, anchor
from t5repro.report.rows import ScoreRow, score_rows, with_intervals
from t5repro.report.scaling import scalings
from t5repro.report.score_table import score_groups, tallies
from t5repro.report.scores_csv import csv_text
from t5repro.report.system_tables import system_tables
from t5repro.report.templates import render
from t5repro.report.titles import task_title
from t5repro.tasks.registry import task_named
from t5repro.tasks.task import ScoredRow
from t5repro.vocab.vocabulary import Vocabulary

PHASES = {"pretrain": "Pre-training", "finetune": "Fine-tuning"}
PAPER_MODEL = "its baseline of 220 million parameters, pre-trained on 34 billion tokens of C4"
FIXED_COLUMNS = 5  # of the table of scores: task, metric, trivial baseline, examples, invalid


@dataclass(frozen=True)
class ReportTexts:
    """The pages of a report, its CSV, and its number of rows.

    Attributes:
        html: the report.
        answers: task -> page of its answers.
        contamination: page of the evaluated rows in the corpus; empty if none was searched.
        csv: the scores.
        rows: number of the scores.
    """

    html: str
    answers: Mapping[str, str]
    contamination: str
    csv: str
    rows: int


def report_texts(job: ReportJob) -> ReportTexts:
    """Return what `write_report` writes; the paths of the outputs decide the links between them.

    Raises:
        ArtifactError: an input is missing or malformed.
    """
    run, html, trace = job.settings.settings, job.html, job.trace
    histories = histories_of(job)
    # Sorted, so that the order of the arguments does not change a byte of the page.
    predictions = {arm: sorted(paths) for arm, paths in job.predictions.items()}
    answers = dict(sorted(job.answers.items()))
    experiments = group_arms(run, list(job.scores))
    contents = {arm: read_scores(path, run.tasks.names) for arm, path in job.scores.items()}
    rows = score_rows(
        experiments,
        contents,
        split=run.evaluate.split,
        switches={
            experiment.name: changed_choices(settings_of_experiment(run, experiment.name))
            for experiment in experiments
        },
    )
    answered = read_predictions(predictions)
    tasks = {name: task_named(name, run.tasks) for name in answered}
    resamples = resample(tasks, answered, seed=run.seed)
    # Without predictions there are no resamples, and the intervals stay empty.
    rows = with_intervals(rows, experiments, resamples)
    # Links are relative to the page's folder, so the folder of results can be moved or published.
    links = ResultLinks(
        job.scores, contents, rows, folder=html.parent, lineage_page=trace, answers=answers
    )
    # Arms with equal manifests share an entry.
    read_corpora = corpora(job.corpus)
    # An experiment that changes the corpus does not make the whole run depart from the paper.
    run_corpora = {arm: path for arm, path in job.corpus.items() if has_corpus_of_run(run, arm)}
    departing = departures(run, [entry.pages for entry in corpora(run_corpora)])
    pretraining = {arm: paths["pretrain"] for arm, paths in histories.items()}
    searched = searched_corpora(job.contamination, tasks, answered)
    held_out = held_out_rows(run, experiments, pretraining, job.corpus, job.tokens)
    view = {
        **_scores_view(run, contents, rows, experiments, links, resamples, departing, held_out),
        **_settings_view(run, experiments),
        "curves": _curves(run, experiments, histories),
        "phases": phase_rows(run, experiments),
        "scalings": scalings(run, experiments, rows, pretraining),
        "held_out": held_out,
        "accuracies": list(dict.fromkeys(kind for row in held_out for kind in row.accuracies)),
        "corpora": read_corpora,
        "searched": searched,
        "contamination_page": _link(job.contamination_page, html),
        "sources": source_files(job.scores, histories, job.corpus, predictions, html.parent),
        "answers": {task_title(task): link(page, html.parent) for task, page in answers.items()},
        "csv_name": job.csv.name,
        "lineage_name": trace.name if trace else "",
        "corpus_page": _link(job.corpus_page, html),
        "paper_source": paper_source(),
    }
    # An experiment may be scored on another split than the run.
    splits = {settings_of_experiment(run, entry.name).evaluate.split: None for entry in experiments}
    pages = {
        task: answers_page(
            tasks[task],
            answered[task],
            experiments,
            run=run.run.name,
            split=" and ".join(splits),
            report=link(html, page.parent),
            task_links={name: link(task_page, page.parent) for name, task_page in answers.items()},
            lineage=_prediction_links(predictions, task, page.parent, trace),
            unwritable=_unwritable(run, experiments, job.vocabularies, answered[task]),
            in_corpus=passage_links(searched, task, _link(job.contamination_page, page)),
        )
        for task, page in answers.items()
    }
    return ReportTexts(
        html=report_page(view),
        answers=pages,
        contamination=contamination_page(
            searched, run=run.run.name, report=html.name, lineage=trace.name if trace else ""
        ),
        csv=csv_text(rows),
        rows=len(rows),
    )


def _link(page: Path | None, html: Path) -> str:
    """Return the link of the report to a page, empty without one."""
    return link(page, html.parent) if page else ""


def _unwritable(
    run: Settings,
    experiments: Sequence[Experiment],
    vocabularies: Mapping[str, Path],
    rows: Mapping[str, Sequence[ScoredRow]],
) -> dict[str, str]:
    """Return experiment -> which targets of a task its vocabulary cannot spell, if there are any.

    Networks of labels write no text.
    """
    unwritable = {}
    for experiment in experiments:
        arm = experiment.arms[0]
        settings = settings_of_experiment(run, experiment.name)
        if (
            arm in rows
            and arm in vocabularies
            and tuned_family(settings.model, settings.finetune).writes_text
        ):
            vocabulary = Vocabulary.load(vocabularies[arm])
            unwritable[experiment.name] = vocabulary.unwritable_targets(
                [str(row["targets"]) for row in rows[arm]]
            )
    return {name: targets for name, targets in unwritable.items() if targets}


def histories_of(job: ReportJob) -> dict[str, dict[str, Path]]:
    """Return arm -> phase -> history (`histories_by_arm`)."""
    run = job.settings.settings
    return histories_by_arm(run, job.pretrain_history, job.finetune_history)


def write_report(job: ReportJob) -> None:
    """Write the pages of the report, the CSV, the metrics and the manifest.

    Raises:
        ArtifactError: an input is missing or malformed.
        LineageError: no manifest names the scores or a history.
    """
    texts = report_texts(job)
    write_text(job.csv, texts.csv)
    write_text(job.html, texts.html)
    for task, page in job.answers.items():
        write_text(page, texts.answers[task])
    if job.contamination_page:
        write_text(job.contamination_page, texts.contamination)
    files = CorpusFiles(job.corpus, job.pages, job.vocabularies)
    if job.corpus_page:
        text = corpus_page_text(
            job.settings.settings, files, page=job.corpus_page, report=job.html, trace=job.trace
        )
        write_text(job.corpus_page, text)
    histories = histories_of(job)
    for arm, path in job.metrics.items():
        write_text(path, metrics_text(job.scores[arm], histories[arm]))
    write_manifest(
        job.manifest,
        rule="report",
        settings=job.settings.model_dump(mode="json"),
        inputs=_write_lineage(job, files),
        outputs=[
            *filter(None, (job.html, job.csv, job.trace, job.corpus_page, job.contamination_page)),
            *job.answers.values(),
            *job.metrics.values(),
        ],
        counters={"rows": texts.rows},
    )


def _write_lineage(job: ReportJob, files: CorpusFiles) -> list[Path]:
    """Write the lineage page, if the job has one; return all inputs of the report."""
    histories = (path for paths in histories_of(job).values() for path in paths.values())
    traced = [*job.scores.values(), *histories]
    run = job.settings.settings.run.name
    linked_pages = {"run report": job.html, "corpus and vocabulary": job.corpus_page}
    links = {words: link(page, job.html.parent) for words, page in linked_pages.items() if page}
    # The lineage page shows the jobs behind these files, so their manifests are inputs as well.
    manifests = write_lineage_page(job.trace, run, traced, links=links) if job.trace else []
    answered = [path for paths in job.predictions.values() for path in paths]
    # Manifests of the corpus are read for their counts; the lineage page starts from the scores.
    counted = [*job.corpus.values(), *job.tokens.values(), *job.contamination.values()]
    inputs = [*traced, *map(manifest_of, job.scores.values()), *counted, *answered, *manifests]
    # Accuracies on held-out text are counters.
    inputs += map(manifest_of, job.pretrain_history.values())
    # Corpus files are large: they are inputs only if a page shows them.
    inputs += files.read() if job.corpus_page else []
    return list(dict.fromkeys(inputs))  # arms can share a corpus or a history


def _prediction_links(
    predictions: Mapping[str, Sequence[Path]], task: str, folder: Path, trace: Path | None
) -> dict[str, str]:
    """Return arm -> link to the predictions of a task on the lineage page."""
    if trace is None:
        return {}
    lineage = link(trace, folder)
    return {
        arm: f"{lineage}#{anchor(path.as_posix(), FILE_PREFIX)}"
        for arm, paths in predictions.items()
        for path in paths
        if path.stem == task
    }


def _scores_view(
    settings: Settings,
    contents: Mapping[str, Any],
    rows: Sequence[ScoreRow],
    experiments: Sequence[Experiment],
    links: ResultLinks,
    resamples: Resamples,
    departing: Sequence[str],
    held_out: Sequence[HeldOutRow],
) -> dict[str, Any]:
    """Return the template's variables for the header and the tables of scores."""
    groups = score_groups(rows, contents, experiments, links, resamples)
    difference = difference_title(settings, experiments)
    first_two = [experiment.name for experiment in experiments[:2]]
    limit = settings.evaluate.max_examples
    split = settings.evaluate.split
    our_scores = OurScores.of(rows, contents, links, is_comparable=not departing)
    scored_names = {row.experiment for row in rows}
    tables = paper_tables(scored_names, experiments, our_scores, split=split)
    # The paper's scores get columns of their own only if its table by task is not shown below.
    has_paper_columns = table_anchor(TASK_BY_TASK) not in {
        table.anchor for table in tables
    } and any(line.paper for _, lines in groups for line in lines)
    tasks = {task for content in contents.values() for task in content["tasks"]}
    return {
        "run": settings.run.name,
        "introduction": introduction(settings, len(experiments), len(tasks)),
        "experiments": experiments,
        "has_intervals": bool(resamples.scores),
        "has_seeds": any(experiment.has_seeds for experiment in experiments),
        "tallies": tallies(rows, experiments),
        "effect": mean_difference(rows, *first_two) if len(first_two) > 1 else None,
        "difference_title": difference,
        "groups": groups,
        "checkpoint_tables": checkpoint_tables(contents),
        "has_paper_columns": has_paper_columns,
        "columns": FIXED_COLUMNS + 2 * has_paper_columns + len(experiments) + bool(difference),
        "reasons": [line.reason for _, lines in groups for line in lines if line.reason],
        "titles_below_zero": [
            line.title
            for _, lines in groups
            for line in lines
            if any(marker.is_below for marker in line.markers)
        ],
        "paper_tables": tables,
        "system_tables": system_tables(experiments, our_scores, held_out, split=split),
        "orderings": orderings(rows, experiments, split=split, seed=settings.seed),
        "split": split,
        "limit": f" (first {limit:,} examples)" if limit else "",
        "paper_model": PAPER_MODEL,
        "our_model": model_size(settings),
        "departures": "; ".join(departing),
    }


def _curves(
    settings: Settings,
    experiments: Sequence[Experiment],
    histories: Mapping[str, Mapping[str, Path]],
) -> list[LossCurve]:
    """Return the losses of each phase, and those on held-out text."""
    resolved = [settings_of_experiment(settings, experiment.name) for experiment in experiments]
    # Losses under different objectives or masks do not compare: the note under the chart says so.
    objectives = [f"{arm.pretrain.objective} {arm.pretrain.noise_mask}" for arm in resolved]
    normalisers = {
        "pretrain": [arm.pretrain.loss_normaliser for arm in resolved],
        "finetune": [arm.finetune.loss_normaliser for arm in resolved],
    }
    by_phase = {phase: histories_of_phase(histories, phase) for phase in PHASES}
    held_out = (
        validation_curve(experiments, by_phase["pretrain"], objectives=objectives),
        operations_curve(
            experiments,
            by_phase["pretrain"],
            objectives=objectives,
            operations=[operations_of_step(arm) for arm in resolved],
            earlier_operations=[
                pretraining_flops(settings, source) if source else 0
                for source in (arm.pretrain.from_experiment for arm in resolved)
            ],
        ),
    )
    curves = {
        phase: training_curve(
            phase,
            title,
            experiments,
            by_phase[phase],
            normalisers=normalisers[phase],
            objectives=objectives if phase == "pretrain" else (),
        )
        for phase, title in PHASES.items()
    }
    # In the order of a run: pre-training, its held-out losses, fine-tuning.
    return [curves["pretrain"], *(curve for curve in held_out if curve), curves["finetune"]]


def _settings_view(settings: Settings, experiments: Sequence[Experiment]) -> dict[str, Any]:
    """Return the template's variables for settings, raw inputs and choices."""
    listing = all_settings(settings, experiments)
    return {
        "settings": listing,
        "differing": [setting for setting in listing if setting.differs],
        "choices": choices_in_force(listing),
        "raw": [source.model_dump(mode="json") for source in settings.data.sources],
    }


def report_page(view: Mapping[str, Any]) -> str:
    """Return the page."""
    return render("report.html.j2", style_attributes=True, **view)
