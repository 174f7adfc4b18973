"""Reads the TensorFlow checkpoints of the T5 release, with Adafactor's moments and step."""

from pathlib import Path

import numpy as np

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import ArtifactError, DeviceError
from t5repro.model import leftovers
from t5repro.model.weight_names import (
    Arrays,
    float32_array,
    names_of_any_t5,
    shape_of,
    weight_names,
)


def read(folder: Path) -> tuple[ModelSettings, Arrays, Arrays]:
    """Return the shape, the weights and the optimizer's moments and step of the newest checkpoint.

    Raises:
        ArtifactError: it is incomplete.
        CheckpointError: it is not of a T5 encoder-decoder.
        DeviceError: TensorFlow is not installed.
    """
    prefix = _newest_checkpoint(folder)
    try:
        import tensorflow as tf
    except ImportError as error:
        raise DeviceError(
            f"{prefix} is a TensorFlow checkpoint, and TensorFlow is not installed here; read it "
            "in an environment of `make setup`, or take the weights from Hugging Face"
        ) from error
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        names = set(reader.get_variable_to_shape_map())
        arrays = {
            name: np.asarray(reader.get_tensor(name)) for name in names if "_slot_m" not in name
        }
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
        raise ArtifactError(
            f"{prefix} is not a complete TensorFlow checkpoint ({error}); download it again"
        ) from error
    leftovers.check_numbers(prefix, arrays)
    arrays = {_first_release_name(name): array for name, array in arrays.items()}
    weights = {
        name.path: float32_array(arrays[name.released], transposed=False)
        for name in names_of_any_t5(arrays)
        if name.released in arrays
    }
    # The released checkpoints have no configuration: the arrays show the shape.
    model = shape_of(weights)
    leftovers.check_names(prefix, arrays, [name.released for name in weight_names(model)])
    return model, weights, _slots(model, weights, arrays)


def _newest_checkpoint(folder: Path) -> Path:
    """Return the prefix of the checkpoint with the most steps."""

    def steps(path: Path) -> int:
        number = path.stem.rpartition("-")[2]
        return int(number) if number.isdigit() else -1

    newest = max(sorted(folder.glob("*.index")), key=steps)
    return newest.with_suffix("")


def _first_release_name(name: str) -> str:
    """Return a name as in the first releases; later ones have other names for the norms."""
    components = name.split("/")
    if components[0] == "encoder" or components[0] == "decoder":
        last = "final_layer_norm" if len(components) == 3 else "layer_norm"
        components = [last if component == "rms_norm" else component for component in components]
    return "/".join(components)


def _slots(model: ModelSettings, weights: Arrays, arrays: Arrays) -> Arrays:
    """Return the optimizer's moments and step by our names, or nothing if one is missing.

    In the released code `vr` is the mean over the largest dimension and `vc` the mean over the
    second largest, whichever of the two are the rows.

    Source: mesh ``AdafactorOptimizer.apply_grad``.
    """
    if "global_step" not in arrays:
        return {}
    slots = {"iteration": np.asarray(arrays["global_step"], np.int64).reshape(())}
    for name in weight_names(model):
        slot = name.path.replace("/", ".")
        if (moment := arrays.get(f"{name.released}_slot_v")) is not None:  # not factored
            slots[f"{slot}.moment"] = np.asarray(moment, np.float32)
            continue
        over_largest = arrays.get(f"{name.released}_slot_vr")
        over_second = arrays.get(f"{name.released}_slot_vc")
        if over_largest is None or over_second is None:
            return {}
        # Ours are named by axis: `row_moment` has a value for each row, the mean over columns.
        rows, columns = weights[name.path].shape
        row, column = (over_largest, over_second) if columns > rows else (over_second, over_largest)
        slots[f"{slot}.row_moment"] = np.asarray(row, np.float32)
        slots[f"{slot}.column_moment"] = np.asarray(column, np.float32)
    return slots
