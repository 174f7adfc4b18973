"""The network of a stage with its loss, step and optimizer; checks of the batch and replicas."""

import math
from typing import Any

import keras

from t5repro.config.sections.devices import Remat
from t5repro.config.sections.training import TrainingSettings
from t5repro.engines.devices import Devices
from t5repro.errors import SettingsError
from t5repro.model.block import Block
from t5repro.model.checkpoints import weight_variables
from t5repro.model.labels import NO_COLUMNS, LabelColumns
from t5repro.systems.networks import NETWORKS
from t5repro.systems.training import Training
from t5repro.train.adafactor import Adafactor
from t5repro.train.adam import Adam
from t5repro.train.adamax import Adamax
from t5repro.train.layer_decay import gradient_factors, rate_factors
from t5repro.train.optimizer import Optimizer
from t5repro.train.schedules import schedule
from t5repro.train.step import TrainedModel
from t5repro.train.trainable import adapter_width, freeze


def compiled_model(
    system: Training[Any],
    settings: Any,
    training: TrainingSettings,
    *,
    seed: int,
    columns: LabelColumns = NO_COLUMNS,
    layer_decay: float = 1.0,
    decays_gradients: bool = False,
) -> TrainedModel:
    """Return a freshly initialised network with its loss and its optimizer.

    Args:
        system: how the family of the network is trained.
        settings: of the stage.
        training: the section of the stage itself: steps, batch, learning rate.
        seed: of the initial weights and the dropout noise.
        columns: of the head of a network that writes no text.
        layer_decay: factor of the learning rate of a layer; 1 means none.
        decays_gradients: whether it is the factor of gradients instead.
    """
    shape = {
        "embedding_rows": settings.vocab.embedding_rows,
        "dropout_rate": training.dropout_rate,
        "seed": seed,
        "dtype": settings.devices.precision,
        "adapter_width": adapter_width(training),
    }
    heads = system.heads(settings, columns)
    network = NETWORKS[system.family](settings.model, heads, shape)
    recompute_blocks(network, settings.devices.remat)
    loss = system.loss(settings, columns)
    model = model_class()(
        network, loss, normaliser=training.loss_normaliser, micro_batches=training.micro_batches
    )
    freeze(network, training)
    optimizer = make_optimizer(training)
    optimizer.build(model.trainable_variables)
    if decays_gradients:
        factors = gradient_factors(weight_variables(network), layer_decay, settings.model)
        optimizer.gradient_factors = factors
    else:
        factors = rate_factors(weight_variables(network), layer_decay, settings.model)
        optimizer.rate_factors = factors
    model.compile(
        optimizer=optimizer,
        loss=loss.keras_loss,
        jit_compile=False,
        steps_per_execution=settings.devices.steps_per_execution,
    )
    return model


def recompute_blocks(network: Any, remat: Remat) -> None:
    """Set which activations of each block the backward pass computes again."""
    for layer in network._flatten_layers():  # Keras has no public list of all nested layers
        if isinstance(layer, Block):
            layer.remat = remat


def model_class() -> type[TrainedModel]:
    """Return the class of trained models of the engine."""
    if keras.backend.backend() == "jax":
        from t5repro.train.jax_step import JaxModel

        return JaxModel
    from t5repro.train.tensorflow_step import TensorFlowModel

    return TensorFlowModel


def make_optimizer(training: TrainingSettings) -> Optimizer:
    """Return the optimizer of a stage that begins with its first update."""
    rate = schedule(training.learning_rate, steps=training.steps)
    if training.optimizer == "adafactor":
        return Adafactor(rate, max_grad_norm=training.max_grad_norm)
    options: dict[str, Any] = {
        "betas": (training.adam_beta1, training.adam_beta2),
        "epsilon": training.adam_epsilon,
        "decay": training.weight_decay,
        "max_grad_norm": training.max_grad_norm,
    }
    if training.optimizer in ("adamax", "adamax_mt_dnn"):
        return Adamax(rate, corrects_bias=training.optimizer == "adamax", **options)
    return Adam(rate, variant=training.optimizer, **options)


def check_rows(training: TrainingSettings, devices: Devices) -> None:
    """Refuse a batch that replicas, micro-batches and kinds of rows cannot share evenly.

    Raises:
        SettingsError: they cannot; the message names the divisor.
    """
    parts = {
        "devices": devices.replicas,
        "micro_batches": training.micro_batches,
        "directions of reading": training.row_kinds,
    }
    divisor = math.prod(parts.values())
    if training.batch_size % divisor:
        factors = " times ".join(f"{number} {name}" for name, number in parts.items() if number > 1)
        raise SettingsError(
            f"batch_size {training.batch_size} is not a multiple of {divisor}: {factors}; "
            "static shapes need parts of one size"
        )
