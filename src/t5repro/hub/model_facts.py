"""The facts of a trained model, from the manifests and records of its run.

Nothing is read from the clock or the machine. Files that the card quotes are verified first.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.artifacts import WEIGHTS
from t5repro.config.hub_address import hub_origin
from t5repro.errors import ArtifactError, SettingsError, nearest
from t5repro.export.facts import Run, check_files, read_run
from t5repro.files import read_json, read_json_lines
from t5repro.lineage.graph import DATA, Artifact, Job
from t5repro.lineage.store import RESULTS, checkout_of
from t5repro.report.experiments import Experiment
from t5repro.report.rows import ScoreRow, score_rows
from t5repro.report.scores_csv import read_csv
from t5repro.tasks.prefixes import shared_prefix

STAGES = ("finetune", "pretrain")  # the first one that the arm has is the default
BY_ARM = ("evaluate_score", "evaluate_predict", *STAGES)  # from the last rule to the first
FIRST_CHOICE = "baseline"
HUB_DATASET = re.compile(r"(?:https://huggingface\.co|hf:/)/datasets/([\w.-]+/[\w.-]+)")
TRANSLATION = re.compile(r"wmt_([a-z]{2})_([a-z]{2})")


@dataclass(frozen=True)
class Source:
    """Raw files of one origin that the model was made from."""

    origin: str
    licence: str
    files: int


@dataclass(frozen=True)
class ModelFacts:
    """A trained model and what its records say.

    Attributes:
        run: the jobs behind the weights, and only these.
        arm: name of the arm.
        training: the job that wrote the weights.
        weights: the weights.
        vocabulary: the SentencePiece model.
        prediction: the job that predicted with these weights; None if there is none.
        scores: rows of the arm; empty if these weights have no scores.
        means: the rows of its experiment over several seeds; empty for one seed.
        prefixes: task -> how all of its evaluated inputs begin.
        origins: task -> origin of its evaluated rows; tasks with an unrecorded origin are absent.
    """

    run: Run
    arm: str
    training: Job
    weights: Artifact
    vocabulary: Artifact
    prediction: Job | None
    scores: tuple[ScoreRow, ...]
    means: tuple[ScoreRow, ...]
    prefixes: Mapping[str, str]
    origins: Mapping[str, str]

    @property
    def name(self) -> str:
        """Name of the model: run and arm, and the stage if the arm continues after it."""
        stage = "" if self.training.rule == STAGES[0] else f"-{self.training.rule}"
        return f"{self.run.name}-{self.arm}{stage}"

    @property
    def lengths(self) -> Mapping[str, Any]:
        """The settings `evaluate` of the predictions; empty without predictions."""
        settings: Mapping[str, Any] = self.prediction.settings if self.prediction else {}
        return dict(settings.get("evaluate", {}))

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks of fine-tuning; empty for pre-trained weights."""
        return tuple(self.training.counters.get("examples", ()))

    @property
    def languages(self) -> list[str]:
        """Languages of the pre-training text and of translation tasks, sorted."""
        codes = set(self.corpus_languages)
        for task in self.tasks:
            # Fine-tuning teaches the target language too, even if no page of it was read.
            if pair := TRANSLATION.fullmatch(task):
                codes |= set(pair.groups())
        return sorted(codes)

    @property
    def corpus_languages(self) -> list[str]:
        """Languages of the pre-training text; empty if no step of this run read any."""
        steps = sum(job.counters.get("steps", 0) for job in self.run.of_rule("pretrain"))
        jobs = self.run.of_rule("tokens") if steps else []
        return list(jobs[-1].settings["tokens"]["languages"]) if jobs else []

    @property
    def sources(self) -> list[Source]:
        """The raw files behind the weights, by origin."""
        # The rule `data` lists every raw file of the run; the other jobs read what the model needs.
        return _sources(self.run, [job for job in self.run.jobs if job.rule != DATA])

    @property
    def hub_datasets(self) -> list[str]:
        """Ids of the data sets of the Hub among the origins, sorted."""
        ids = (HUB_DATASET.match(source.origin) for source in self.sources)
        return sorted({match[1] for match in ids if match})

    @property
    def base_model(self) -> str | None:
        """Id on the Hub of the published checkpoint that training started from, if it is one."""
        starts = (
            job.settings["pretrain"].get("start_from") for job in self.run.of_rule("pretrain")
        )
        folders = tuple(f"{start}/" for start in starts if start)
        for data in self.run.of_rule(DATA):
            for entry in data.settings["data"].get("sources", []):
                origin = hub_origin(entry["origin"])
                is_start = any(name.startswith(folders) for name in entry["files"])
                if origin and origin.kind == "model" and is_start:
                    return origin.repository
        return None


