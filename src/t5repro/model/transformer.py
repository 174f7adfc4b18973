"""The Transformers of T5 (paper sections 2.1 and 3.2), on packed rows.

Two stacks, two stacks with one set of weights, or a decoder-only network, causal or with a fully
visible prefix. A row may contain several examples; segment ids separate them in every mask. Weights
are functions of the run's seed. To add a variant, add its switch to `ModelSettings` and its block
here; published shapes are data in `config/published_sizes.py`.

Shape suffixes: B rows of the batch, L positions, M positions of the encoder, D features of the
residual stream, H heads, V ids.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from t5repro.config.sections.model import ModelSettings
from t5repro.model.attention import (
    NoBias,
    RelativeBias,
    bias_of_block,
    causal_mask,
    prefix_mask,
    segment_mask,
)
from t5repro.model.block import Block, relative_bias_layer
from t5repro.model.dense import ClassHead
from t5repro.model.layers import (
    Draw,
    Initial,
    RMSNorm,
    SeededLayer,
    Tensor,
    at_positions,
    dropout_layer,
    initial_matrix,
    matmul,
    norm_layer,
    normal,
    option_rows,
    truncated_normal,
)
from t5repro.model.learned_positions import LearnedPositions, positions_in_segments
from t5repro.model.rotary import Rotation, rotation

PRECISIONS = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
UNUSED_LOGIT = -1e9  # a probability of 0


class Stack(SeededLayer):
    """The encoder or the decoder: positions, dropout, blocks, a last norm, dropout.

    Learned positions are added to the embedding. With norms after residual connections the last
    norm and dropout are those of the top block.

    Args:
        model: shape of the network.
        is_decoder: whether positions attend to earlier positions only, and to an encoder.
        dropout_rate: share of features dropped in training.
        adapter_width: inner width of the adapters; features; 0 means none.
        shared_with: stack whose norms, self-attention, feed-forward and position biases this one
            uses; if absent, the stack has its own.
        layer: seed, path and precision, see `SeededLayer`.

    Source: the released configuration of shared parameters builds the encoder in the decoder's
    variable scope.
    """

    def __init__(
        self,
        model: ModelSettings,
        *,
        is_decoder: bool,
        dropout_rate: float,
        adapter_width: int = 0,
        shared_with: "Stack | None" = None,
        **layer: Any,
    ) -> None:
        super().__init__(**layer)
        self.settings = model
        self.is_decoder = is_decoder
        self.has_cross_attention = is_decoder and not model.decoder_only
        layers = model.num_decoder_layers if is_decoder else model.num_encoder_layers
        self.relative_bias: RelativeBias | None = None
        if model.relative_position_bias == "per_stack" and model.positions == "relative":
            shared_bias = shared_with.relative_bias if shared_with else None
            self.relative_bias = relative_bias_layer(
                model, is_decoder, shared_bias, **self.inner("relative_bias")
            )
        self.blocks: list[Block] = [
            Block(
                model,
                is_decoder=is_decoder,
                dropout_rate=dropout_rate,
                adapter_width=adapter_width,
                shared_with=shared_with.blocks[number] if shared_with else None,
                **self.inner(f"block_{number}"),
            )
            for number in range(layers)
        ]
        self.positions: LearnedPositions | None = None
        if model.positions == "learned":
            self.positions = (
                shared_with.positions
                if shared_with
                else LearnedPositions(model, **self.inner("positions"))
            )
        self.first_dropout = dropout_layer(model, dropout_rate, **self.inner("first_dropout"))
        self.norm: RMSNorm | None = None
        if model.norm_placement == "pre":
            self.norm = shared_with.norm if shared_with else norm_layer(model, **self.inner("norm"))
            self.last_dropout = dropout_layer(model, dropout_rate, **self.inner("last_dropout"))

    def build(self, input_shape: Any = None) -> None:
        """Create the weights of the blocks."""
        if self.relative_bias:
            self.relative_bias.build()
        for block in self.blocks:
            block.build()
        for layer in (self.norm, self.positions):
            if layer and not layer.built:
                layer.build()

    def position_biases(self, bias_of: Callable[[RelativeBias | NoBias], Tensor]) -> list[Tensor]:
        """Return `bias_of` each block's table; of one table if the blocks share it."""
        if self.settings.positions != "relative":
            return [bias_of(NoBias())]
        tables = [self.relative_bias, *(block.relative_bias for block in self.blocks)]
        return [bias_of(table) for table in tables if table]

    def rotation(self, length: int) -> Rotation | None:
        """Return the angles of the first positions of a row; None if they are not rotary."""
        is_rotary = self.settings.positions == "rotary"
        return rotation(length, self.settings.d_kv) if is_rotary else None

    def placed(self, x_BLD: Tensor, positions: Callable[[], Tensor]) -> Tensor:
        """Return embedded ids with the vectors of their positions added, if these are learned.

        Args:
            x_BLD: embedded ids.
            positions: returns the position of each id in its example, int32, (batch or 1, length).
        """
        return x_BLD + self.positions(positions()) if self.positions else x_BLD

    def last_norm(self, x_BLD: Tensor, training: bool = False) -> Tensor:
        """Return the output of the stack from that of its top block."""
        if self.norm is None:
            return x_BLD
        return self.last_dropout(self.norm(x_BLD), training=training)

    def self_biases(self, segments_BL: Tensor, prefix_BL: Tensor | None = None) -> list[Tensor]:
        """Return the sums of position bias and masks of self-attention, see `position_biases`.

        Each is float32, (batch, 1 or heads, length, length).

        Args:
            segments_BL: number of the example at each position, 0 for padding.
            prefix_BL: 1 at positions that earlier ones see too; for a decoder.
        """
        length = segments_BL.shape[1]
        segments = segment_mask(segments_BL, segments_BL)
        biases = self.position_biases(lambda table: table(length=length) + segments)
        if not self.is_decoder:
            return biases
        order = causal_mask(length) if prefix_BL is None else prefix_mask(prefix_BL)
        return [bias_BHLL + order for bias_BHLL in biases]

    def call(
        self,
        x_BLD: Tensor,
        segments_BL: Tensor,
        encoded_BMD: Tensor | None = None,
        encoded_segments_BM: Tensor | None = None,
        prefix_BL: Tensor | None = None,
        training: bool = False,
    ) -> Tensor:
        """Return the stack's output.

        Args:
            x_BLD: embedded ids, (batch, length, features).
            segments_BL: number of the example at each position, 0 for padding.
            encoded_BMD: output of the encoder; for a decoder.
            encoded_segments_BM: segments of the encoder's row; for a decoder.
            prefix_BL: 1 at positions that earlier ones see too; for a decoder-only network.
            training: apply dropout.
        """
        biases = self.self_biases(segments_BL, prefix_BL)
        encoded_bias_BHLM = None
        if self.has_cross_attention:
            encoded_bias_BHLM = segment_mask(segments_BL, encoded_segments_BM)
        turn = self.rotation(segments_BL.shape[1])
        x_BLD = self.placed(x_BLD, lambda: positions_in_segments(segments_BL))
        x_BLD = self.first_dropout(x_BLD, training=training)
        for number, block in enumerate(self.blocks):
            bias_BHLL = bias_of_block(biases, number)
            x_BLD = block(
                x_BLD, bias_BHLL, encoded_BMD, encoded_bias_BHLM, turn=turn, training=training
            )
        return self.last_norm(x_BLD, training=training)


