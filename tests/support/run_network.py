"""What a person does with the network of a finished run; for JAX: python run_network.py FOLDER."""

import os
import sys
from pathlib import Path

import numpy as np
from finished_run import RUN, TEXTS, write_run

import t5repro
from t5repro.config.sections.devices import DevicesSettings
from t5repro.engines.devices import prepare


def check(run: t5repro.Run) -> None:
    """Save the network of a run, load it, and answer with int8 weights."""
    import keras

    def answers() -> tuple[list[str], np.ndarray]:
        found = run.predict(TEXTS, experiment="other", log_probabilities=True)
        return [one.prediction for one in found], np.array([one.log_probability for one in found])

    network = run.network("other")
    assert isinstance(network, keras.Model)
    texts, expected = answers()
    network.save("network.keras")
    loaded = t5repro.load_network(Path("network.keras"))
    for ours, theirs in zip(network.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(*map(keras.ops.convert_to_numpy, (ours, theirs)))
    network.quantize("int8")
    assert run.network("other") is network
    rounded_texts, rounded = answers()
    assert not np.array_equal(rounded, expected)
    equal = np.array(texts) == rounded_texts
    assert equal.sum() > len(TEXTS) / 2
    np.testing.assert_allclose(rounded[equal], expected[equal], rtol=0.01)


def main(folder: str) -> None:
    """Write a run whose engine is JAX into a folder, and check its network."""
    os.chdir(folder)
    prepare(DevicesSettings(engine="jax"))
    write_run(Path(), engine="jax")
    run = t5repro.load(RUN)
    assert isinstance(run, t5repro.Run)
    check(run)
    assert "tensorflow" not in sys.modules


if __name__ == "__main__":
    main(*sys.argv[1:])