def model_facts(folder: Path, *, arm: str = "", stage: str = "") -> ModelFacts:
    """Return the facts of a model.

    Args:
        folder: of the run, such as ``results/demo``.
        arm: an experiment with its seed, such as ``baseline_seed_1``; `baseline`, or the first one,
            by default.
        stage: ``finetune`` or ``pretrain``; by default the last one that the arm has.

    Raises:
        ArtifactError: the folder is not a run, or the arm has no such model or several.
        LineageError: a file differs from its manifest.
        SettingsError: the run has no such arm.
    """
    root = checkout_of(folder)
    if not folder.is_dir() or folder.resolve().parent != root / RESULTS:
        raise ArtifactError(f"{folder} is no run; name its folder, such as results/demo")
    whole = read_run(root, folder.resolve().name)
    arm, last = _last_job(whole, folder, arm)
    training = _training(whole, last, arm, stage)
    weights = _output(training, f"/{WEIGHTS}")
    vocabulary = _output(_only(_upstream(whole, last, "vocab"), arm, "vocabulary"), ".model")
    # Before anything is written: a card must not state hashes of altered weights.
    check_files(whole, [weights, vocabulary])
    predictions = _upstream(whole, last, "evaluate_predict") if training.rule == "finetune" else []
    prediction = predictions[0] if predictions else None
    scores, means = _scores(whole, last, arm) if prediction else ((), ())
    return ModelFacts(
        # Only the jobs behind the weights: predictions and scores of other arms are no provenance.
        run=read_run(root, artifact=weights.path),
        arm=arm,
        training=training,
        weights=weights,
        vocabulary=vocabulary,
        prediction=prediction,
        scores=scores,
        means=means,
        prefixes=shared_prefixes(whole, prediction) if prediction else {},
        origins=_origins(whole, prediction) if prediction else {},
    )


def pretraining_corpus(run: Run) -> Job | None:
    """Return the job that wrote the text of pre-training; None if the model has no such job.

    The vocabulary may come from the corpus of another experiment (`vocab.from_experiment`).
    """
    producers = run.producers()
    read = (artifact for tokens in run.of_rule("tokens") for artifact in tokens.inputs)
    writers = (producers.get(artifact.key) for artifact in read)
    return next((job for job in writers if job and job.rule == "c4"), None)


def _sources(run: Run, jobs: Iterable[Job]) -> list[Source]:
    """Return the raw files that jobs read, by origin."""
    sources = []
    used = {artifact.path for job in jobs for artifact in job.inputs}
    for data in run.of_rule(DATA):
        folder = data.settings["data"].get("folder", "")
        for entry in data.settings["data"].get("sources", []):
            files = sum((Path(folder) / name).as_posix() in used for name in entry["files"])
            if files:
                sources.append(Source(entry["origin"], entry["licence"], files))
    return sources


def _origins(run: Run, prediction: Job) -> dict[str, str]:
    """Return task -> origin of the rows that a job predicted."""
    producers = run.producers()
    origins = {}
    for artifact in prediction.inputs:
        job = producers.get(artifact.key)
        if job and job.rule == "tasks" and (sources := _sources(run, [job])):
            origins[_node(job)] = "; ".join(source.origin for source in sources)
    return origins


def _node(job: Job) -> str:
    return job.name.rpartition("/")[2]


def _last_job(run: Run, folder: Path, arm: str) -> tuple[str, Job]:
    """Return the arm and its last job that trains, predicts or scores."""
    jobs: dict[str, Job] = {}
    for rule in BY_ARM:
        for job in run.of_rule(rule):
            # Rules are ordered from the last stage back, so an arm keeps its latest job.
            jobs.setdefault(_node(job), job)
    if not jobs:
        raise ArtifactError(f"{folder} has no trained model; run snakemake --profile local")
    # `baseline` first, then the alphabet.
    names = sorted(jobs, key=lambda name: (name != FIRST_CHOICE, name))
    if arm and arm not in jobs:
        raise SettingsError(f"{folder} has no arm {arm!r}{nearest(arm, names)}")
    arm = arm or names[0]
    return arm, jobs[arm]


