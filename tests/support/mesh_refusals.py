"""What a mesh of devices refuses, as a program on JAX: prints one message a line.

python mesh_refusals.py
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import tiny_training as tiny

from t5repro.config.sections.devices import DevicesSettings, MeshSettings
from t5repro.engines.devices import prepare
from t5repro.errors import DeviceError, SettingsError


def refusal(function: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Return the message of a call that is refused."""
    try:
        function(*arguments, **options)
    except (DeviceError, SettingsError) as error:
        return str(error)
    return "not refused"


def main() -> None:
    """Print the messages."""
    mesh = MeshSettings(data=2, model=4)
    prepare(DevicesSettings(engine="jax", mesh=mesh))
    from t5repro.engines.engine import engine
    from t5repro.model.layers import RMSNorm
    from t5repro.model.transformer import EncoderDecoder

    class Renamed(RMSNorm):
        """A layer with a weight of another name, in the place of a block's norm."""

        def build(self, input_shape: Any = None) -> None:
            """Create the weight."""
            self.gain = self.add_weight(name="gain", shape=(self.features,))

    layer = Renamed(32, epsilon=1e-6, seed=0, path="encoder/block_0/norm", dtype="float32")
    print(refusal(layer.build))
    shape: dict[str, Any] = {"embedding_rows": 128, "dropout_rate": 0.0, "seed": 0}
    six = tiny.SHAPE.model_copy(update={"num_heads": 6})
    print(refusal(EncoderDecoder, six, **shape))
    network = EncoderDecoder(tiny.SHAPE, **shape)
    sums = engine().compiled_sums(SimpleNamespace(network=network), lambda model, ids: ids.sum())
    print(refusal(sums, (np.full((3, 4), 5, np.int32),)))
    more = MeshSettings(data=4, model=4)  # JAX has started with eight devices
    print(refusal(prepare, DevicesSettings(engine="jax", mesh=more)))


if __name__ == "__main__":
    main()
