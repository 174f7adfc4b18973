"""Which files are behind a number, and the way to them from the page."""

import os.path
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from t5repro.errors import ArtifactError
from t5repro.files import read_json, sha256_of
from t5repro.lineage.graph import job_name
from t5repro.report.experiments import Group
from t5repro.report.render import anchor
from t5repro.report.rows import BEST, ScoreRow, shown

DIGEST_CHARS = 12
STEP = "step-"  # folders of answers of kept checkpoints


@dataclass(frozen=True)
class Source:
    """A file that the page was made from."""

    experiment: str
    what: str
    path: str
    digest: str
    href: str


def sources(
    scores: Mapping[str, Path],
    histories: Mapping[str, Mapping[str, Path]],
    corpus: Mapping[str, Path],
    page: Path,
) -> list[Source]:
    """Return every input of the page with the head of its SHA-256."""
    listed = [
        *((name, "scores", path) for name, path in scores.items()),
        *((name, "manifest of the scores", manifest_of(path)) for name, path in scores.items()),
        *(
            (name, f"history of {phase}", path)
            for name, phases in histories.items()
            for phase, path in phases.items()
        ),
        *((name, "manifest of the corpus", path) for name, path in corpus.items()),
    ]
    return [
        Source(
            experiment=name,
            what=what,
            path=path.as_posix(),
            digest=sha256_of(path)[:DIGEST_CHARS],
            href=link(path, page),
        )
        for name, what, path in listed
    ]


def read_scores(path: Path, order: Sequence[str]) -> dict[str, Any]:
    """Read a ``scores.json``, its tasks in the given order, others after them.

    Raises:
        ArtifactError: it is missing or lacks a part.
    """
    content = read_json(path)
    absent = [key for key in ("tasks", "averages", "beats_baseline") if key not in content]
    if absent:
        raise ArtifactError(f"{path} lacks {absent}; rerun the stage evaluate_score")
    tasks = content["tasks"]
    names = [*(name for name in order if name in tasks), *sorted(set(tasks) - set(order))]
    return {**content, "tasks": {name: tasks[name] for name in names}}


@dataclass(frozen=True)
class Behind:
    """One run behind a number: its seed and own value, and links to its files.

    Attributes:
        label: which seed.
        text: its value.
        scores: link to ``scores.json``.
        predictions: link to the answers of the task; empty for a benchmark's mean.
        way_back: link to where the scores are followed back; empty without that page.
    """

    label: str
    text: str
    scores: str
    predictions: str
    way_back: str


class Files:
    """The way from the page to the files behind every number of every arm.

    Args:
        scores: arm -> ``scores.json``; the manifest beside it names the predictions.
        contents: arm -> what that file holds.
        rows: numbers of all arms.
        page: folder of the page, from which links start.
        trace: page on which the scores are followed back, if there is one.

    Raises:
        ArtifactError: a manifest is missing or is none.
    """

    def __init__(
        self,
        scores: Mapping[str, Path],
        contents: Mapping[str, Mapping[str, Any]],
        rows: Sequence[ScoreRow],
        *,
        page: Path,
        trace: Path | None = None,
    ) -> None:
        self._way_back = {
            arm: f"{link(trace, page)}#{anchor(job_name(manifest_of(path).as_posix()))}"
            for arm, path in scores.items()
            if trace
        }
        self._scores = {arm: link(path, page) for arm, path in scores.items()}
        self._predictions: dict[tuple[str, str], str] = {}
        for arm, path in scores.items():
            steps = best_steps(contents[arm])
            for name in map(PurePosixPath, predictions_of(path)):
                place = link(Path(name), page)
                if not name.parent.name.startswith(STEP):
                    self._predictions[arm, name.stem] = place
                    self._predictions.setdefault((f"{arm}{BEST}", name.stem), place)
                elif name.parent.name == f"{STEP}{steps.get(name.stem)}":
                    self._predictions[f"{arm}{BEST}", name.stem] = place
        self._values = {(row.arm, row.task, row.metric): row for row in rows if row.arm}

    def behind(self, group: Group, task: str, metric: str) -> tuple[Behind, ...]:
        """Return the runs behind a number of an experiment; those that have it."""
        found = [(arm, self._values.get((arm, task, metric))) for arm in group.arms]
        return tuple(
            Behind(
                label=f"seed {row.seed}",
                text=shown(row.value),
                scores=self._scores[arm.removesuffix(BEST)],
                predictions=self._predictions.get((arm, task), ""),
                way_back=self._way_back.get(arm.removesuffix(BEST), ""),
            )
            for arm, row in found
            if row is not None
        )


def best_steps(content: Mapping[str, Any]) -> dict[str, int]:
    """Return task -> step of its best kept checkpoint; nothing where none were evaluated."""
    chosen = content.get("checkpoints") or {"best": {}}
    return {task: item["step"] for item in chosen["best"].values() for task in item["metrics"]}


def manifest_of(scores: Path) -> Path:
    """Return the manifest that lies beside a ``scores.json``."""
    return scores.with_name("manifest.json")


def predictions_of(scores: Path) -> list[str]:
    """Return the files of answers that a ``scores.json`` was made of.

    Raises:
        ArtifactError: the manifest beside it is missing or is none.
    """
    manifest = manifest_of(scores)
    content = read_json(manifest)
    inputs = content.get("inputs") if isinstance(content, dict) else None
    if not isinstance(inputs, list):
        raise ArtifactError(f"{manifest} lists no inputs; rerun the stage evaluate_score")
    return [item["path"] for item in inputs if "/evaluate_predict/" in f"/{item['path']}"]


def link(target: Path, page: Path) -> str:
    """Return a link from the folder of the page to a file, safe in an attribute."""
    return urllib.parse.quote(Path(os.path.relpath(target, page)).as_posix())
