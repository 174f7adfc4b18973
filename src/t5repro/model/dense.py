"""Dense layers of an encoder and its heads: a matrix and a bias.

Shape suffixes: B rows of the batch, L positions, D features.
"""

from collections.abc import Sequence
from typing import Any

from keras import ops
from keras.config import floatx

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import SettingsError
from t5repro.model.initial_values import glorot_uniform, truncated_normal, zeros
from t5repro.model.int8 import check_mode
from t5repro.model.layers import MatrixLayer, Tensor


def embedding_shape(model: ModelSettings) -> ModelSettings:
    """Return the settings for layers of the width of the embedding."""
    return model.model_copy(update={"d_model": model.embedding_width or model.d_model})


class Dense(MatrixLayer):
    """A product with a matrix, and a bias.

    Args:
        model: shape of the network: initial values.
        inputs: features before the product.
        outputs: features after it.
        is_glorot: whether the matrix starts from TensorFlow's default, whatever the network's.
        layer: seed, path and precision, see `SeededLayer`.
    """

    def __init__(
        self,
        model: ModelSettings,
        *,
        inputs: int,
        outputs: int,
        is_glorot: bool = False,
        **layer: Any,
    ) -> None:
        super().__init__(model, **layer)
        self.shape = (inputs, outputs)
        self.is_glorot = is_glorot

    def build(self, input_shape: Any = None) -> None:
        """Create matrix and bias."""
        if self.is_glorot:
            self.matrix = self.weight("matrix", self.shape, glorot_uniform())
            self.matrices += ("matrix",)
        else:
            self.add_matrix("matrix", self.shape, truncated_normal(self.shape[0] ** -0.5))
        self.bias = self.weight("bias", self.shape[1:], zeros())

    def call(self, x_BLD: Tensor) -> Tensor:
        """Return the product, (batch, length, outputs)."""
        return self.multiply(x_BLD, self.matrices, self.bias)


class ClassHead(Dense):
    """A product with a matrix of few columns, and a bias, in float32, also in an int8 network."""

    def enable_lora(
        self, rank: int, lora_alpha: float | None = None, *, matrices: Sequence[str] = ()
    ) -> None:
        """Refuse: a head has as few columns as a narrow matrix would have, and trains whole.

        Raises:
            SettingsError: always.
        """
        raise SettingsError(f"{self.model_path} is a head of answers, which trains without LoRA")

    def quantize(self, mode: str = "int8", config: Any = None) -> None:
        """Check the mode; the matrix stays float32.

        Raises:
            SettingsError: another mode.
        """
        check_mode(mode, config)

    def call(self, x_BD: Tensor) -> Tensor:
        """Return a logit for each class, float32, (batch, classes), or more leading axes."""
        # oneDNN divides a product of few columns among threads by the size of the L2 cache, which
        # changes its bits (D-043). A sum for each class has one order.
        x_B1D = ops.expand_dims(ops.cast(x_BD, floatx()), -2)
        return ops.sum(x_B1D * ops.transpose(self.matrix), axis=-1) + self.bias
