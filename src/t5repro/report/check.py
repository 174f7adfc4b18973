"""Checks that reports show the numbers of their scores: they are written again, and compared.

Hashes cannot tell this: whoever forges scores, manifests, records and lock together leaves no
contradiction between hashes, but the report shows other numbers, unless it was forged as well.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from t5repro.artifacts import (
    ANSWERS,
    CONTAMINATION_PAGE,
    CORPUS_PAGE,
    HISTORY,
    LINEAGE_PAGE,
    MANIFEST,
    METRICS,
    REPORT,
    SCORE_TABLE,
    SCORES,
    VOCABULARY,
)
from t5repro.config.schema import ReportStage
from t5repro.errors import T5ReproError
from t5repro.jobs.report import ReportJob
from t5repro.lineage.findings import CONTRADICTED, Finding
from t5repro.lineage.graph import Graph, Job
from t5repro.plan.run_plan import RunPlan
from t5repro.report.metrics import metrics_text
from t5repro.report.page import histories_of, report_texts

MAX_LINE_CHARS = 100


def check_reports(root: Path, graph: Graph) -> Iterator[Finding]:
    """Report pages and tables that differ from the scores, histories and corpora.

    Args:
        root: the checkout; its files agree with their manifests.
        graph: its jobs.
    """
    for job in graph.jobs.values():
        if job.rule == "report":
            with contextlib.chdir(root):  # its links are relative to the checkout
                yield from _check(job)


def _check(job: Job) -> Iterator[Finding]:
    folder = Path(job.manifest).parent
    try:
        settings = ReportStage.model_validate(job.settings)
        expected = _written_again(settings, folder, {output.path for output in job.outputs})
    except (ValidationError, T5ReproError) as error:
        message = f"its report cannot be written again: {str(error).splitlines()[0]}"
        yield Finding(CONTRADICTED, job.manifest, job.name, message)
        return
    for name, text in expected.items():
        path = folder / name
        if path.is_file() and (actual := path.read_text(encoding="utf-8")) != text:
            message = f"{_first_difference(actual, text)}; rerun report, or the scores were altered"
            yield Finding(CONTRADICTED, path.as_posix(), job.name, message)


def _written_again(settings: ReportStage, folder: Path, outputs: set[str]) -> dict[str, str]:
    """Return file -> its text, from the inputs as they are now."""
    plan = RunPlan(settings.settings)
    pretrain, finetune = (plan.by_experiment(rule, HISTORY) for rule in ("pretrain", "finetune"))
    scores = plan.by_experiment("evaluate_score", SCORES)
    trace = folder / LINEAGE_PAGE
    corpus_page, contamination_page = folder / CORPUS_PAGE, folder / CONTAMINATION_PAGE
    is_searched = contamination_page.as_posix() in outputs
    answers = {
        path.stem: path for path in map(Path, sorted(outputs)) if path.parent == folder / ANSWERS
    }
    job = ReportJob(
        settings,
        scores=scores,
        pretrain_history=pretrain,
        finetune_history=finetune,
        corpus=plan.corpora("c4"),
        tokens=plan.corpora("tokens"),
        contamination=plan.contamination() if is_searched else {},
        predictions={arm: plan.predictions_of(arm) for arm in scores} if answers else {},
        html=folder / REPORT,
        csv=folder / SCORE_TABLE,
        trace=trace if trace.as_posix() in outputs else None,
        corpus_page=corpus_page if corpus_page.as_posix() in outputs else None,
        contamination_page=contamination_page if is_searched else None,
        vocabularies=plan.by_experiment("vocab", VOCABULARY) if answers else {},
        answers=answers,
        manifest=folder / MANIFEST,
    )
    texts, histories = report_texts(job), histories_of(job)
    metrics = {
        f"{arm}{METRICS}": metrics_text(scores[arm], histories[arm])
        for arm in scores
        if (folder / f"{arm}{METRICS}").as_posix() in outputs
    }
    pages = {f"{ANSWERS}/{task}.html": text for task, text in texts.answers.items()}
    if is_searched:
        pages[CONTAMINATION_PAGE] = texts.contamination
    return {SCORE_TABLE: texts.csv, REPORT: texts.html, **pages, **metrics}


def _first_difference(actual: str, expected: str) -> str:
    """Return the first line that differs, for an error message."""
    lines = zip(actual.splitlines(), expected.splitlines(), strict=False)
    for number, (line, right) in enumerate(lines, start=1):
        if line != right:
            position = next(
                (i for i, (a, b) in enumerate(zip(line, right, strict=False)) if a != b), 0
            )
            # Lines with a chart are long: show the neighbourhood of the difference.
            first = max(0, position - MAX_LINE_CHARS // 2)
            shown, due = line[first:][:MAX_LINE_CHARS], right[first:][:MAX_LINE_CHARS]
            return f"line {number} has {shown!r}, the scores give {due!r}"
    return "it has other lines than the scores give"
