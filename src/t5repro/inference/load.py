"""Open a finished run or an exported model."""

import tempfile
from pathlib import Path

from t5repro.artifacts import VOCABULARY, WEIGHTS
from t5repro.errors import ArtifactError, SettingsError
from t5repro.inference.model import Model
from t5repro.inference.run import STAGE, Run
from t5repro.lineage.store import Folder, Revision, checkout_of, open_store

PRETRAIN = "pretrain"


def load(folder: str | Path, *, revision: str = "") -> Run | Model:
    """Open a finished run, or the weights that another library or `weights export` wrote.

    Args:
        folder: of a run, such as ``results/demo``; or with weights of Hugging Face, keras-hub, the
            T5 release or this project, and their vocabulary.
        revision: a git revision of the checkout that contains the run: DVC takes the files from its
            cache or its remote, and the working tree does not change.

    Returns:
        A `Run`; for a folder with weights a `Model`.

    Raises:
        ArtifactError: the folder has neither a run nor readable weights.
        LineageError: the revision does not exist.
        SettingsError: a folder of a revision is outside of the checkout.
    """
    path = Path(folder)
    if revision:
        root = checkout_of(Path())
        return _run_at(root, path, open_store(root, revision))
    if not path.is_dir():
        raise ArtifactError(f"{path} is no folder; name that of a run, such as results/demo")
    if (path / PRETRAIN).is_dir() and not (path / STAGE).is_dir():
        raise ArtifactError(
            f"{path} has no predictions: the run ends with pre-training, or is not finished; "
            f"t5repro weights export --weights {path}/{PRETRAIN}/EXPERIMENT/manifest.json "
            f"--vocabulary {path}/vocab/EXPERIMENT/sentencepiece.model --folder FOLDER makes a "
            "folder to name here"
        )
    if not (path / STAGE).is_dir():
        return imported_model(path)
    root = checkout_of(path)
    return _run_at(root, path, Folder(root))


def imported_model(folder: Path) -> Model:
    """Return the model of a folder with weights of any library and their vocabulary.

    Lengths and beam width are the defaults of `evaluate`.

    Raises:
        ArtifactError: it has no readable weights, or no vocabulary.
        CheckpointError: the weights do not belong to a T5 encoder-decoder, or do not have a row for
            each id of the vocabulary.
    """
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
