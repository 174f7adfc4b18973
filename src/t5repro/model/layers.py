"""The components of a block: norms, dropout, feed-forward; all arithmetic is `keras.ops`.

Paper section 2.1; constants from the released code.

Shape suffixes: B rows of the batch, L positions, M some of them, D features of the residual stream,
F features inside the feed-forward layer.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
from keras import ops
from keras.config import floatx

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import SettingsError
from t5repro.model.gelu import gelu, gelu_tanh
from t5repro.model.initial_values import (
    Draw,
    Initial,
    he_uniform,
    initial_matrix,
    ones,
    truncated_normal,
    zeros,
)
from t5repro.model.int8 import check_mode, replace_by_int8, scale_name
from t5repro.model.keras_config import Configured
from t5repro.model.lora import Lora, names_of
from t5repro.randomness import single_seed

Tensor = Any  # Keras has no one tensor type


class SeededLayer(Configured, keras.layers.Layer):
    """A layer with weights and noise that are functions of the run's seed and its own path.

    Args:
        seed: the run's seed.
        path: path in the model, such as ``encoder/block_0/feed_forward``; its last part is the
            name of the layer.
        dtype: precision of activations, as Keras calls it.
    """

    def __init__(self, *, seed: int, path: str, dtype: Any) -> None:
        # Arrays are cast where they are used: position biases stay float32 under bfloat16.
        super().__init__(name=path.rsplit("/", 1)[-1], dtype=dtype, autocast=False)
        self.seed = seed
        self.model_path = path
        self._precision = dtype

    def inner(self, name: str) -> dict[str, Any]:
        """Return the arguments of `SeededLayer` for the layer `name` inside this one."""
        path = f"{self.model_path}/{name}"
        return {"seed": self.seed, "path": path, "dtype": self._precision}

    def weight(self, name: str, shape: tuple[int, ...], draw: Draw) -> Any:
        """Create the trainable weight `name`; `build` of the layer calls this."""
        initial = Initial(draw, self.seed, f"{self.model_path}/{name}")
        return self.add_weight(name=name, shape=shape, initializer=initial, autocast=False)


def matmul(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multiply the last axis of `x` with a matrix, and add a bias if there is one.

    The leading axes are folded first: then it is one matrix product, and so is its gradient. The
    product of a three-axis array would be computed row by row.
    """
    shape = ops.shape(x)
    flat = ops.matmul(ops.reshape(x, (-1, shape[-1])), ops.cast(weight, x.dtype))
    product = ops.reshape(flat, (*shape[:-1], weight.shape[-1]))
    # After the reshape: Grappler would fuse product and bias to an operation whose bits are not
    # measured (D-043).
    return product if bias is None else product + ops.cast(bias, x.dtype)


def products_of_rows(x: Tensor, rows: Tensor) -> Tensor:
    """Return `matmul` with a transposed matrix, (ids, features), such as the scores of all ids.

    Derived automatically, the gradient of the matrix would be computed transposed, a quarter
    slower, and then turned.
    """
    shape = ops.shape(x)
    product = ops.custom_gradient(_products_and_gradients)
    return ops.reshape(product(ops.reshape(x, (-1, shape[-1])), rows), (*shape[:-1], rows.shape[0]))


def _products_and_gradients(x: Tensor, rows: Tensor) -> tuple[Tensor, Callable[..., Any]]:
    def gradient(*arguments: Tensor, upstream: Tensor | None = None) -> tuple[Tensor, Tensor]:
        (upstream,) = arguments if upstream is None else (upstream,)
        return ops.matmul(upstream, rows), ops.matmul(ops.transpose(upstream), x)

    return ops.matmul(x, ops.transpose(rows)), gradient


