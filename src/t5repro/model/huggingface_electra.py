"""ELECTRA's two networks as two networks of Hugging Face: the generator is a folder in the other's.

Source: transformers ``ElectraForPreTraining`` and ``ElectraForMaskedLM``.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import CheckpointError
from t5repro.files import read_json
from t5repro.model.encoder_names import GENERATOR
from t5repro.model.huggingface_config import huggingface_shape

Arrays = Mapping[str, np.ndarray]

TABLES = "electra.embeddings."  # and their norm
HEADS_OF_GENERATOR = "generator_"  # begins the names of its heads
OUTPUT_MATRIX = "generator_lm_head.weight"  # the embedding


def split_networks(arrays: Arrays) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the arrays of the detector, and of the generator as a network of its own.

    Args:
        arrays: of `weight_names.to_huggingface`. Without a generator the second result is empty.
    """
    own = {
        name.removeprefix(GENERATOR): array
        for name, array in arrays.items()
        if name.startswith(GENERATOR)
    }
    detector = {name: array for name, array in arrays.items() if not name.startswith(GENERATOR)}
    heads = {n: array for n, array in detector.items() if n.startswith(HEADS_OF_GENERATOR)}
    if own:
        tables = {name: array for name, array in detector.items() if name.startswith(TABLES)}
        return detector, {**tables, **own}
    if heads and any(name.startswith("discriminator_") for name in detector):
        body = {name: array for name, array in detector.items() if name.startswith("electra.")}
        return {n: array for n, array in detector.items() if n not in heads}, {**body, **heads}
    return detector, {}


def with_generator(
    path: Path, generator: Arrays, model: ModelSettings, arrays: Arrays
) -> tuple[ModelSettings, dict[str, np.ndarray]]:
    """Return the shape and the arrays of a detector, completed by its generator's.

    Args:
        path: configuration of the generator.
        generator: its arrays.
        model: shape of the detector.
        arrays: its arrays.

    Raises:
        CheckpointError: the generator has another shape than a share of the detector's.
    """
    shape = huggingface_shape(path, read_json(path))
    generator = {name: array for name, array in generator.items() if name != OUTPUT_MATRIX}
    body = [name for name in generator if not name.startswith(HEADS_OF_GENERATOR)]
    shared = [n for n in body if n in arrays and np.array_equal(arrays[n], generator[n])]
    tables = [name for name in body if name.startswith(TABLES)]
    tying = "none"
    if set(tables) <= set(shared):
        tying = (
            "all" if len(shared) == len(body) and shape.d_model == model.d_model else "embeddings"
        )
    model = model.model_copy(
        update={
            "generator_width": shape.d_model / model.d_model,
            "generator_blocks": shape.num_encoder_layers / model.num_encoder_layers,
            "generator_tying": tying,
        }
    )
    expected = model.generator
    for name in ("d_model", "d_ff", "num_heads", "num_encoder_layers", "embedding_width"):
        if getattr(expected, name) != getattr(shape, name):
            raise CheckpointError(
                f"{path} makes a generator with {name} {getattr(shape, name)}, and one of this "
                f"width beside the detector has {getattr(expected, name)}; read each as a network "
                "of its own"
            )
    if tying == "all":
        heads = {n: array for n, array in generator.items() if n not in body}
        return model, {**arrays, **heads}
    drop = tables if tying == "embeddings" else []
    own = {GENERATOR + n: array for n, array in generator.items() if n not in drop}
    return model, {**arrays, **own}
