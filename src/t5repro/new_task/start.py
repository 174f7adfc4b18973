"""The model that a new task starts from: weights and vocabulary, of a run or another library."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t5repro.artifacts import MANIFEST, WEIGHTS
from t5repro.config.field import Section
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.finetune import FinetuneSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import ArtifactError, SettingsError
from t5repro.files import read_manifest, sha256_of
from t5repro.lineage.store import RESULTS, absent_run

STAGES = ("pretrain", "finetune")  # of a run; the first one that has weights
FIRST_CHOICE = "baseline"
LICENCE_OF_RUN = "that of the raw inputs of the run"


@dataclass(frozen=True)
class Start:
    """Weights and vocabulary.

    Attributes:
        folder: folder of the weights, below the working folder.
        origin: their origin, for `data.sources`.
        licence: their licence.
        files: every file of the folder, and the vocabulary.
        vocabulary: its file: of a run, or of a checkpoint as it was published.
        settings: section -> settings that the weights require, where they differ from the
            baseline; for a run also its devices and its learning rate of fine-tuning.
    """

    folder: Path
    origin: str
    licence: str
    files: tuple[Path, ...]
    vocabulary: Path
    settings: dict[str, dict[str, Any]]


def find_start(name: str) -> Start:
    """Return the model of a finished run, of one of its trainings, or of a published checkpoint.

    Args:
        name: folder below the working folder: of a run, such as ``results/demo``; of a training,
            such as ``results/demo/finetune/baseline``; or of a checkpoint. If empty, the only run
            that has weights.

    Raises:
        ArtifactError: the folder has no weights or no vocabulary, or a file was altered.
        SettingsError: the folder is not below the working folder; no name, and not exactly one run;
            the network writes no text.
    """
    start = _start_in(below_working_folder(Path(name)) if name else _only_run())
    model = ModelSettings.model_validate(start.settings["model"])
    if not model.family.writes_text:
        raise SettingsError(
            f"{start.folder} has {model.family.title} (model.architecture: {model.architecture}), "
            "and a proposed run file needs one that writes text: name a T5 or a GPT. To fine-tune "
            "this one, write a run file like configs/tuned_bert.yaml with its folder in "
            "pretrain.start_from and the task in tasks.own"
        )
    return start


def _start_in(folder: Path) -> Start:
    """Return the model of a run, of a training or of a published checkpoint."""
    training = next(filter(None, map(_first_node, (folder / stage for stage in STAGES))), folder)
    if (training / WEIGHTS).is_file() and (training / MANIFEST).is_file():
        manifest = read_manifest(training / MANIFEST)
        if manifest["rule"] in STAGES:  # `weights import` writes a manifest, too
            return _start_of_training(training, manifest)
    if not training.is_dir():
        raise absent_run(training)
    return _start_of_checkpoint(training)


def below_working_folder(path: Path) -> Path:
    """Return a path relative to the working folder.

    Raises:
        SettingsError: it is elsewhere.
    """
    relative = Path(os.path.relpath(path))
    if ".." in relative.parts:
        raise SettingsError(
            f"{path} is not below {Path.cwd()}, where a run has its raw inputs; copy it there"
        )
    return relative


def _only_run() -> Path:
    runs = sorted(path for path in Path(RESULTS).glob("*") if _first_node(path / STAGES[0]))
    if len(runs) != 1:
        names = ", ".join(path.as_posix() for path in runs) or "none"
        raise SettingsError(
            f"runs with weights: {names}; name one, or the folder of a published checkpoint: --from"
        )
    return runs[0]


def _first_node(stage: Path) -> Path | None:
    """Return the folder of a stage's first experiment that has weights."""
    nodes = [path.parent for path in stage.glob(f"*/{WEIGHTS}")]
    return min(nodes, key=lambda node: (node.name != FIRST_CHOICE, node.name), default=None)


# A training of this project