def inverse_root(x: Tensor) -> Tensor:
    """Return 1 / sqrt(x) for x > 0, with the same bits on every x86-64 CPU.

    IEEE 754 fixes the bits of roots and quotients. TensorFlow computes `rsqrt` and `reciprocal`
    from the instructions RSQRTPS and RCPPS instead, which each maker of CPUs approximates in its
    own way.
    """
    # Grappler turns 1 / sqrt(x), x**-0.5 and 1 / x into those operations, but not this quotient.
    return ops.sqrt(x) / x


class RMSNorm(SeededLayer):
    """Scale each position to mean square 1, then each feature by a weight.

    Statistics are float32 under every precision.

    Source: paper section 2.1; mesh ``layer_norm`` / T5 ``T5LayerNorm``: no mean, no bias.
    """

    def __init__(self, features: int, *, epsilon: float, **layer: Any) -> None:
        super().__init__(**layer)
        self.features = features
        self.epsilon = epsilon

    def build(self, input_shape: Any = None) -> None:
        """Create the scale."""
        self.scale = self.weight("scale", (self.features,), ones())

    def call(self, x_BLD: Tensor) -> Tensor:
        """Return the normalised array, shape (batch, length, features)."""
        # In bfloat16 the mean square of hundreds of features would lose its last digits.
        x = ops.cast(x_BLD, floatx())
        mean_square = ops.mean(ops.square(x), axis=-1, keepdims=True)
        normal = x * inverse_root(mean_square + self.epsilon)
        return ops.cast(normal * self.scale, self.compute_dtype)


class LayerNorm(RMSNorm):
    """Shift and scale each position to mean 0 and variance 1, then scale and shift each feature.

    Source: Ba et al., 2016; GPT ``norm``.
    """

    def build(self, input_shape: Any = None) -> None:
        """Create scale and bias."""
        super().build(input_shape)
        self.bias = self.weight("bias", (self.features,), zeros())

    def call(self, x_BLD: Tensor) -> Tensor:
        """Return the normalised array, shape (batch, length, features)."""
        x = ops.cast(x_BLD, floatx())
        # Two passes: the mean of squares minus the square of the mean would cancel digits.
        centred = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        normal = centred * inverse_root(variance + self.epsilon)
        return ops.cast(normal * self.scale + self.bias, self.compute_dtype)


def norm_layer(model: ModelSettings, **layer: Any) -> RMSNorm:
    """Return the norm of the residual stream of a network, see `RMSNorm`."""
    kind = LayerNorm if model.norm == "layer" else RMSNorm
    return kind(model.d_model, epsilon=model.norm_epsilon, **layer)


class Dropout(SeededLayer):
    """Drop features of a row, the same ones at all its positions or others at each.

    The noise of T5's released code has one value per row and feature instead of one per position,
    which also makes it cheap to draw.

    Args:
        rate: share of features that are dropped.
        per_position: whether each position has its own noise.
        layer: seed, path and precision, see `SeededLayer`.

    Source: mesh ``Unitransformer`` with ``dropout_broadcast_dims`` = length.
    """

    LENGTH_AXIS = -2  # of (batch, length, features) and of (batch, heads, queries, keys)

    def __init__(self, rate: float, *, per_position: bool = False, **layer: Any) -> None:
        super().__init__(**layer)
        self.rate = rate
        self.per_position = per_position
        if rate > 0:
            # A seed for each layer: the noise does not depend on the order of the layers.
            noise_seed = single_seed(self.seed, "dropout", self.model_path)
            self.noise = keras.random.SeedGenerator(noise_seed, name="noise")
        self.built = True

    def call(self, x: Tensor, training: bool = False) -> Tensor:
        """Return `x`, in training with dropped features and the kept ones scaled up."""
        if not training or self.rate == 0:
            return x
        shape = list(ops.shape(x))
        if not self.per_position:
            shape[self.LENGTH_AXIS] = 1
        uniform = keras.random.uniform(shape, seed=self.noise, dtype="float32")
        keep = ops.cast(uniform >= self.rate, x.dtype)
        # Scaling the mask, which is usually smaller, saves a pass over `x`.
        return x * (keep * (1.0 / (1.0 - self.rate)))


