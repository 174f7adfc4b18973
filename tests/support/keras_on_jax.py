"""Networks as Keras models on the second engine: python keras_on_jax.py FOLDER.

The folder has pairs NAME.keras and NAME.npz, a saved network and rows for it. Each network is
loaded, saved, cloned, rounded to int8 and given LoRA; NAME.answers.npy is what it answers first.
"""

import sys
from pathlib import Path

import numpy as np

from t5repro.config.sections.devices import DevicesSettings
from t5repro.engines.devices import set_environment

set_environment(DevicesSettings(engine="jax"))
import keras  # noqa: E402

import t5repro  # noqa: E402
from t5repro.errors import PackageError  # noqa: E402


def check(path: Path) -> None:
    """Try everything with a network."""
    with np.load(path.with_suffix(".npz")) as stored:
        rows = dict(stored)
    network = t5repro.load_network(path)

    def answers(model: keras.Model) -> np.ndarray:
        outputs = model(rows)
        return np.asarray(outputs[0] if isinstance(outputs, tuple) else outputs)

    expected = answers(network)
    np.save(path.with_suffix(".answers.npy"), expected)
    again = path.with_name("again.keras")
    network.save(again)
    np.testing.assert_array_equal(answers(t5repro.load_network(again)), expected)
    clone = keras.models.clone_model(network)
    answers(clone)  # builds it
    clone.set_weights(network.get_weights())
    np.testing.assert_array_equal(answers(clone), expected)
    network.enable_lora(2)
    np.testing.assert_array_equal(answers(network), expected)
    network.quantize("int8")
    used = expected > -1e8
    rounded = answers(network)
    assert not np.array_equal(rounded, expected)
    assert np.abs(rounded - expected)[used].max() < 0.05 * np.abs(expected[used]).max()
    network.save(again)
    np.testing.assert_array_equal(answers(t5repro.load_network(again)), rounded)
    try:
        network.export(path.with_suffix(""))
    except PackageError as error:
        print(error)


for file in sorted(Path(sys.argv[1]).glob("*.keras")):
    check(file)
assert keras.backend.backend() == "jax"
assert "tensorflow" not in sys.modules
