"""The files behind a score, and relative links from the page to them."""

import os.path
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from t5repro.artifacts import MANIFEST, STEP_PREFIX
from t5repro.errors import ArtifactError
from t5repro.files import read_json, sha256_of
from t5repro.lineage.graph import job_name
from t5repro.report.experiments import Experiment
from t5repro.report.render_lineage import anchor
from t5repro.report.rows import BEST, ScoreRow
from t5repro.report.titles import format_score

DIGEST_CHARS = 12


@dataclass(frozen=True)
class SourceFile:
    """A file that the page was made from."""

    experiment: str
    content: str
    path: str
    digest: str
    href: str


def source_files(
    scores: Mapping[str, Path],
    histories: Mapping[str, Mapping[str, Path]],
    corpus: Mapping[str, Path],
    predictions: Mapping[str, Sequence[Path]],
    folder: Path,
) -> list[SourceFile]:
    """Return every input of the page with the first digits of its SHA-256.

    Args:
        scores: arm -> ``scores.json``.
        histories: arm -> phase -> ``history.csv``.
        corpus: arm -> manifest of its corpus.
        predictions: arm -> its predictions.
        folder: folder of the page.
    """
    files = [
        *((arm, "scores", path) for arm, path in scores.items()),
        *((arm, "manifest of the scores", manifest_of(path)) for arm, path in scores.items()),
        *(
            (arm, f"history of {phase}", path)
            for arm, phases in histories.items()
            for phase, path in phases.items()
        ),
        *(
            (arm, "manifest of pretrain", manifest_of(phases["pretrain"]))
            for arm, phases in histories.items()
        ),
        *((arm, "manifest of the corpus", path) for arm, path in corpus.items()),
        *((arm, "predictions", path) for arm, paths in predictions.items() for path in paths),
    ]
    return [
        SourceFile(
            experiment=arm,
            content=content,
            path=path.as_posix(),
            digest=sha256_of(path)[:DIGEST_CHARS],
            href=link(path, folder),
        )
        for arm, content, path in files
    ]


def read_scores(path: Path, order: Sequence[str]) -> dict[str, Any]:
    """Read a ``scores.json``, its tasks in the given order, then all others by name.

    Raises:
        ArtifactError: the file is missing or lacks a section.
    """
    content = read_json(path)
    missing = [key for key in ("tasks", "averages", "beats_baseline") if key not in content]
    if missing:
        raise ArtifactError(f"{path} lacks {missing}; rerun the stage evaluate_score")
    tasks = content["tasks"]
    names = [*(name for name in order if name in tasks), *sorted(set(tasks) - set(order))]
    return {**content, "tasks": {name: tasks[name] for name in names}}


@dataclass(frozen=True)
class RunLinks:
    """One run behind a number: its seed, its own value, and links to its files.

    Attributes:
        label: the seed.
        text: value of the run.
        scores: link to ``scores.json``.
        predictions: link to the predictions of the task; empty for a benchmark's average.
        lineage: link to the job of the scores on the lineage page; empty without that page.
    """

    label: str
    text: str
    scores: str
    predictions: str
    lineage: str


class ResultLinks:
    """Links from the page to the files of every score of every arm.

    Args:
        scores: arm -> ``scores.json``; its manifest names the predictions.
        contents: arm -> content of that file.
        rows: scores of all arms.
        folder: folder of the page, to which links are relative.
        lineage_page: the lineage page; None for no links to it.
        answers: task -> its answers page.

    Raises:
        ArtifactError: a manifest is missing, or the file is not a manifest.
    """

    def __init__(
        self,
        scores: Mapping[str, Path],
        contents: Mapping[str, Mapping[str, Any]],
        rows: Sequence[ScoreRow],
        *,
        folder: Path,
        lineage_page: Path | None = None,
        answers: Mapping[str, Path] | None = None,
    ) -> None:
        self._answers = {task: link(path, folder) for task, path in (answers or {}).items()}
        self._lineage = {
            arm: f"{link(lineage_page, folder)}#{anchor(job_name(manifest_of(path).as_posix()))}"
            for arm, path in scores.items()
            if lineage_page
        }
        self._scores = {arm: link(path, folder) for arm, path in scores.items()}
        # (arm, task) -> link; a manifest lists the predictions of the last step next to those of
        # every kept checkpoint, in folders ``step-<n>``.
        self._predictions: dict[tuple[str, str], str] = {}
        for arm, path in scores.items():
            steps = best_steps(contents[arm])
            for name in map(PurePosixPath, prediction_files(path)):
                href = link(Path(name), folder)
                if not name.parent.name.startswith(STEP_PREFIX):
                    self._predictions[arm, name.stem] = href
                    # The best checkpoint may be the last one, whose predictions have no folder.
                    self._predictions.setdefault((f"{arm}{BEST}", name.stem), href)
                elif name.parent.name == f"{STEP_PREFIX}{steps.get(name.stem)}":
                    self._predictions[f"{arm}{BEST}", name.stem] = href
        self._rows = {(row.arm, row.task, row.metric): row for row in rows if row.arm}

    def answers_to(self, task: str) -> str:
        """Return the link to the answers page of a task; empty if it has none."""
        return self._answers.get(task, "")

    def runs_of(self, experiment: Experiment, task: str, metric: str) -> tuple[RunLinks, ...]:
        """Return the runs of an experiment that have a score."""
        rows = [self._rows.get((arm, task, metric)) for arm in experiment.arms]
        return tuple(
            RunLinks(
                label=f"seed {row.seed}",
                text=format_score(row.value),
                scores=self._scores[row.arm.removesuffix(BEST)],
                predictions=self._predictions.get((row.arm, task), ""),
                lineage=self._lineage.get(row.arm.removesuffix(BEST), ""),
            )
            for row in rows
            if row is not None
        )


def best_steps(content: Mapping[str, Any]) -> dict[str, int]:
    """Return task -> step of its best kept checkpoint; empty if none were evaluated."""
    checkpoints = content.get("checkpoints") or {"best": {}}
    return {
        task: group["step"] for group in checkpoints["best"].values() for task in group["metrics"]
    }


def manifest_of(result: Path) -> Path:
    """Return the manifest of the job that wrote a file, such as a ``scores.json``."""
    return result.with_name(MANIFEST)


def prediction_files(scores: Path) -> list[str]:
    """Return the files with predictions behind a ``scores.json``.

    Raises:
        ArtifactError: its manifest is missing, or the file is not a manifest.
    """
    manifest = manifest_of(scores)
    content = read_json(manifest)
    inputs = content.get("inputs") if isinstance(content, dict) else None
    if not isinstance(inputs, list):
        raise ArtifactError(f"{manifest} lists no inputs; rerun the stage evaluate_score")
    return [entry["path"] for entry in inputs if "/evaluate_predict/" in f"/{entry['path']}"]


def link(target: Path, folder: Path) -> str:
    """Return a relative link from a folder to a file, quoted for an attribute."""
    return urllib.parse.quote(Path(os.path.relpath(target, folder)).as_posix())