def dropout_layer(model: ModelSettings, rate: float, **layer: Any) -> Dropout:
    """Return a `Dropout` of a share of features with the noise of this network."""
    return Dropout(rate, per_position=model.dropout_noise == "per_position", **layer)


def silu(x: Tensor) -> Tensor:
    """Return x * sigmoid(x), with the same bits on every x86-64 CPU (D-043).

    The tangent has measured bits; TensorFlow's sigmoid has not.
    """
    return x * (0.5 + 0.5 * ops.tanh(0.5 * x))


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {  # by `model.feed_forward`
    "relu": ops.relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "gated_gelu": gelu_tanh,
    "swiglu": silu,
}


class MatrixLayer(SeededLayer):
    """A layer of matrices, which may be int8 and have LoRA.

    Args:
        model: shape of the network: biases, initial values.
        layer: seed, path and precision, see `SeededLayer`.
    """

    def __init__(self, model: ModelSettings, **layer: Any) -> None:
        super().__init__(**layer)
        self.model = model
        self.matrices: tuple[str, ...] = ()
        self.is_int8 = False
        self.lora: Lora | None = None

    def add_matrix(self, name: str, shape: tuple[int, int], t5_draw: Draw) -> None:
        """Create the matrix `name`.

        Args:
            name: of the weight and of the attribute.
            shape: features before and after the product.
            t5_draw: see `initial_matrix`.
        """
        setattr(self, name, self.weight(name, shape, initial_matrix(self.model, t5_draw)))
        self.matrices += (name,)

    def multiply(self, x: Tensor, names: Sequence[str], bias: Tensor | None) -> Tensor:
        """Return the product of `x` with matrices side by side, and a bias added.

        One product of several matrices is faster than one each, forward and backward.
        """
        matrices = self._side_by_side(names)
        if not self.is_int8 and self.lora is None:
            return matmul(x, matrices, bias)
        product = matmul(x, matrices)
        if self.is_int8:
            scales = self._side_by_side([scale_name(name) for name in names])
            product = product * ops.cast(scales, product.dtype)
        if self.lora is not None:
            changes = [self._low_rank(x, name, self.lora) for name in names]
            product = product + ops.concatenate(changes, axis=-1)
        return product if bias is None else product + ops.cast(bias, x.dtype)

    def _low_rank(self, x: Tensor, name: str, lora: Lora) -> Tensor:
        if name not in lora.matrices:
            width = getattr(self, name).shape[-1]
            return ops.zeros((*ops.shape(x)[:-1], width), dtype=x.dtype)
        down, up = (getattr(self, part) for part in names_of(name))
        return matmul(matmul(x, down), up) * lora.scale

    def _side_by_side(self, names: Sequence[str]) -> Any:
        first, *further = [getattr(self, name) for name in names]
        if not further:
            return first
        return ops.concatenate(
            [ops.convert_to_tensor(weight) for weight in (first, *further)], axis=-1
        )

    def enable_lora(
        self, rank: int, lora_alpha: float | None = None, *, matrices: Sequence[str] = ()
    ) -> None:
        """Freeze matrices, and train two narrow ones for each; the output stays equal at first.

        Args:
            rank: inner width of the narrow ones; features.
            lora_alpha: their product is multiplied by this and divided by the rank; if absent, 1.
            matrices: names of the frozen ones; if empty, all of the layer.

        Raises:
            SettingsError: the rank is not positive, or LoRA is enabled already.
        """
        lora = Lora.of_arguments(rank, lora_alpha, matrices or self.matrices)
        if self.lora is not None:
            raise SettingsError(f"{self.model_path} has LoRA of rank {self.lora.rank} already")
        self._tracker.unlock()  # as Keras's own layers do: weights are added after `build`
        for name in lora.matrices:
            matrix = getattr(self, name)
            matrix.trainable = False
            shapes = ((matrix.shape[0], rank), (rank, matrix.shape[1]))
            for part, shape, draw in zip(
                names_of(name), shapes, (he_uniform(), zeros()), strict=True
            ):
                setattr(self, part, self.weight(part, shape, draw))
        self._tracker.lock()
        self.lora = lora

    def quantize(self, mode: str = "int8", config: Any = None) -> None:
        """Replace the matrices by int8 ones with a scale for each column; for inference.

        Raises:
            SettingsError: another mode.
        """
        check_mode(mode, config)
        if not self.is_int8:
            for name in self.matrices:
                replace_by_int8(self, name, axis=0)
            self.is_int8 = True


