"""A finished run: the models of its experiments, its scores, predictions and lineage."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from t5repro.artifacts import MANIFEST, WEIGHTS
from t5repro.config.sections.evaluate import PredictStage
from t5repro.config.sections.model import tuned_family
from t5repro.errors import ArtifactError, SettingsError, nearest, packages_of
from t5repro.files import read_json_lines, read_manifest, sha256_of
from t5repro.inference.label_model import LabelModel, Row
from t5repro.inference.model import Model, Prediction
from t5repro.lineage.store import Folder, Revision
from t5repro.tasks.prefixes import shared_prefix

if TYPE_CHECKING:
    import keras

STAGE = "evaluate_predict"
VOCABULARY = ".model"
FIRST_CHOICE = "baseline"


class Files(Protocol):
    """The files of a working tree or of a revision."""

    def names(self, folder: str, ending: str) -> Iterable[str]:
        """Return the files below a folder of the checkout that have this name or suffix."""

    def path(self, name: str) -> Path:
        """Return the file on disk with the content of a file of the checkout."""


class Run:
    """A finished run, in the working tree or at a git revision.

    Args:
        name: folder of the run in the checkout, such as ``results/demo``.
        store: the working tree, or the revision, for the lineage.
        files: the files of the same state.
    """

    def __init__(self, name: str, store: Folder | Revision, files: Files) -> None:
        self.name = name
        self._store = store
        self._files = files
        self._models: dict[tuple[str, int | None], Model | LabelModel] = {}

    def __repr__(self) -> str:
        return f"Run({self.name!r}, experiments={list(self.experiments)})"

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments that have predictions, `baseline` first.

        There is a name for each seed, and for each group of tasks that is fine-tuned separately.

        Raises:
            ArtifactError: there are none.
        """
        folder = f"{self.name}/{STAGE}"
        names = {
            Path(path).parent.name
            for path in self._files.names(folder, f"/{MANIFEST}")
            if len(Path(path).relative_to(folder).parts) == 2
        }
        if not names:
            raise ArtifactError(
                f"{folder} has no predictions; run snakemake --profile local, or name the folder "
                "of a run, such as results/demo"
            )
        return tuple(sorted(names, key=lambda name: (name != FIRST_CHOICE, name)))

    def model(self, experiment: str = "", *, step: int | None = None) -> Model:
        """Return the fine-tuned model of an experiment that writes texts.

        Args:
            experiment: one of `experiments`; the first by default.
            step: step of fine-tuning with kept and evaluated weights; the last by default.

        Raises:
            ArtifactError: a file is missing, or differs from the manifest of the predictions.
            SettingsError: the experiment or step does not exist, or its network writes no text.
        """
        experiment = self._experiment(experiment)
        opened = self._opened(experiment, step)
        if isinstance(opened, LabelModel):
            raise SettingsError(
                f"{experiment} has model.architecture {opened.settings.model.architecture} and "
                f"finetune.answers {opened.settings.finetune.answers}: the network predicts "
                "labels, numbers or spans and writes no other text; give rows of one of its tasks "
                "with t5repro predict --task, or Run.predict_rows, or name another experiment"
            )
        return opened

    def label_model(self, experiment: str = "", *, step: int | None = None) -> LabelModel:
        """Return the fine-tuned model of an experiment that answers rows of tasks; see `model`.

        Raises:
            ArtifactError: a file is missing, or differs from the manifest of the predictions.
            SettingsError: the experiment or step does not exist, or its network writes texts.
        """
        experiment = self._experiment(experiment)
        opened = self._opened(experiment, step)
        if isinstance(opened, Model):
            raise SettingsError(
                f"{experiment} has a network that writes texts and knows the task by the text's "
                "prefix; leave --task out, or use Run.predict"
            )
        return opened

    def network(self, experiment: str = "", *, step: int | None = None) -> "keras.Model":
        """Return the ``keras.Model`` of an experiment, with its fine-tuned weights; see `model`.

        `predict` and `predict_rows` of this run use the same network: they answer with int8 weights
        after ``run.network().quantize("int8")``.

        Args:
            experiment: one of `experiments`; the first by default.
            step: step of fine-tuning with kept and evaluated weights; the last by default.

        Raises:
            ArtifactError: a file is missing, or differs from the manifest of the predictions.
            SettingsError: the experiment or step does not exist, or is an ensemble.
        """
        experiment = self._experiment(experiment)
        networks = self._opened(experiment, step).networks
        if len(networks) > 1:
            raise SettingsError(
                f"{experiment} is an ensemble of {len(networks)} networks; name an experiment with "
                f"one, of {list(self.experiments)}"
            )
        return networks[0]

    def _opened(self, experiment: str, step: int | None) -> Model | LabelModel:
        # A model takes seconds to load: it is kept for the next texts.
        if (experiment, step) not in self._models:
            self._models[experiment, step] = self._open(experiment, step)
        return self._models[experiment, step]

    def predict(
        self,
        texts: Sequence[str],
        *,
        experiment: str = "",
        step: int | None = None,
        beam: bool = False,
        log_probabilities: bool = False,
    ) -> list[Prediction]:
        """Return the answers of a fine-tuned model; see `model` and `Model.predict`."""
        model = self.model(experiment, step=step)
        return model.predict(texts, beam=beam, log_probabilities=log_probabilities)

    def predict_rows(
        self, rows: Sequence[Row], *, task: str, experiment: str = "", step: int | None = None
    ) -> list[Prediction]:
        """Return the answers of a network of labels; see `label_model` and `LabelModel.predict`.

        Without an experiment, the first answers that has such a network and was evaluated on the
        task.
        """
        experiment = experiment or self._labelled_experiment_for(task)
        return self.label_model(experiment, step=step).predict(rows, task=task)

    def scores(self) -> Any:
        """Return the scores of the report as a ``pandas.DataFrame``, a row per score.

        It has the columns of ``report/scores.csv``.

        Raises:
            ArtifactError: the run has no report.
            PackageError: pandas is not installed.
        """
        with packages_of("tables"):
            import pandas as pd

        from t5repro.report.scores_csv import read_csv

        path = f"{self.name}/report/scores.csv"
        return pd.DataFrame([vars(row) for row in read_csv(self._file(path))])

    def predictions(self, task: str, *, experiment: str = "") -> Any:
        """Return the evaluated examples of a task as a ``pandas.DataFrame``.

        Its columns are ``idx``, ``inputs``, ``targets``, ``answer`` and ``prediction``.

        Raises:
            PackageError: pandas is not installed.
            SettingsError: the experiment or the task does not exist.
        """
        with packages_of("tables"):
            import pandas as pd

        experiment = self._experiment(experiment)
        folder = f"{self.name}/{STAGE}/{experiment}"
        tasks = self.tasks(experiment=experiment)
        if task not in tasks:
            raise SettingsError(f"{experiment} has no task {task!r}{nearest(task, tasks)}")
        outputs = self._manifest(experiment)["outputs"]
        return pd.DataFrame(
            list(read_json_lines(self._verified(f"{folder}/{task}.jsonl", outputs)))
        )

    def tasks(self, *, experiment: str = "") -> tuple[str, ...]:
        """The tasks that a fine-tuned model was evaluated on.

        Raises:
            ArtifactError: the manifest of the predictions is missing.
            SettingsError: the experiment does not exist.
        """
        experiment = self._experiment(experiment)
        folder = Path(f"{self.name}/{STAGE}/{experiment}")
        paths = (Path(entry["path"]) for entry in self._manifest(experiment)["outputs"])
        return tuple(path.stem for path in paths if path.parent == folder)

    def experiment_for(self, texts: Sequence[str]) -> str:
        """Return the first experiment with a task for the beginning of every text; "" if none.

        Raises:
            ArtifactError: a file is missing, or differs from the manifest of the predictions.
        """
        task_lists = set()
        for name in self.experiments:
            tasks = self.tasks(experiment=name)
            if tasks in task_lists:  # the beginnings are the same
                continue
            task_lists.add(tasks)
            beginnings = tuple(p.rstrip() for p in self.prefixes(experiment=name).values())
            if all(text.startswith(beginnings) for text in texts):
                return name
        return ""

    def prefixes(self, *, experiment: str = "") -> dict[str, str]:
        """Return task -> the beginning of all of its evaluated inputs; empty if they differ.

        Raises:
            ArtifactError: a file is missing, or differs from the manifest of the predictions.
            SettingsError: the experiment does not exist.
        """
        outputs = self._manifest(self._experiment(experiment))["outputs"]
        files = [entry["path"] for entry in outputs if entry["path"].endswith(".jsonl")]
        rows = {Path(path).stem: read_json_lines(self._verified(path, outputs)) for path in files}
        return {task: shared_prefix([row["inputs"] for row in rows[task]]) for task in rows}

    def lineage(self, artifact: str) -> dict[str, Any]:
        """Return what an artifact was made from, as ``t5repro trace --json`` prints it.

        Args:
            artifact: file in the checkout, ``scores.json#task``, or start of a SHA-256.

        Raises:
            LineageError: the artifact does not exist.
        """
        from t5repro.lineage.graph import load_graph
        from t5repro.lineage.trace import to_json, trace

        return to_json(trace(load_graph(self._store), self._store, artifact))

    def _experiment(self, name: str) -> str:
        names = self.experiments
        if name and name not in names:
            raise SettingsError(f"{self.name} has no experiment {name!r}{nearest(name, names)}")
        return name or names[0]

    def _labelled_experiment_for(self, task: str) -> str:
        """Return the first experiment with a network of labels for a task.

        Raises:
            SettingsError: there is none.
        """
        for name in self.experiments:
            settings = self._settings(name)
            family = tuned_family(settings.model, settings.finetune)
            if not family.writes_text and task in self.tasks(experiment=name):
                return name
        raise SettingsError(
            f"{self.name} has no network of labels that was evaluated on {task!r}; its experiments "
            f"are {list(self.experiments)}. A network that writes text takes the text with its "
            "prefix, without a task"
        )

    def _settings(self, experiment: str) -> PredictStage:
        try:
            return PredictStage.model_validate(self._manifest(experiment)["settings"])
        except ValidationError as error:
            raise ArtifactError(
                f"the settings of {self.name}/{STAGE}/{experiment}/{MANIFEST} are not those of "
                f"this version ({error.errors()[0]['msg']}); run the stage again"
            ) from error

    def _open(self, experiment: str, step: int | None) -> Model | LabelModel:
        inputs = self._manifest(experiment)["inputs"]
        step_folder = "" if step is None else f"/step-{step}"
        weights = [
            entry["path"]
            for entry in inputs
            if entry["path"].endswith(f"{step_folder}/{WEIGHTS}")
            # Without a step, the weights of kept steps are left out: they have a folder of their
            # own.
            and (step_folder or "/step-" not in entry["path"].removeprefix(self.name))
        ]
        if not weights:
            raise SettingsError(
                f"step {step} of {experiment} was not evaluated; leave the step out, or run with "
                "finetune.keep_checkpoints and evaluate.checkpoints: all"
            )
        vocabulary = next(entry["path"] for entry in inputs if entry["path"].endswith(VOCABULARY))
        settings = self._settings(experiment)
        writes_text = tuned_family(settings.model, settings.finetune).writes_text
        return (Model if writes_text else LabelModel)(
            settings,
            [self._verified(path, inputs) for path in weights],
            self._verified(vocabulary, inputs),
        )

    def _manifest(self, experiment: str) -> dict[str, Any]:
        path = self._file(f"{self.name}/{STAGE}/{experiment}/{MANIFEST}")
        return dict(read_manifest(path))

    def _verified(self, path: str, entries: Sequence[Mapping[str, Any]]) -> Path:
        """Return a file that has the hash which a manifest recorded."""
        expected = next(entry["sha256"] for entry in entries if entry["path"] == path)
        file = self._file(path)
        actual = sha256_of(file)
        if actual != expected:
            raise ArtifactError(
                f"{path} has SHA-256 {actual}, the predictions were made with {expected}; "
                "run t5repro verify"
            )
        return file

    def _file(self, path: str) -> Path:
        file = self._files.path(path)
        if not file.is_file():
            raise ArtifactError(f"{path} is missing; run snakemake --profile local, or dvc pull")
        return file
