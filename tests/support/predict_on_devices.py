"""Prediction on several logical devices of one CPU; a program, for a process of its own.

python predict_on_devices.py REPLICAS SETTINGS WEIGHTS VOCABULARY FOLDER EXAMPLES...
"""

import json
import sys
from pathlib import Path
from typing import Any

from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.evaluate import PredictStage
from t5repro.engines.devices import prepare, set_environment
from t5repro.evaluate.predict import predict
from t5repro.jobs.predict import PredictJob


def main(replicas: int, settings: str, paths: list[Path]) -> None:
    """Predict, and print the number of rows of each program of a device."""
    device_settings = DevicesSettings(kind="mirrored" if replicas > 1 else "cpu")
    set_environment(device_settings)
    import tensorflow as tf

    if replicas > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        virtual_devices = [tf.config.LogicalDeviceConfiguration()] * replicas
        tf.config.set_logical_device_configuration(cpu, virtual_devices)
    devices = prepare(device_settings)
    rows = record_rows()
    weights, vocabulary, folder, *examples = paths
    predict(
        PredictJob(
            PredictStage.model_validate_json(settings),
            weights=[weights],
            examples={path.parent.name: path for path in examples},
            vocabulary=vocabulary,
            folder=folder,
            manifest=folder / "manifest.json",
        ),
        devices=devices,
    )
    print(json.dumps(rows))


def record_rows() -> list[int]:
    """Return a list to which every decoding program adds its number of rows when it is traced."""
    from t5repro.model.decode_cache import CrossDecoding

    rows: list[int] = []
    encode = CrossDecoding.encode

    def recording(decoding: Any, ids: Any, segments: Any) -> Any:
        rows.append(ids.shape[0])
        return encode(decoding, ids, segments)

    CrossDecoding.encode = recording
    return rows


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], [Path(word) for word in sys.argv[3:]])