class Projections(MatrixLayer):
    """A layer of matrices, with biases if the network has them."""

    def add_matrix(self, name: str, shape: tuple[int, int], t5_draw: Draw) -> None:
        """Create the matrix `name`, and ``<name>_bias`` if the network has biases."""
        super().add_matrix(name, shape, t5_draw)
        if self.model.biases:
            bias = f"{name}_bias"
            setattr(self, bias, self.weight(bias, shape[1:], zeros()))

    def product(self, x: Tensor, *names: str) -> Tensor:
        """Return the product of `x` with matrices side by side, biases added."""
        biases = [f"{name}_bias" for name in names] if self.model.biases else []
        return self.multiply(x, names, self._side_by_side(biases) if biases else None)


class FeedForward(Projections):
    """Two matrices with an activation in between; a gated one has a third matrix.

    Args:
        model: shape of the network: activation, biases, initial values.
        d_ff: inner width; features.
        dropout_rate: share of inner features dropped in training, if the network drops any.
        layer: seed, path and precision, see `SeededLayer`.

    Source: paper section 2.1; T5 1.1 ``DenseGatedGeluDense`` with the tanh approximation; SwiGLU:
    Shazeer, 2020; GPT ``mlp``.
    """

    def __init__(
        self, model: ModelSettings, *, d_ff: int, dropout_rate: float, **layer: Any
    ) -> None:
        super().__init__(model, **layer)
        self.d_ff = d_ff
        rate = dropout_rate if model.activation_dropout else 0.0
        self.dropout = dropout_layer(model, rate, **self.inner("dropout"))

    def build(self, input_shape: Any = None) -> None:
        """Create the matrices and biases."""
        d_model = self.model.d_model
        self.inward = ("wi_0", "wi_1") if self.model.gated else ("wi",)
        for name in self.inward:
            self.add_matrix(name, (d_model, self.d_ff), truncated_normal(d_model**-0.5))
        self.add_matrix("wo", (self.d_ff, d_model), truncated_normal(self.d_ff**-0.5))

    def call(self, x_BLD: Tensor, training: bool = False) -> Tensor:
        """Return an array of the shape of the input, (batch, length, features)."""
        hidden_BLF = ACTIVATIONS[self.model.feed_forward](self.product(x_BLD, self.inward[0]))
        # A gated layer multiplies the activation with a second, linear projection.
        for name in self.inward[1:]:
            hidden_BLF = hidden_BLF * self.product(x_BLD, name)
        return self.product(self.dropout(hidden_BLF, training=training), "wo")


def option_rows(features: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return features in which each option of an example is a row of its own.

    Args:
        features: of examples, with an axis of options after the axis of rows if a task has them.
    """
    return {
        name: ops.reshape(values, (-1, values.shape[-1])) if len(values.shape) == 3 else values
        for name, values in features.items()
    }


def gather_positions(x_BLD: Tensor, positions_BM: Tensor) -> Tensor:
    """Return the vectors at some positions of each row, (batch, some positions, features).

    Args:
        x_BLD: vectors of all positions.
        positions_BM: int32.
    """
    rows, length, features = ops.shape(x_BLD)
    # A gather from flat rows: `take_along_axis` would expand the positions to all features.
    starts_B1 = ops.arange(rows, dtype="int32")[:, None] * length
    return ops.take(ops.reshape(x_BLD, (-1, features)), starts_B1 + positions_BM, axis=0)
