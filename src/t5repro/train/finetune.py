"""The rule `finetune`: training on a mixture of tasks (paper sections 2.4 and 3.5)."""

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t5repro.artifacts import OPTIMIZER, WEIGHTS
from t5repro.config.sections.finetune import FinetuneStage
from t5repro.config.sections.model import tuned_family
from t5repro.engines.devices import prepare
from t5repro.jobs.finetune import FinetuneJob
from t5repro.model.labels import NO_COLUMNS, LabelColumns
from t5repro.randomness import repeat_seed, single_seed
from t5repro.vocab.special_pieces import special_id
from t5repro.vocab.token_files import split_files

if TYPE_CHECKING:
    from t5repro.train.loop import TrainingJob


def finetune(job: FinetuneJob, *, code: Mapping[str, str]) -> None:
    """Fine-tune the weights of an earlier training on a mixture of tasks.

    Args:
        job: the job.
        code: source file -> hash, for every file that the stage runs (`lineage.sources.closure`);
            checkpoints of other code are set aside.
    """
    devices = prepare(job.settings.devices)
    # TensorFlow reads its environment when it is imported: after `prepare`.
    from t5repro.train.loop import run

    run(finetuning(job, code=code), devices)


def finetuning(job: FinetuneJob, *, code: Mapping[str, str]) -> "TrainingJob":
    """Return the training of a job; the devices are prepared.

    Args:
        job: the job.
        code: see `finetune`.
    """
    from t5repro.systems.finetuning import finetuning_of
    from t5repro.train.loop import TrainingJob
    from t5repro.train.samples import Samples

    settings = job.settings
    seed = repeat_seed(settings.seed, settings.finetune.repeat)
    system = finetuning_of(settings.model, settings.finetune)
    writes_text = tuned_family(settings.model, settings.finetune).writes_text

    @functools.cache  # batches and counters share the tokenised examples
    def load() -> Any:
        return system.rows(
            settings, examples=job.examples, vocabulary=job.vocabulary, seed=seed, tokens=job.tokens
        )

    def columns() -> LabelColumns:
        """Return the columns of the tasks, before the network with their head is made."""
        return NO_COLUMNS if writes_text else load().columns

    def texts_of_row() -> int:
        return 1 if writes_text else int(load().texts)

    def make_samples(folder: Path, announce: Callable[[str], None]) -> Samples:
        return Samples(
            job.sample_examples,
            count=job.sample_count,
            every_steps=job.sample_every_steps,
            settings=settings,
            vocabulary=job.vocabulary,
            folder=folder,
            announce=announce,
        )

    trained_folder = job.weights.parent
    # Files that decide the result. The manifest of the weights stands for them in the fingerprint:
    # it changes with them, and is quick to read.
    arrays = [trained_folder / WEIGHTS]
    if settings.finetune.optimizer_state == "continue":
        arrays.append(trained_folder / OPTIMIZER)
    texts = [job.vocabulary, *(job.examples[task] for task in sorted(job.examples))]
    corpus = split_files(job.tokens.parent, "train") if job.tokens else ()
    manifests = [job.tokens] if job.tokens else []
    return TrainingJob(
        rule="finetune",
        system=system,
        settings=settings,
        training=settings.finetune,
        seed=single_seed(seed, "finetune"),
        initialize=functools.partial(load_trained, trained_folder, settings, system.new_pieces),
        inputs=(*arrays, *texts, *manifests, *corpus),
        identity=(job.weights, *texts, *manifests),
        batches=lambda first_step, steps: load().batches(first_step=first_step, steps=steps),
        counters=lambda steps: load().counters(first_step=0, steps=steps),
        folder=job.folder,
        work=job.work,
        manifest=job.manifest,
        code=code,
        monitor=job.monitor,
        resume_changed=job.resume_changed,
        loggers=job.loggers,
        samples=make_samples if job.sample_examples else None,
        columns=columns,
        texts=texts_of_row,
        layer_decay=settings.finetune.layer_decay,
        decays_gradients=settings.finetune.layer_decay_on == "gradient",
    )


def load_trained(
    folder: Path, settings: FinetuneStage, new_pieces: Sequence[str], model: Any
) -> str:
    """Set a model, and optionally its optimizer, to the result of an earlier training.

    Args:
        folder: results of the earlier training.
        settings: whether the optimizer continues, and which weights are new or frozen.
        new_pieces: special pieces with rows of the embedding that keep their initial values.
        model: the network with its optimizer.

    Returns:
        The source of the weights, for the log.
    """
    from t5repro.model.adapters import ADAPTER
    from t5repro.model.checkpoints import load_optimizer, load_weights, weight_variables
    from t5repro.model.encoder_heads import PRETRAINING_HEADS, new_heads
    from t5repro.train.special_rows import new_rows
    from t5repro.train.trainable import is_trainable

    training, vocab = settings.finetune, settings.vocab
    network, columns = model.network, model.objective.columns
    paths = weight_variables(network)
    # Heads of other tasks stay new. Pre-training has heads that no task uses.
    heads = new_heads(folder / WEIGHTS, columns)
    # The earlier training had no adapters.
    fresh = [path for path in paths if ADAPTER in path or path.startswith(heads)]
    frozen = [path for path in paths if not is_trainable(path, training)]
    rows = [special_id(piece, vocab.total_ids) for piece in new_pieces]
    with new_rows(network, folder / WEIGHTS, rows):
        load_weights(folder / WEIGHTS, network, fresh=fresh, unused=(*PRETRAINING_HEADS, *heads))
    if training.optimizer_state == "continue":
        load_optimizer(folder / OPTIMIZER, model.optimizer, fresh=fresh, frozen=frozen)
    return f"starting from the weights of {folder}"
