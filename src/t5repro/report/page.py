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

from t5repro.config.load import settings_of_experiment
from t5repro.config.schema import ReportStage, Settings
from t5repro.errors import ArtifactError
from t5repro.files import write_manifest, write_text
from t5repro.report import decisions, score_table
from t5repro.report import experiments as experiment_groups
from t5repro.report.best_checkpoints import best_tables
from t5repro.report.corpus import corpora
from t5repro.report.lineage_page import write_lineage_page
from t5repro.report.links import Files, manifest_of, read_scores, sources
from t5repro.report.loss_curves import Curve, curve
from t5repro.report.paper_tables import paper_tables
from t5repro.report.published_scores import TASK_BY_TASK, paper_source
from t5repro.report.rows import ScoreRow, csv_text, plain_table, read_csv, score_rows, switch_lines

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
    trace: Path | None = None,
) -> None:
    """Write the page, the CSV and the page of the way back to the raw files.

    Args:
        settings: all settings of the run.
        scores: arm -> ``scores.json``, a manifest beside each; their order is the page's.
        histories: arm -> phase (``pretrain``, ``finetune``) -> ``history.csv``.
        corpus: arm -> manifest of its corpus.
        html: the page.
        csv: the scores as a table, in full precision.
        manifest: manifest to write.
        trace: the page on which every score is followed back; None to leave it out.

    Raises:
        ArtifactError: a file is missing or is not what its stage writes.
        LineageError: no manifest names the scores or a history.
    """
    listed = experiment_groups.groups(settings.settings, list(scores))
    content = {
        name: read_scores(path, settings.settings.tasks.names) for name, path in scores.items()
    }
    rows = score_rows(
        listed,
        content,
        split=settings.settings.evaluate.split,
        switches={
            group.name: decisions.switched(settings_of_experiment(settings.settings, group.name))
            for group in listed
        },
    )
    write_text(csv, csv_text(rows))
    files = Files(scores, content, rows, page=html.parent, trace=trace)
    view = {
        **_scores_view(settings.settings, content, rows, listed, files),
        **_settings_view(settings.settings, listed),
        "curves": _curves(settings.settings, listed, histories),
        "corpora": corpora(corpus),
        "sources": sources(scores, histories, corpus, html.parent),
        "csv_name": csv.name,
        "trace_name": trace.name if trace else "",
        "paper_source": paper_source(),
    }
    write_text(html, render(view))
    behind = [*scores.values(), *(path for paths in histories.values() for path in paths.values())]
    read = write_lineage_page(trace, settings.settings.run.name, behind) if trace else []
    write_manifest(
        manifest,
        rule="report",
        settings=settings.model_dump(mode="json"),
        inputs=[
            *dict.fromkeys([*behind, *map(manifest_of, scores.values()), *corpus.values(), *read])
        ],
        outputs=[html, csv, *([trace] if trace else [])],
        counters={"rows": len(rows)},
    )


def _scores_view(
    settings: Settings,
    content: Mapping[str, Any],
    rows: Sequence[ScoreRow],
    listed: Sequence[experiment_groups.Group],
    files: Files,
) -> dict[str, Any]:
    """Return what the head of the page and its tables of scores show."""
    lines = score_table.score_groups(rows, content, listed, files)
    difference_title = experiment_groups.difference_title(settings, listed)
    limit = settings.evaluate.max_examples
    split = settings.evaluate.split
    tables = paper_tables(rows, content, listed, files, split=split)
    orientation = TASK_BY_TASK not in {table.number for table in tables}
    tasks = {task for item in content.values() for task in item["tasks"]}
    return {
        "run": settings.run.name,
        "lede": experiment_groups.lede(settings, len(listed), len(tasks)),
        "arms": listed,
        "several": any(group.several for group in listed),
        "tallies": score_table.tallies(rows, listed),
        "effect": score_table.effect(rows, listed),
        "difference_title": difference_title,
        "groups": lines,
        "best": best_tables(content),
        "orientation": orientation,
        "columns": 5 + 2 * orientation + len(listed) + bool(difference_title),
        "reasons": [line.reason for _, found in lines for line in found if line.reason],
        "paper_tables": tables,
        "split": split,
        "limited": f" (its first {limit:,} examples)" if limit else "",
        "paper_model": PAPER_MODEL,
        "our_model": experiment_groups.model_words(settings),
    }


def _curves(
    settings: Settings,
    listed: Sequence[experiment_groups.Group],
    histories: Mapping[str, Mapping[str, Path]],
) -> list[Curve]:
    """Return the losses of each phase, all experiments in one drawing."""
    own = [settings_of_experiment(settings, group.name) for group in listed]
    kinds = [f"{item.pretrain.objective} {item.pretrain.noise_mask}" for item in own]
    divisors = {
        "pretrain": [item.pretrain.loss_normaliser for item in own],
        "finetune": [item.finetune.loss_normaliser for item in own],
    }
    return [
        curve(
            phase,
            title,
            listed,
            {name: paths[phase] for name, paths in histories.items()},
            divisors=divisors[phase],
            kinds=kinds if phase == "pretrain" else (),
        )
        for phase, title in PHASES.items()
    ]


def _settings_view(settings: Settings, listed: Sequence[experiment_groups.Group]) -> dict[str, Any]:
    """Return what the parts on settings, raw inputs and choices show."""
    every = decisions.all_settings(settings, listed)
    return {
        "settings": every,
        "differing": [item for item in every if item.differs],
        "choices": decisions.in_force(every),
        "raw": [source.model_dump(mode="json") for source in settings.data.sources],
    }


def render(view: Mapping[str, Any]) -> str:
    """Return the page; everything but our own style sheet and drawings is escaped."""
    folder = importlib.resources.files("t5repro.report")
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
        rows = read_csv(table)
        sys.stdout.write(plain_table(rows))
        sys.stdout.write("\n" + "".join(f"{line}\n" for line in switch_lines(rows)))
        sys.stdout.write(f"report: {table.with_name('report.html').as_posix()}\n")
