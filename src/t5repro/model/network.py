"""The common part of all networks: the embedding, and what Keras asks of a model.

A network is saved, cloned and exported as any Keras model (docs/predict.md). `quantize` and
`enable_lora` reach all of its layers, and the files of a network remember them.

Shape suffixes: B rows of the batch, L positions, D features of the embedding, V ids.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import keras
from keras import ops

from t5repro.config.sections.model import ModelSettings
from t5repro.errors import SettingsError, packages_of
from t5repro.model.dense import ClassHead, embedding_shape
from t5repro.model.initial_values import Draw, Initial, initial_matrix, normal, truncated_normal
from t5repro.model.int8 import check_mode, replace_by_int8
from t5repro.model.keras_config import Configured
from t5repro.model.layers import MatrixLayer, Tensor
from t5repro.model.lora import DEFAULT_MATRICES, Lora

PRECISIONS = {
    "float32": "float32",
    "bfloat16": "mixed_bfloat16",
    "float64": "float64",  # to compare engines; no setting of a run
}
UNUSED_LOGIT = -1e9  # a probability of 0
EXPORTED_LENGTH = 512  # positions of an exported row, or fewer if positions are learned
FEW_ROWS = 4  # turning the embedding takes longer than what products of so few rows gain by it


class Network(Configured, keras.Model):
    """The embedding, and the layers that a kind of network adds.

    Args:
        model: shape of the network.
        name: of the Keras model.
        embedding_rows: rows of the embedding; ids in use rounded up to a multiple of 128.
        seed: the run's seed; weights and noise follow from it.
        dtype: precision of activations, ``float32`` or ``bfloat16``; weights are float32.
    """

    # Layers with weights, in the order of creation; a network may lack some.
    weighted_layers: ClassVar[tuple[str, ...]]

    def __init__(
        self, model: ModelSettings, *, name: str, embedding_rows: int, seed: int, dtype: str
    ) -> None:
        super().__init__(name=name, dtype=PRECISIONS[dtype], autocast=False)
        self.settings = model
        self.embedding_rows = embedding_rows
        # Logits of rows from this one on are masked.
        self.rows_in_use = embedding_rows  # fewer for some imported weights (`checkpoints`)
        self.run_seed = seed
        self.is_int8 = False
        self.lora: Lora | None = None
        self._precision = PRECISIONS[dtype]

    def layer(self, path: str) -> dict[str, Any]:
        """Return the arguments of `SeededLayer` for the layer `path`."""
        return {"seed": self.run_seed, "path": path, "dtype": self._precision}

    @property
    def is_tied(self) -> bool:
        """Whether the output matrix is the embedding."""
        return True

    @property
    def form(self) -> tuple[bool, Lora | None]:
        """Whether the weights are int8, and LoRA: both shape a compiled program."""
        return self.is_int8, self.lora

    def features(self) -> Mapping[str, str | int]:
        """Return the int32 features of a call and their length: a number, or inputs or targets."""
        raise NotImplementedError

    def build(self, input_shape: Any) -> None:
        """Create all weights."""
        shape = (self.embedding_rows, embedding_shape(self.settings).d_model)
        self.embedding = self._weight("embedding", shape, normal(1.0))
        if not self.is_tied:
            t5_draw = truncated_normal(self.settings.d_model**-0.5)
            self.output_matrix = self._weight("output_matrix", shape[::-1], t5_draw)
        for name in self.weighted_layers:
            if (layer := getattr(self, name, None)) is not None:
                layer.build()
        self.built = True

    def _weight(self, name: str, shape: tuple[int, int], t5_draw: Draw) -> Any:
        initial = Initial(initial_matrix(self.settings, t5_draw), self.run_seed, name)
        return self.add_weight(name=name, shape=shape, initializer=initial, autocast=False)

    def embed(self, ids_BL: Tensor) -> Tensor:
        """Return the rows of the embedding, (batch, length, features); not scaled."""
        rows_BLD = ops.take(self.embedding, ids_BL, axis=0)
        if self.is_int8:
            scales_BL = ops.take(self.embedding_scale, ids_BL, axis=0)
            rows_BLD = ops.cast(rows_BLD, scales_BL.dtype) * scales_BL[..., None]
        return ops.cast(rows_BLD, self.compute_dtype)

    def embedded_ids(self) -> Tensor:
        """Return the embedding in the precision of activations, (ids, features)."""
        # Read on every call, not stored: training changes the weights.
        matrix_VD = ops.cast(ops.convert_to_tensor(self.embedding), self.compute_dtype)
        if not self.is_int8:
            return matrix_VD
        return matrix_VD * ops.cast(self.embedding_scale, self.compute_dtype)[:, None]

    def output(self) -> Tensor:
        """Return the matrix from features to ids in the precision of activations, (features, ids).

        A product of a step of decoding that transposes the embedding takes up to three times as
        long as one with this matrix, which is computed once.
        """
        if self.is_tied:
            return ops.transpose(self.embedded_ids())
        matrix_DV = ops.cast(self.output_matrix, self.compute_dtype)
        if not self.is_int8:
            return matrix_DV
        return matrix_DV * ops.cast(self.output_matrix_scale, self.compute_dtype)

    def output_of_steps(self, rows: int | None) -> Tensor | None:
        """Return `output` for steps of decoding, or None if they are faster with the embedding.

        Args:
            rows: of the product of a step; None if the graph does not know.
        """
        return None if rows is not None and rows <= FEW_ROWS else self.output()

    def get_config(self) -> dict[str, Any]:
        """Return the arguments, and what happened to the network since: see `from_config`."""
        lora = self.lora and [self.lora.rank, self.lora.alpha, list(self.lora.matrices)]
        changes = {"rows_in_use": self.rows_in_use, "lora": lora, "int8": self.is_int8}
        return super().get_config() | changes

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return a network of the seed's weights, with the LoRA and int8 of the saved one."""
        arguments = dict(config)
        rows_in_use = arguments.pop("rows_in_use")
        lora, is_int8 = arguments.pop("lora"), arguments.pop("int8")
        network = super().from_config(arguments)
        network.rows_in_use = rows_in_use
        if is_int8:
            network.quantize("int8")
        if lora:
            network.enable_lora(lora[0], lora[1], matrices=lora[2])
        return network

    def _matrix_layers(self) -> list[MatrixLayer]:
        """Return the layers of matrices; a shared one once."""
        # Keras has no public list of all nested layers.
        layers = [layer for layer in self._flatten_layers() if isinstance(layer, MatrixLayer)]
        return [layer for layer in layers if not isinstance(layer, ClassHead)]

    def quantize(
        self, mode: str = "int8", config: Any = None, filters: Any = None, **_: Any
    ) -> None:
        """Make all matrices and the embedding int8, for inference: `int8`.

        Norms, biases, tables of positions and types, and heads of answers stay float32.

        Raises:
            SettingsError: another mode, a config or filters.
        """
        check_mode(mode, config, filters)
        if self.is_int8:
            return
        for layer in self._matrix_layers():
            layer.quantize(mode)
        replace_by_int8(self, "embedding", axis=1)
        if not self.is_tied:
            replace_by_int8(self, "output_matrix", axis=0)
        self.is_int8 = True
        self._forget_functions()

    def enable_lora(
        self,
        rank: int,
        lora_alpha: float | None = None,
        *,
        matrices: Sequence[str] = DEFAULT_MATRICES,
    ) -> None:
        """Freeze the network, except its heads of answers, and add LoRA to some matrices.

        Args:
            rank: inner width of the narrow matrices; features.
            lora_alpha: their product is multiplied by this and divided by the rank; if absent, 1.
            matrices: their names: ``q``, ``k``, ``v``, ``o`` of attention; ``wi`` or ``wi_0`` and
                ``wi_1``, and ``wo`` of feed-forward layers; ``matrix`` of dense ones.

        Raises:
            SettingsError: the network has LoRA already, or no matrix with one of these names.
        """
        lora = Lora.of_arguments(rank, lora_alpha, matrices)
        layers = self._matrix_layers()
        existing = {name for layer in layers for name in layer.matrices}
        if self.lora is not None or not existing.issuperset(lora.matrices):
            raise SettingsError(
                f"enable_lora(matrices={lora.matrices}): the network has "
                + (f"LoRA of {self.lora.matrices} already" if self.lora else f"{sorted(existing)}")
            )
        trained = {
            id(weight)
            for layer in self._flatten_layers()
            if isinstance(layer, ClassHead)
            for weight in layer.weights
        }
        for weight in self.trainable_weights:
            weight.trainable = id(weight) in trained
        for layer in layers:
            if names := [name for name in layer.matrices if name in lora.matrices]:
                layer.enable_lora(rank, lora_alpha, matrices=names)
        self.lora = lora
        self._forget_functions()

    def _forget_functions(self) -> None:
        """Forget the functions that Keras has compiled for other weights."""
        self.train_function = self.test_function = self.predict_function = None

    @property
    def _default_save_signature(self) -> None:
        """No function besides the exported one: Keras would guess its features from `build`."""

    def input_signature(
        self, inputs_length: int = 0, targets_length: int = 0
    ) -> dict[str, keras.InputSpec]:
        """Return the features of a call for `export`, with any number of rows.

        Args:
            inputs_length: positions of a row; if 0, `EXPORTED_LENGTH`, or those that are learned.
            targets_length: of the targets of an encoder-decoder, or predicted positions; the same.
        """
        learned = self.settings.positions == "learned"
        longest = self.settings.max_positions if learned else EXPORTED_LENGTH
        lengths = {"inputs": inputs_length or longest, "targets": targets_length or longest}
        return {
            name: keras.InputSpec(
                shape=(None, lengths[axis] if isinstance(axis, str) else axis), dtype="int32"
            )
            for name, axis in self.features().items()
        }

    def export(
        self,
        filepath: Any,
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Any = None,
        **options: Any,
    ) -> None:
        """Write the function of `call` for a server, see `keras.Model.export`.

        Args:
            filepath: folder to write.
            format: see Keras.
            verbose: see Keras.
            input_signature: the features and their shapes; if absent, those of `input_signature`.
            options: see Keras.

        Raises:
            PackageError: TensorFlow, whose form a SavedModel is, is not installed.
        """
        if format == "tf_saved_model":
            with packages_of("cpu"):
                import tensorflow  # noqa: F401
        signature = input_signature or [self.input_signature()]
        super().export(filepath, format, verbose, input_signature=signature, **options)


def as_integers(features: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return features as int32.

    Under a strategy Keras first traces a model with the mean of all replicas' ids: floats.
    """
    return {name: ops.cast(value, "int32") for name, value in features.items()}


def mask_unused_rows(logits_BLV: Tensor, rows: int) -> Tensor:
    """Return logits that exclude the rows of the embedding that imported weights lack.

    Their zeros would exceed negative logits.

    Args:
        logits_BLV: float32, (batch, positions, rows of the embedding).
        rows: rows in use, the first ones.
    """
    total = logits_BLV.shape[-1]
    if rows == total:
        return logits_BLV
    return ops.where(ops.arange(total) < rows, logits_BLV, UNUSED_LOGIT)