def _upstream(run: Run, job: Job, rule: str) -> list[Job]:
    """Return the nearest jobs of a rule from which a job was made; itself, if it is of the rule."""
    producers = run.producers()
    nearest_jobs: dict[str, Job] = {}
    visited: set[str] = set()
    waiting = [job]
    while waiting:
        current = waiting.pop()
        if current.rule == rule:
            nearest_jobs[current.name] = current
        # The search stops at the first job of the rule on each path: jobs before it are not asked
        # for.
        elif current.name not in visited:
            visited.add(current.name)
            earlier = (producers.get(artifact.key) for artifact in current.inputs)
            waiting += [job for job in earlier if job is not None]
    return [nearest_jobs[name] for name in sorted(nearest_jobs)]


def _training(run: Run, last: Job, arm: str, stage: str) -> Job:
    for rule in [stage] if stage else STAGES:
        if jobs := _upstream(run, last, rule):
            return _only(jobs, arm, "model")
    raise ArtifactError(
        f"{run.name}: the arm {arm} has no {stage or 'training'}; leave --stage out, or name "
        "another arm"
    )


def _only(jobs: Sequence[Job], arm: str, noun: str) -> Job:
    if len(jobs) != 1:
        names = ", ".join(job.name for job in jobs)
        raise ArtifactError(
            f"the arm {arm} has {len(jobs)} {noun} files ({names or 'none'}), and a folder of the "
            "Hub has one; name one of them, if they are fine-tuned on groups of tasks, or an arm "
            "that is no ensemble"
        )
    return jobs[0]


def _output(job: Job, ending: str) -> Artifact:
    return next(artifact for artifact in job.outputs if artifact.path.endswith(ending))


def _scores(run: Run, job: Job, arm: str) -> tuple[tuple[ScoreRow, ...], tuple[ScoreRow, ...]]:
    """Return the rows of an arm and of its experiment: from the report of this very file.

    Of the fine-tuning on one group of tasks, they are the rows of these tasks.
    """
    tasks: set[str] | None = None
    if job.rule == "evaluate_predict":
        tasks = {Path(artifact.path).stem for artifact in job.outputs}
        # Groups of tasks are scored together: the file of scores has other groups' tasks as well.
        joined = (score for score in run.of_rule("evaluate_score") if job in _direct(run, score))
        job = next(joined, job)
    if job.rule != "evaluate_score":
        return (), ()
    arm = _node(job)
    scores = _output(job, "/scores.json")
    for report in run.of_rule("report"):
        # By hash: a report of an earlier run of the same arm does not count.
        if scores.key in {artifact.key for artifact in report.inputs}:
            table = _output(report, "/scores.csv")
            check_files(run, [table])
            rows = [
                row for row in read_csv(run.root / table.path) if tasks is None or row.task in tasks
            ]
            own = tuple(row for row in rows if row.arm == arm)
            # Means over seeds have no arm, only the experiment.
            experiments = {row.experiment for row in own}
            means = (row for row in rows if row.runs > 1 and row.experiment in experiments)
            return own, tuple(means)
    check_files(run, [scores])
    content = {arm: read_json(run.root / scores.path)}
    # No report has these scores: its means and intervals are missing, the scores are not.
    rows = score_rows([Experiment(arm, (arm,), (0,))], content)
    return tuple(row for row in rows if tasks is None or row.task in tasks), ()


def _direct(run: Run, job: Job) -> list[Job | None]:
    """Return the jobs that made the inputs of a job."""
    producers = run.producers()
    return [producers.get(artifact.key) for artifact in job.inputs]


def shared_prefixes(run: Run, prediction: Job) -> dict[str, str]:
    """Return task -> the beginning that all of its evaluated inputs share."""
    files = [artifact for artifact in prediction.outputs if artifact.path.endswith(".jsonl")]
    check_files(run, files)
    prefixes = {}
    for artifact in files:
        inputs = [row["inputs"] for row in read_json_lines(run.root / artifact.path)]
        if prefix := shared_prefix(inputs):
            prefixes[Path(artifact.path).stem] = prefix
    return prefixes
