"""The head of ELECTRA's detector: whether a piece is the original one.

Shape suffixes: B rows of the batch, L positions, D features of the residual stream.
"""

from typing import Any

from t5repro.config.sections.model import ModelSettings
from t5repro.model.dense import ClassHead, Dense
from t5repro.model.layers import ACTIVATIONS, SeededLayer, Tensor


class DetectorHead(SeededLayer):
    """A dense layer and a logit for each position.

    Args:
        model: shape of the network.
        layer: seed, path and precision, see `SeededLayer`.

    Source: ELECTRA ``_get_discriminator_output``.
    """

    def __init__(self, model: ModelSettings, **layer: Any) -> None:
        super().__init__(**layer)
        width = model.d_model
        self.activation = ACTIVATIONS[model.feed_forward]
        self.transform = Dense(model, inputs=width, outputs=width, **self.inner("transform"))
        # The released code gives this layer no initial values, and TensorFlow's are Glorot's.
        self.logit = ClassHead(
            model, inputs=width, outputs=1, is_glorot=True, **self.inner("logit")
        )

    def build(self, input_shape: Any = None) -> None:
        """Create the weights."""
        self.transform.build()
        self.logit.build()

    def call(self, x_BLD: Tensor) -> Tensor:
        """Return the float32 logit that a piece was replaced, (batch, length).

        Args:
            x_BLD: output of the encoder.
        """
        return self.logit(self.activation(self.transform(x_BLD)))[..., 0]
