"""The network of a stage with its training step and optimizer."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.training import TrainingSettings
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import SettingsError
from t5repro.model.checkpoints import weight_variables
from t5repro.model.devices import Devices
from t5repro.model.labels import LabelColumns, TaskAnswers
from t5repro.train.adafactor import Adafactor
from t5repro.train.adam import Adam
from t5repro.train.layer_decay import rate_factors
from t5repro.train.loss import PaddedMeanLoss
from t5repro.train.optimizer import Optimizer
from t5repro.train.schedules import schedule
from t5repro.train.step import LabelledDecoder, LabelledEncoder, TrainedEncoder, TrainedT5
from t5repro.train.trainable import adapter_width, freeze

NO_LABELS: TaskAnswers = MappingProxyType({})


class StageSettings(Protocol):
    """The settings of `pretrain` or `finetune`, without an import of either.

    Both stages import this module: with their classes, a new setting of fine-tuning would rerun
    pre-training.
    """

    @property
    def vocab(self) -> VocabSettings:
        """The vocabulary, for the rows of the embedding."""

    @property
    def model(self) -> ModelSettings:
        """Shape of the network."""

    @property
    def devices(self) -> DevicesSettings:
        """The devices that it runs on."""

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        """Return all settings as the manifest records them."""


def training_of(settings: StageSettings) -> TrainingSettings:
    """Return the section of the stage itself: steps, batch, learning rate."""
    # Fine-tuning has a section `pretrain` too, for the corpus in its mixture.
    section = "finetune" if hasattr(settings, "finetune") else "pretrain"
    training: TrainingSettings = getattr(settings, section)
    return training


def compiled_model(settings: StageSettings, *, seed: int, labels: TaskAnswers = NO_LABELS) -> Any:
    """Return a freshly initialised network with its training step and optimizer.

    Args:
        settings: of the stage.
        seed: of the initial weights and the dropout noise.
        labels: answers of the tasks that a network of labels is fine-tuned on.
    """
    training = training_of(settings)
    network: dict[str, Any] = {
        "model": settings.model,
        "embedding_rows": settings.vocab.embedding_rows,
        "dropout_rate": training.dropout_rate,
        "seed": seed,
        "dtype": settings.devices.precision,
        "adapter_width": adapter_width(training),
        "z_loss": training.z_loss,
        "normaliser": training.loss_normaliser,
        "micro_batches": training.micro_batches,
    }
    model: Any
    if labels:
        model = labelled_model(training, labels, network)
    elif settings.model.encoder_only:
        model = TrainedEncoder(**pretraining_heads(training), **network)
    else:
        model = TrainedT5(**network)
    freeze(model, training)
    optimizer = make_optimizer(training)
    optimizer.build(model.trainable_variables)
    # Pre-training has no such factors.
    layer_decay = getattr(training, "layer_decay", 1.0)
    optimizer.rate_factors = rate_factors(weight_variables(model), layer_decay, settings.model)
    model.compile(
        optimizer=optimizer,
        # These steps have the losses of several heads; Keras knows losses of outputs.
        loss=None if settings.model.encoder_only or labels else PaddedMeanLoss(training.z_loss),
        jit_compile=False,
        steps_per_execution=settings.devices.steps_per_execution,
    )
    return model


def labelled_model(training: Any, labels: TaskAnswers, network: Mapping[str, Any]) -> Any:
    """Return a network of labels.

    Args:
        training: the section `finetune`.
        labels: answers of the tasks.
        network: arguments that all networks have.
    """
    heads = {"columns": LabelColumns(labels), "classifier_dropout": training.classifier_dropout}
    if network["model"].encoder_only:
        return LabelledEncoder(**heads, **network)
    return LabelledDecoder(lm_weight=training.lm_weight, **heads, **network)


def pretraining_heads(training: TrainingSettings) -> dict[str, Any]:
    """Return the arguments of `TrainedEncoder` for the heads of pre-training."""
    masked_lm = getattr(training, "masked_lm", None)  # fine-tuning has none
    if masked_lm is None:
        return {}
    return {
        "pair_classes": 2 if masked_lm.pair_task != "none" else 0,
        "boundary_weight": masked_lm.boundary_weight,
    }


def make_optimizer(training: TrainingSettings) -> Optimizer:
    """Return the optimizer of a stage that begins with its first update."""
    rate = schedule(training.learning_rate, steps=training.steps)
    if training.optimizer == "adafactor":
        return Adafactor(rate, max_grad_norm=training.max_grad_norm)
    return Adam(
        rate,
        variant=training.optimizer,
        betas=(training.adam_beta1, training.adam_beta2),
        epsilon=training.adam_epsilon,
        decay=training.weight_decay,
        max_grad_norm=training.max_grad_norm,
    )


def check_rows(training: TrainingSettings, devices: Devices) -> None:
    """Refuse a batch that replicas and micro-batches cannot share evenly.

    Raises:
        SettingsError: they cannot; the message names the divisor.
    """
    parts = devices.replicas * training.micro_batches
    if training.batch_size % parts:
        raise SettingsError(
            f"batch_size {training.batch_size} is no multiple of {parts}: {devices.replicas} "
            f"devices times micro_batches {training.micro_batches}; static shapes need parts of "
            "one size"
        )
