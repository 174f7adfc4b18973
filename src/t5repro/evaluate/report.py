"""One page with all results of a run, the same as CSV, and a table for the terminal.

The page is one HTML file without script, network or time of day: its bytes are a function of the
scores, histories, corpus counts and settings that it shows.
"""

import importlib.resources
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from t5repro.config.schema import Settings
from t5repro.config.stages import ReportStage
from t5repro.errors import ArtifactError
from t5repro.evaluate import sections
from t5repro.evaluate.best_view import best_tables
from t5repro.evaluate.corpus import corpora
from t5repro.evaluate.published import paper_source
from t5repro.evaluate.table import csv_text, plain_table, read_csv, score_rows
from t5repro.files import write_manifest, write_text

PHASES = {"pretrain": "Pre-training", "finetune": "Fine-tuning"}
PAPER_MODEL = "its baseline of 220 million parameters, pre-trained on 34 billion tokens of C4"


def write_report(
    settings: ReportStage,
    *,
    scores: Mapping[str, Path],
    histories: Mapping[str, Mapping[str, Path]],
    corpus: Mapping[str, Path],
    html: Path,
    csv: Path,
    manifest: Path,
) -> None:
    """Write the page and the CSV.

    Args:
        settings: all settings of the run.
        scores: experiment -> ``scores.json``; their order is the page's.
        histories: experiment -> phase (``pretrain``, ``finetune``) -> ``history.csv``.
        corpus: experiment -> manifest of its corpus.
        html: the page.
        csv: the scores as a table, in full precision.
        manifest: manifest to write.

    Raises:
        ArtifactError: a file is missing or is not what its stage writes.
    """
    order = settings.settings.tasks.names
    content = {name: sections.read_scores(path, order) for name, path in scores.items()}
    rows = score_rows(content)
    write_text(csv, csv_text(rows))
    view = {
        **_scores_view(settings.settings, content, rows),
        **_settings_view(settings.settings, list(scores)),
        "curves": [
            sections.curve(phase, title, {name: paths[phase] for name, paths in histories.items()})
            for phase, title in PHASES.items()
        ],
        "corpora": corpora(corpus),
        "sources": sections.sources(scores, histories, corpus),
        "csv_name": csv.name,
        "paper_source": paper_source(),
    }
    write_text(html, render(view))
    write_manifest(
        manifest,
        rule="report",
        settings=settings.model_dump(mode="json"),
        inputs=[
            *scores.values(),
            *(path for paths in histories.values() for path in paths.values()),
            *corpus.values(),
        ],
        outputs=[html, csv],
        counters={"rows": len(rows)},
    )


def _scores_view(
    settings: Settings, content: Mapping[str, Any], rows: Sequence[Any]
) -> dict[str, Any]:
    """Return what the head of the page and its table of scores show."""
    names = list(content)
    groups = sections.score_groups(rows, content)
    difference_title = sections.difference_title(settings, names)
    limit = settings.evaluate.max_examples
    return {
        "run": settings.run.name,
        "lede": sections.lede(settings, content),
        "arms": sections.arms(settings, names),
        "tallies": sections.tallies(content),
        "effect": sections.effect(content),
        "difference_title": difference_title,
        "groups": groups,
        "best": best_tables(content),
        "columns": 7 + len(names) + bool(difference_title),
        "reasons": [line.reason for _, lines in groups for line in lines if line.reason],
        "split": settings.evaluate.split,
        "limited": f" (its first {limit:,} examples)" if limit else "",
        "paper_model": PAPER_MODEL,
        "our_model": sections.model_words(settings),
    }


def _settings_view(settings: Settings, names: Sequence[str]) -> dict[str, Any]:
    """Return what the parts on settings, raw inputs and choices show."""
    listed = sections.all_settings(settings, names)
    return {
        "settings": listed,
        "differing": [item for item in listed if item.differs],
        "switches": sections.switches(listed),
        "raw": [source.model_dump(mode="json") for source in settings.data.sources],
    }


def render(view: Mapping[str, Any]) -> str:
    """Return the page; everything but our own style sheet and drawings is escaped."""
    folder = importlib.resources.files("t5repro.evaluate")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(
        folder.joinpath("report.html.j2").read_text(encoding="utf-8")
    )
    css = Markup(folder.joinpath("report.css").read_text(encoding="utf-8"))  # noqa: S704
    return template.render(css=css, **view)


def print_table(run: Path) -> None:
    """Print the scores of a run and where its report lies.

    Args:
        run: folder of the run, such as ``results/demo``.

    Raises:
        ArtifactError: the run has no report yet.
    """
    tables = sorted((run / "report").rglob("scores.csv"))
    if not tables:
        raise ArtifactError(f"{run / 'report'} holds no scores.csv; run the stage report first")
    for table in tables:
        sys.stdout.write(plain_table(read_csv(table)))
        sys.stdout.write(f"\nreport: {table.with_name('report.html').as_posix()}\n")
