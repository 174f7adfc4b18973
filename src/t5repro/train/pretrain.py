"""The rule `pretrain`: training on the corpus, for any objective (paper section 3.3)."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from t5repro.artifacts import OPTIMIZER, WEIGHTS
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.engines.devices import prepare
from t5repro.errors import CorpusError, SettingsError
from t5repro.jobs.pretrain import PretrainJob
from t5repro.randomness import repeat_seed, single_seed
from t5repro.vocab.sentence_files import sentence_file, word_starts_file
from t5repro.vocab.token_files import split_files

if TYPE_CHECKING:
    from t5repro.inputs.batches import Batches
    from t5repro.inputs.rows import CorpusRows
    from t5repro.train.loop import TrainingJob


def pretrain(job: PretrainJob, *, code: Mapping[str, str]) -> None:
    """Pre-train on the corpus.

    Args:
        job: the job.
        code: source file -> hash, for every file that the stage runs (`lineage.sources.closure`);
            checkpoints of other code are set aside.

    Raises:
        SettingsError: there are steps, but no tokens, or not the sentences that the objective
            needs.
    """
    _check_corpus(job.settings, job.tokens, job.sentences)
    devices = prepare(job.settings.devices)
    # TensorFlow reads its environment when it is imported: after `prepare`.
    from t5repro.train.loop import run

    run(pretraining(job, code=code), devices)


def pretraining(job: PretrainJob, *, code: Mapping[str, str]) -> "TrainingJob":
    """Return the training of a job; the devices are prepared.

    Args:
        job: the job.
        code: see `pretrain`.
    """
    from t5repro.systems.pretraining import pretraining_of
    from t5repro.train.loop import TrainingJob
    from t5repro.train.validation import Validation

    settings = job.settings
    token_folder = job.tokens.parent if job.tokens else Path()  # not read if there are no steps
    ids, offsets = split_files(token_folder, "train")
    corpus: tuple[Path, ...] = (job.tokens, ids, offsets) if job.tokens else ()
    every_steps = settings.pretrain.validation_every_steps if job.tokens else 0
    held_out: tuple[Path, ...] = split_files(token_folder, "validation") if every_steps else ()
    sentence_folder = job.sentences.parent if job.sentences else None
    if job.sentences and sentence_folder:
        corpus += (job.sentences, sentence_file(sentence_folder, "train"))
        corpus += (word_starts_file(sentence_folder),)
        held_out += (sentence_file(sentence_folder, "validation"),) if held_out else ()
    manifests = (job.tokens, job.sentences)
    start = _start(job)
    seed = repeat_seed(settings.seed, settings.pretrain.repeat)

    @functools.cache  # batches and counters share the layout of the corpus
    def load() -> "CorpusRows":
        return _load_inputs(settings, "train", token_folder, sentence_folder, seed)

    def validation() -> Validation:
        batches = held_out_batches(settings, token_folder, sentence_folder)
        return Validation(batches, every_steps=every_steps)

    return TrainingJob(
        rule="pretrain",
        system=pretraining_of(settings.model),
        settings=settings,
        training=settings.pretrain,
        seed=single_seed(seed, "pretrain"),
        initialize=start.load,
        inputs=(*corpus, *held_out, *start.inputs),
        identity=(*(path for path in manifests if path), *start.identity),
        batches=lambda first_step, steps: load().batches(first_step=first_step, steps=steps),
        counters=lambda steps: load().counters(steps=steps),
        folder=job.folder,
        work=job.work,
        manifest=job.manifest,
        code=code,
        monitor=job.monitor,
        resume_changed=job.resume_changed,
        loggers=job.loggers,
        validation=validation if held_out else None,
    )


class _Start(NamedTuple):
    """The initial weights of a pre-training.

    Attributes:
        load: sets the model to them; None for fresh weights.
        inputs: files that decide the result.
        identity: small files that change whenever one of them does, if there are such.
    """

    load: Callable[[Any], str] | None = None
    inputs: tuple[Path, ...] = ()
    identity: tuple[Path, ...] = ()


def _start(job: PretrainJob) -> _Start:
    """Return the initial weights of a job: of a checkpoint, of an earlier phase, or fresh."""
    from t5repro.train.initialize import load_phase, load_published

    continues = job.settings.pretrain.optimizer_state == "continue"
    if job.weights is not None:
        folder = job.weights.parent
        arrays = (folder / WEIGHTS, *([folder / OPTIMIZER] if continues else []))
        load = functools.partial(load_phase, folder, continues=continues)
        return _Start(load, arrays, (job.weights,))
    if job.start_from is not None:
        files = files_in(job.start_from)
        model_file = job.settings.vocab.model_file
        load = functools.partial(
            load_published, job.start_from, continues=continues, model_file=model_file
        )
        return _Start(load, files, files)
    return _Start()


def _check_corpus(settings: PretrainStage, tokens: Path | None, sentences: Path | None) -> None:
    """Raise `SettingsError` if the training needs a manifest that is absent."""
    if not settings.pretrain.steps:
        return
    if tokens is None:
        raise SettingsError(
            f"pretrain.steps is {settings.pretrain.steps}, but --tokens names no corpus; give its "
            "manifest, or set pretrain.steps to 0"
        )
    if sentences is None and settings.pretrain.reads_sentences:
        raise SettingsError(
            f"pretrain.objective is {settings.pretrain.objective}, whose rows consist of "
            "sentences, but --sentences names none; give the manifest of the rule sentences, or "
            "another objective"
        )


def _load_inputs(
    settings: PretrainStage, split: str, tokens: Path, sentences: Path | None, seed: int
) -> "CorpusRows":
    """Open a split of the corpus.

    Args:
        settings: settings of the stage.
        split: ``train`` or ``validation``.
        tokens: folder of the token files.
        sentences: folder of the sentences, for an objective on sentences.
        seed: of the rows and the noise.
    """
    from t5repro.systems.pretraining import open_rows

    ids, offsets = split_files(tokens, split)
    files = {}
    if sentences is not None:
        files["sentences"] = sentence_file(sentences, split)
        files["word_starts"] = word_starts_file(sentences)
    return open_rows(settings, ids=ids, offsets=offsets, seed=seed, **files)


def held_out_batches(
    settings: PretrainStage, folder: Path, sentences: Path | None = None
) -> "Batches":
    """Return the batches of the loss on the validation split.

    Repetitions of an experiment get the same ones, so their losses compare.

    Args:
        settings: settings of the stage.
        folder: folder of the token files.
        sentences: folder of the sentences, for an objective on sentences.

    Raises:
        CorpusError: the split does not fill a row.
    """
    # `unique_tokens` limits only the training text.
    pretrain = settings.pretrain.model_copy(update={"unique_tokens": 0})
    settings = settings.model_copy(update={"pretrain": pretrain})
    # Not the seed of the repetition: all repetitions are measured on the same rows.
    seed = single_seed(settings.seed, "validation")
    try:
        corpus = _load_inputs(settings, "validation", folder, sentences, seed)
    except CorpusError as error:
        ids, _ = split_files(folder, "validation")
        raise CorpusError(
            f"{ids}: {error}; lower c4.validation_modulus (of own text, or name "
            "corpus.validation_files), or set pretrain.validation_every_steps to 0"
        ) from error
    # At most one epoch: a second one would only measure the same rows again.
    filled = max(1, corpus.rows_per_epoch // settings.pretrain.batch_size)
    steps = min(filled, settings.pretrain.validation_batches)
    return corpus.batches(first_step=0, steps=steps)


def files_in(folder: Path) -> tuple[Path, ...]:
    """Return all files below a folder, sorted by name."""
    return tuple(sorted(path for path in folder.rglob("*") if path.is_file()))