def _start_of_training(folder: Path, manifest: Mapping[str, Any]) -> Start:
    for entry in manifest["outputs"]:
        path = folder / Path(entry["path"]).name
        if path.name == WEIGHTS and sha256_of(path) != entry["sha256"]:
            raise ArtifactError(
                f"{path} has SHA-256 {sha256_of(path)}, {folder / MANIFEST} expects "
                f"{entry['sha256']}; run t5repro verify"
            )
    settings = manifest["settings"]
    vocabulary = _vocabulary_of(folder, manifest)
    sections: dict[str, dict[str, Any]] = {
        "vocab": _sizes(VocabSettings.model_validate(settings["vocab"])),
        # The shape is stated, not the preset of its size.
        "model": _changes(ModelSettings.model_validate({**settings["model"], "published": ""})),
        "devices": _changes(DevicesSettings.model_validate(settings["devices"])),
        "finetune": _learning_rate(folder),
    }
    run = folder.parent.parent
    return Start(
        folder,
        origin=f"the run {run.as_posix()}",
        licence=LICENCE_OF_RUN,
        files=(*_files(folder), vocabulary),
        vocabulary=vocabulary,
        settings=sections,
    )


def _vocabulary_of(folder: Path, manifest: Mapping[str, Any]) -> Path:
    """Return the vocabulary that a training read, itself or through the ids of its corpus."""
    entries = list(manifest["inputs"])
    for entry in manifest["inputs"]:
        if entry["path"].endswith(MANIFEST) and Path(entry["path"]).is_file():
            entries += read_manifest(Path(entry["path"]))["inputs"]
    for path in sorted(folder.parent.parent.glob(f"vocab/*/{MANIFEST}")):
        entries += read_manifest(path)["outputs"]
    vocabularies = [entry for entry in entries if entry["path"].endswith(".model")]
    for entry in vocabularies:
        path = Path(entry["path"])
        if path.is_file():
            if sha256_of(path) != entry["sha256"]:
                raise ArtifactError(
                    f"{path} has SHA-256 {sha256_of(path)}, the manifest that names it expects "
                    f"{entry['sha256']}; run t5repro verify"
                )
            return below_working_folder(path)
    names = ", ".join(entry["path"] for entry in vocabularies) or "none"
    raise ArtifactError(
        f"{folder}: its vocabulary does not exist (named: {names}); run snakemake, or dvc pull"
    )


def _learning_rate(folder: Path) -> dict[str, Any]:
    """Return the learning rate with which the run fine-tunes, if it does."""
    node = _first_node(folder.parent.parent / "finetune")
    if node is None:
        return {}
    settings = read_manifest(node / MANIFEST)["settings"]["finetune"]
    changes = _changes(FinetuneSettings.model_validate(settings))
    return {name: value for name, value in changes.items() if name == "learning_rate"}


# A published checkpoint


def _start_of_checkpoint(folder: Path) -> Start:
    from t5repro.engines.devices import default_devices, prepare

    prepare(default_devices(), any_threads=True)  # before the reader of a preset imports Keras
    from t5repro.model.foreign_weights import read_foreign
    from t5repro.train.import_weights import VOCABULARIES, write_vocabulary

    foreign = read_foreign(folder)
    if foreign.vocabulary is None:
        raise ArtifactError(
            f"{folder} has weights but no vocabulary; put its files there: of Hugging Face "
            f"{VOCABULARIES}"
        )
    with tempfile.TemporaryDirectory() as temporary:
        pieces, sentinels = write_vocabulary(
            Path(temporary) / "vocabulary", foreign.vocabulary, rows=foreign.embedding_rows
        )
    return Start(
        folder,
        origin=f"{foreign.form} weights in {folder.as_posix()}",
        licence="not stated",
        files=_files(folder),
        vocabulary=foreign.vocabulary.file,
        settings={
            "vocab": _sizes(VocabSettings(vocab_size=pieces, extra_ids=sentinels)),
            "model": _changes(foreign.model),
        },
    )


def _files(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in folder.rglob("*") if path.is_file()))


def _sizes(vocab: VocabSettings) -> dict[str, Any]:
    """Return the number of pieces, and the number of sentinels if it differs from T5's."""
    changes = _changes(vocab)
    sizes = {"vocab_size": vocab.vocab_size}
    return sizes | {name: value for name, value in changes.items() if name == "extra_ids"}


def _changes(section: Section) -> dict[str, Any]:
    """Return the settings of a section that differ from the baseline."""
    values = section.model_dump(mode="json")
    if isinstance(section, ModelSettings):
        values = section.stated
    return _differences(values, type(section)().model_dump(mode="json"))


def _differences(values: Mapping[str, Any], baseline: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _differences(value, baseline[name]) if isinstance(value, dict) else value
        for name, value in values.items()
        if value != baseline[name]
    }
