"""Checks that a network and its batches can be divided among the devices of `devices.mesh`."""

from collections.abc import Mapping

from t5repro.config.sections.devices import MeshSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.training import TrainingSettings


def check_mesh(
    mesh: MeshSettings,
    model: ModelSettings,
    embedding_rows: int,
    trainings: Mapping[str, TrainingSettings],
) -> None:
    """Raise ValueError if devices would have parts of different sizes.

    Args:
        mesh: the grid of devices.
        model: shape of the network.
        embedding_rows: rows of the embedding: ids in use rounded up.
        trainings: name of a section of settings -> section.
    """
    divided = {
        "model.num_heads": (model.num_heads, "heads"),
        "model.d_ff": (model.d_ff, "inner features"),
        "the rows of the embedding (vocab.vocab_size + vocab.extra_ids, rounded up)": (
            embedding_rows,
            "ids",
        ),
    }
    if model.family.has_generator:
        divided["the heads of the generator (model.generator_width)"] = (
            model.generator.num_heads,
            "heads",
        )
    for name, (size, parts) in divided.items():
        if size % mesh.model:
            raise ValueError(
                f"devices.mesh.model is {mesh.model}, which does not divide {name}, {size}: each "
                f"device needs the same number of {parts}; set it to a divisor of {size}"
            )
    for name, training in trainings.items():
        rows = mesh.data * training.micro_batches
        if mesh.data > 1 and training.batch_size % rows:
            raise ValueError(
                f"{name}.batch_size is {training.batch_size}, which is not a multiple of {rows}: "
                f"devices.mesh.data {mesh.data} times {name}.micro_batches "
                f"{training.micro_batches}; make it one, or set devices.mesh.data to a divisor of "
                "the rows of a part"
            )