class T5(keras.Model):
    """The text-to-text Transformer.

    Args:
        model: shape of the network.
        embedding_rows: rows of the embedding; ids in use rounded up to a multiple of 128.
        dropout_rate: share of features dropped in training.
        seed: the run's seed; weights and noise follow from it.
        dtype: precision of activations, ``float32`` or ``bfloat16``; weights are float32.
        adapter_width: inner width of an adapter in each block; features; 0 means no adapters.
        labels: labels and numbers of the tasks of a decoder only, from a linear layer on the last
            position of a row (GPT); 0 means that the network writes text.
        classifier_dropout: share of features dropped before `labels`; if absent, `dropout_rate`.

    Calling it takes a mapping of int32 arrays ``encoder_ids`` and ``encoder_segments`` of shape
    (batch, inputs_length), ``decoder_ids`` and ``decoder_segments`` of (batch, targets_length),
    and returns float32 logits of (batch, targets_length, embedding_rows). Segments number the
    examples of a row from 1; 0 is padding. A decoder-only network takes ``decoder_ids``,
    ``decoder_segments`` and ``decoder_prefix``, 1 at positions of the inputs, of
    (batch, length), and returns logits of (batch, length, embedding_rows). With `labels` it takes
    ``decoder_ids``, ``decoder_segments`` and ``last_positions`` of (batch, 1), may take
    ``swapped_ids`` and ``swapped_segments`` with the texts of a row in the other order, 0 where
    there is none, and returns logits of (batch, labels). These arrays may have an axis of options
    after that of rows; then each option is a row of the result.
    """

    def __init__(
        self,
        model: ModelSettings,
        *,
        embedding_rows: int,
        dropout_rate: float,
        seed: int,
        dtype: str = "float32",
        adapter_width: int = 0,
        labels: int = 0,
        classifier_dropout: float | None = None,
    ) -> None:
        super().__init__(name="t5", dtype=PRECISIONS[dtype], autocast=False)
        self.settings = model
        self.embedding_rows = embedding_rows
        self.rows_in_use = embedding_rows  # fewer for some imported weights (`checkpoints`)
        self.run_seed = seed
        stack: dict[str, Any] = {
            "dropout_rate": dropout_rate,
            "adapter_width": adapter_width,
            "seed": seed,
            "dtype": PRECISIONS[dtype],
        }
        if not model.decoder_only:
            self.encoder = Stack(model, is_decoder=False, path="encoder", **stack)
        shared = model.architecture == "shared_encoder_decoder"
        self.decoder = Stack(
            model,
            is_decoder=True,
            path="decoder",
            shared_with=self.encoder if shared else None,
            **stack,
        )
        self.labels = labels
        if labels:
            common: dict[str, Any] = {"seed": seed, "dtype": PRECISIONS[dtype]}
            rate = dropout_rate if classifier_dropout is None else classifier_dropout
            self.label_dropout = dropout_layer(model, rate, path="label_dropout", **common)
            self.label_head = ClassHead(
                model, inputs=model.d_model, outputs=labels, path="label_head", **common
            )
        self.build(None)

    def build(self, input_shape: Any) -> None:
        """Create all weights."""
        shape = (self.embedding_rows, self.settings.d_model)
        self.embedding = self._weight("embedding", shape, normal(1.0))
        if not self.settings.tie_embeddings:
            of_t5 = truncated_normal(self.settings.d_model**-0.5)
            self.output_matrix = self._weight("output_matrix", shape[::-1], of_t5)
        if not self.settings.decoder_only:
            self.encoder.build()
        self.decoder.build()
        if self.labels:
            self.label_head.build()
        self.built = True

    def _weight(self, name: str, shape: tuple[int, int], of_t5: Draw) -> Any:
        initial = Initial(initial_matrix(self.settings, of_t5), self.run_seed, name)
        return self.add_weight(name=name, shape=shape, initializer=initial, autocast=False)

    def call(self, features: dict[str, Tensor], training: bool = False) -> Tensor:
        """Return the logits of the next id at each position of the decoder."""
        # Under a strategy Keras first traces a model with the mean of all replicas' ids: floats.
        features = {name: ops.cast(value, "int32") for name, value in features.items()}
        if self.labels:
            features = option_rows(features)
            return self.label_logits(features, self.read_texts(features, training), training)
        if self.settings.decoder_only:
            has_prefix = self.settings.architecture == "prefix_language_model"
            decoded_BLD = self.decoder(
                self.embed(features["decoder_ids"]),
                features["decoder_segments"],
                prefix_BL=features["decoder_prefix"] if has_prefix else None,
                training=training,
            )
            return self.logits(decoded_BLD)
        encoded_BMD = self.encode(
            features["encoder_ids"], features["encoder_segments"], training=training
        )
        decoded_BLD = self.decoder(
            self.embed(features["decoder_ids"]),
            features["decoder_segments"],
            encoded_BMD,
            features["encoder_segments"],
            training=training,
        )
        return self.logits(decoded_BLD)

    def read_texts(self, features: dict[str, Tensor], training: bool = False) -> list[Tensor]:
        """Return the decoder's output for the rows of tasks, and for the other order if given.

        Args:
            features: see the class.
            training: apply dropout.
        """
        orders = [name for name in ("decoder", "swapped") if f"{name}_ids" in features]
        return [
            self.decoder(
                self.embed(features[f"{name}_ids"]), features[f"{name}_segments"], training=training
            )
            for name in orders
        ]

    def label_logits(
        self, features: dict[str, Tensor], decoded: Sequence[Tensor], training: bool = False
    ) -> Tensor:
        """Return float32 logits of labels, (batch, labels).

        Args:
            features: see the class.
            decoded: result of `read_texts`; the states of both orders are added.
            training: apply dropout.

        Source: Radford et al., 2018, section 3.3.
        """
        states = [at_positions(x_BLD, features["last_positions"])[:, 0] for x_BLD in decoded]
        state_BD = states[0]
        if len(states) > 1:
            is_swapped_B1 = ops.cast(features["swapped_segments"][:, :1] > 0, state_BD.dtype)
            state_BD = state_BD + is_swapped_B1 * states[1]
        return self.label_head(self.label_dropout(state_BD, training=training))

    def embed(self, ids_BL: Tensor) -> Tensor:
        """Return the rows of the embedding, (batch, length, features); not scaled."""
        return ops.cast(ops.take(self.embedding, ids_BL, axis=0), self.compute_dtype)

    def encode(self, ids_BM: Tensor, segments_BM: Tensor, training: bool = False) -> Tensor:
        """Return the output of the encoder, (batch, inputs_length, features)."""
        return self.encoder(self.embed(ids_BM), segments_BM, training=training)

    def logits(self, decoded_BLD: Tensor, output_DV: Tensor | None = None) -> Tensor:
        """Return float32 logits over all rows of the embedding.

        With a shared matrix T5 scales the decoder's output by d_model^-0.5 first.

        Args:
            decoded_BLD: output of the decoder.
            output_DV: result of `output`, if many calls share it.
        """
        if self.settings.tie_embeddings and self.settings.scale_decoder_outputs:
            decoded_BLD = decoded_BLD * self.settings.d_model**-0.5
        if output_DV is None:
            output_DV = self.output()
        return of_rows_in_use(ops.cast(matmul(decoded_BLD, output_DV), "float32"), self.rows_in_use)

    def output(self) -> Tensor:
        """Return the matrix from features to ids in the precision of activations, (features, ids).

        A step of decoding multiplies few rows with it. A product that transposes the embedding
        takes three times as long as one with this matrix, which is computed once.
        """
        tied = self.settings.tie_embeddings
        matrix = ops.transpose(self.embedding) if tied else self.output_matrix
        return ops.cast(matrix, self.compute_dtype)


def of_rows_in_use(logits_BLV: Tensor, rows: int) -> Tensor:
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
