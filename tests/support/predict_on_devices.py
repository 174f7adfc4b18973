"""Prediction on several logical devices of one CPU; a program, for a process of its own.

python predict_on_devices.py REPLICAS SETTINGS WEIGHTS VOCABULARY FOLDER EXAMPLES...
"""

import json
import sys
from pathlib import Path
from typing import Any

from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.evaluate import PredictStage
from t5repro.evaluate.predict import predict
from t5repro.model.devices import prepare, set_environment


def main(replicas: int, settings: str, places: list[Path]) -> None:
    """Predict, and print on how many rows each program of a device was made."""
    asked = DevicesSettings(kind="mirrored" if replicas > 1 else "cpu")
    set_environment(asked)
    import tensorflow as tf

    if replicas > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        parts = [tf.config.LogicalDeviceConfiguration()] * replicas
        tf.config.set_logical_device_configuration(cpu, parts)
    devices = prepare(asked)
    rows = note_rows()
    weights, vocabulary, folder, *examples = places
    predict(
        PredictStage.model_validate_json(settings),
        weights=[weights],
        examples={path.parent.name: path for path in examples},
        vocabulary=vocabulary,
        folder=folder,
        manifest=folder / "manifest.json",
        devices=devices,
    )
    print(json.dumps(rows))


def note_rows() -> list[int]:
    """Return a list that gets the rows of every program that decodes, when it is made."""
    from t5repro.model import beam, decode

    rows: list[int] = []
    read_inputs = decode.read_inputs

    def noting(model: Any, ids: Any, segments: Any) -> Any:
        rows.append(ids.shape[0])
        return read_inputs(model, ids, segments)

    beam.read_inputs = decode.read_inputs = noting
    return rows


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], [Path(word) for word in sys.argv[3:]])
