"""Open a finished run or an exported model."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from t5repro.artifacts import VOCABULARY, WEIGHTS
from t5repro.errors import ArtifactError, SettingsError
from t5repro.inference.model import Model
from t5repro.inference.run import STAGE, Run
from t5repro.lineage.store import Folder, Revision, absent_run, checkout_of, open_store

if TYPE_CHECKING:
    import keras

PRETRAIN = "pretrain"


def load(folder: str | Path, *, revision: str = "") -> Run:
    """Open a finished run.

    Args:
        folder: of a run, such as ``results/demo``.
        revision: a git revision of the checkout that contains the run: DVC takes the files from its
            cache or its remote, and the working tree does not change.

    Raises:
        ArtifactError: the folder has no finished run.
        LineageError: the revision does not exist.
        SettingsError: a folder of a revision is outside of the checkout.
    """
    path = Path(folder)
    if revision:
        root = checkout_of(Path())
        return _run_at(root, path, open_store(root, revision))
    if not holds_run(path):
        raise ArtifactError(
            f"{path} has no run with predictions; t5repro.load_model opens a folder of weights"
        )
    root = checkout_of(path)
    return _run_at(root, path, Folder(root))


def load_model(folder: str | Path) -> Model:
    """Open the weights that another library or `weights export` wrote.

    Lengths and beam width are the defaults of `evaluate`.

    Args:
        folder: with weights of Hugging Face, keras-hub, the T5 release or this project, and their
            vocabulary.

    Raises:
        ArtifactError: it has no readable weights, or no vocabulary, or a run.
        CheckpointError: the weights do not belong to a T5 encoder-decoder, or do not have a row for
            each id of the vocabulary.
    """
    path = Path(folder)
    if holds_run(path):
        raise ArtifactError(f"{path} is a run; t5repro.load opens it, and Run.model its models")
    return _imported_model(path)


def load_network(path: str | Path) -> "keras.Model":
    """Return the network that `keras.Model.save` wrote to a ``.keras`` file.

    Args:
        path: the file.

    Raises:
        ArtifactError: Keras cannot read it.
    """
    import keras

    # Keras finds classes by their registered names: the modules register theirs.
    import t5repro.systems.networks  # noqa: F401

    try:
        return keras.saving.load_model(path)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ArtifactError(
            f"{path} is not a .keras file of a network ({error}); write it with network.save"
        ) from error


def holds_run(path: Path) -> bool:
    """Return whether a folder is a finished run.

    Raises:
        ArtifactError: it does not exist, or is a run without predictions.
    """
    if not path.is_dir():
        raise absent_run(path)
    has_predictions = (path / STAGE).is_dir()
    if (path / PRETRAIN).is_dir() and not has_predictions:
        raise ArtifactError(
            f"{path} has no predictions: the run ends with pre-training, or is not finished; "
            f"t5repro weights export --weights {path}/{PRETRAIN}/EXPERIMENT/manifest.json "
            f"--vocabulary {path}/vocab/EXPERIMENT/sentencepiece.model --folder FOLDER makes a "
            "folder to name here"
        )
    return has_predictions


def _imported_model(folder: Path) -> Model:
    from t5repro.config.sections.evaluate import EvaluateSettings, PredictStage
    from t5repro.config.sections.tasks import TaskNames
    from t5repro.config.sections.vocab import VocabSettings
    from t5repro.engines.devices import default_devices, prepare

    prepare(default_devices(), any_threads=True)  # before the reader of a preset imports Keras
    from t5repro.model.checkpoints import write_arrays
    from t5repro.model.foreign_weights import fit, read_foreign
    from t5repro.train.import_weights import VOCABULARIES, write_vocabulary

    foreign = read_foreign(folder)
    if foreign.vocabulary is None:
        raise ArtifactError(
            f"{folder} has weights but no vocabulary; put its files there: of Hugging Face "
            f"{VOCABULARIES}"
        )
    kept = tempfile.TemporaryDirectory(prefix="t5repro-")
    weights, vocabulary = Path(kept.name) / WEIGHTS, Path(kept.name) / VOCABULARY
    pieces, sentinels = write_vocabulary(
        vocabulary, foreign.vocabulary, rows=foreign.embedding_rows
    )
    settings = PredictStage(
        vocab=VocabSettings(vocab_size=pieces, extra_ids=sentinels),
        model=foreign.model,
        tasks=TaskNames(),
        evaluate=EvaluateSettings(),
        devices=default_devices(),
    )
    rows = settings.vocab.embedding_rows
    write_arrays(weights, fit(foreign, foreign.model, embedding_rows=rows, where=folder))
    return Model(settings, [weights], vocabulary, kept=kept)


def _run_at(root: Path, path: Path, store: Folder | Revision) -> Run:
    try:
        name = path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError as error:
        raise SettingsError(
            f"{path} is not in the checkout {root.resolve()}; change into the checkout first"
        ) from error
    if isinstance(store, Folder):
        return Run(name, store, store)
    from t5repro.versions.revision_files import RevisionFiles

    return Run(name, store, RevisionFiles(root, store.name))
