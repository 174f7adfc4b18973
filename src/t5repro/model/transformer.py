"""The networks with a decoder: T5's encoder-decoder, language models, GPT on labels.

Weights are functions of the run's seed. All three have a `decoder` of blocks (`stack.py`), and a
table of embeddings that may also be their output matrix. An encoder-only network is in
`encoder.py`; published shapes are data in `config/presets/sizes.py`.

Shape suffixes: B rows of the batch, L positions, M positions of the encoder, D features of the
residual stream, V ids.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from keras import ops
from keras.config import floatx

from t5repro.config.sections.model import ModelSettings
from t5repro.model.decode_cache import CrossDecoding, PrefixDecoding
from t5repro.model.dense import ClassHead
from t5repro.model.layers import (
    Tensor,
    dropout_layer,
    gather_positions,
    matmul,
    option_rows,
    products_of_rows,
)
from t5repro.model.network import Network, as_integers, mask_unused_rows
from t5repro.model.segment_rows import SegmentRow, padded_rows
from t5repro.model.stack import Stack


class DecoderNetwork(Network):
    """The common part of networks with a decoder: the output matrix, logits of ids.

    Args:
        model: shape of the network.
        shape: rows of the embedding, seed and precision, see `Network`.
    """

    decoder: Stack

    def __init__(self, model: ModelSettings, **shape: Any) -> None:
        # Files of weights name them without the name of the network, which all of them share.
        super().__init__(model, name="t5", **shape)

    @property
    def is_tied(self) -> bool:
        """Whether the output matrix is the embedding."""
        return self.settings.tie_embeddings

    def logits(self, decoded_BLD: Tensor, output_DV: Tensor | None = None) -> Tensor:
        """Return float32 logits over all rows of the embedding.

        With a shared matrix T5 scales the decoder's output by d_model^-0.5 first.

        Args:
            decoded_BLD: output of the decoder.
            output_DV: result of `output`, if many calls share it.
        """
        # The embedding has deviation 1, an output matrix d_model^-0.5: the factor makes them alike.
        if self.is_tied and self.settings.scale_decoder_outputs:
            decoded_BLD = decoded_BLD * self.settings.d_model**-0.5
        if output_DV is None and self.is_tied:
            logits_BLV = products_of_rows(decoded_BLD, self.embedded_ids())
        else:
            logits_BLV = matmul(decoded_BLD, self.output() if output_DV is None else output_DV)
        return mask_unused_rows(ops.cast(logits_BLV, floatx()), self.rows_in_use)


class EncoderDecoder(DecoderNetwork):
    """The text-to-text Transformer: two stacks, or two with one set of weights.

    Args:
        model: shape of the network.
        dropout_rate: share of features dropped in training.
        adapter_width: inner width of an adapter in each block; features; 0 means no adapters.
        fused_attention: see `Stack`.
        embedding_rows, seed, dtype: see `Network`.

    Calling it takes a mapping of int32 arrays ``encoder_ids`` and ``encoder_segments`` of shape
    (batch, inputs_length), ``decoder_ids`` and ``decoder_segments`` of (batch, targets_length),
    and returns float32 logits of (batch, targets_length, embedding_rows). Segments number the
    examples of a row from 1; 0 is padding.
    """

    weighted_layers = ("encoder", "decoder")

    def __init__(
        self,
        model: ModelSettings,
        *,
        embedding_rows: int,
        dropout_rate: float,
        seed: int,
        dtype: str = "float32",
        adapter_width: int = 0,
        fused_attention: bool = False,
    ) -> None:
        super().__init__(model, embedding_rows=embedding_rows, seed=seed, dtype=dtype)
        common: dict[str, Any] = {
            "dropout_rate": dropout_rate,
            "adapter_width": adapter_width,
            "fused_attention": fused_attention,
        }
        self.encoder = Stack(model, is_decoder=False, **common, **self.layer("encoder"))
        # Paper section 3.2.2: both stacks use the same weights, except for cross-attention.
        shared = model.architecture == "shared_encoder_decoder"
        self.decoder = Stack(
            model,
            is_decoder=True,
            has_cross_attention=True,
            shared_with=self.encoder if shared else None,
            **common,
            **self.layer("decoder"),
        )
        self.build(None)

    def features(self) -> Mapping[str, str | int]:
        """Return the features of a call, see `Network`."""
        return {
            "encoder_ids": "inputs",
            "encoder_segments": "inputs",
            "decoder_ids": "targets",
            "decoder_segments": "targets",
        }

    def call(self, features: dict[str, Tensor], training: bool = False) -> Tensor:
        """Return the logits of the next id at each position of the decoder."""
        features = as_integers(features)
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

    def encode(self, ids_BM: Tensor, segments_BM: Tensor, training: bool = False) -> Tensor:
        """Return the output of the encoder, (batch, inputs_length, features)."""
        return self.encoder(self.embed(ids_BM), segments_BM, training=training)

    @property
    def decoding(self) -> CrossDecoding:
        """How decoding attends to the inputs."""
        return CrossDecoding(self)


class Decoder(DecoderNetwork):
    """A language model: one stack reads inputs and targets as one sequence.

    The mask is causal, or has a fully visible prefix (`prefix_language_model`).

    Args:
        model: shape of the network.
        dropout_rate: share of features dropped in training.
        adapter_width: inner width of an adapter in each block; features; 0 means no adapters.
        embedding_rows, seed, dtype: see `Network`.

    Calling it takes a mapping of int32 arrays ``decoder_ids``, ``decoder_segments`` and
    ``decoder_prefix``, 1 at positions of the inputs, of (batch, length), and returns float32 logits
    of (batch, length, embedding_rows). Segments number the examples of a row from 1; 0 is padding.
    """

    weighted_layers = ("decoder",)

    def __init__(
        self,
        model: ModelSettings,
        *,
        embedding_rows: int,
        dropout_rate: float,
        seed: int,
        dtype: str = "float32",
        adapter_width: int = 0,
    ) -> None:
        super().__init__(model, embedding_rows=embedding_rows, seed=seed, dtype=dtype)
        self.sees_prefix = model.architecture == "prefix_language_model"
        self.decoder = Stack(
            model,
            is_decoder=True,
            dropout_rate=dropout_rate,
            adapter_width=adapter_width,
            **self.layer("decoder"),
        )
        self.build(None)

    def features(self) -> Mapping[str, str | int]:
        """Return the features of a call, see `Network`."""
        return dict.fromkeys(("decoder_ids", "decoder_segments", "decoder_prefix"), "inputs")

    def call(self, features: dict[str, Tensor], training: bool = False) -> Tensor:
        """Return the logits of the next id at each position."""
        features = as_integers(features)
        # Targets are padding at the prefix, so only the mask differs from a causal model.
        decoded_BLD = self.decoder(
            self.embed(features["decoder_ids"]),
            features["decoder_segments"],
            prefix_BL=features["decoder_prefix"] if self.sees_prefix else None,
            training=training,
        )
        return self.logits(decoded_BLD)

    @property
    def decoding(self) -> PrefixDecoding:
        """How decoding attends to the inputs."""
        return PrefixDecoding(self)


class DecoderClassifier(DecoderNetwork):
    """GPT on tasks: a linear layer on the decoder's output at the last position of a row.

    Args:
        model: shape of the network.
        dropout_rate: share of features dropped in training.
        adapter_width: inner width of an adapter in each block; features; 0 means no adapters.
        labels: labels and numbers of the tasks: columns of the linear layer.
        classifier_dropout: share of features dropped before it; if absent, `dropout_rate`.
        embedding_rows, seed, dtype: see `Network`.

    Calling it takes a mapping of int32 arrays ``decoder_ids`` and ``decoder_segments`` of
    (batch, length), ``last_positions`` of (batch, 1), perhaps ``swapped_ids`` and
    ``swapped_segments`` with the texts of a row in reverse order, 0 where there is none. It returns
    float32 logits of (batch, labels). These arrays may have an axis of options after the axis of
    rows; then each option is a row of the result.
    """

    weighted_layers = ("decoder", "label_head")

    def __init__(
        self,
        model: ModelSettings,
        *,
        embedding_rows: int,
        dropout_rate: float,
        seed: int,
        labels: int,
        dtype: str = "float32",
        adapter_width: int = 0,
        classifier_dropout: float | None = None,
    ) -> None:
        super().__init__(model, embedding_rows=embedding_rows, seed=seed, dtype=dtype)
        self.labels = labels
        self.decoder = Stack(
            model,
            is_decoder=True,
            dropout_rate=dropout_rate,
            adapter_width=adapter_width,
            **self.layer("decoder"),
        )
        rate = dropout_rate if classifier_dropout is None else classifier_dropout
        self.label_dropout = dropout_layer(model, rate, **self.layer("label_dropout"))
        self.label_head = ClassHead(
            model, inputs=model.d_model, outputs=labels, **self.layer("label_head")
        )
        self.build(None)

    def features(self) -> Mapping[str, str | int]:
        """Return the features of a call, see `Network`."""
        return {"decoder_ids": "inputs", "decoder_segments": "inputs", "last_positions": 1}

    def call(self, features: dict[str, Tensor], training: bool = False) -> Tensor:
        """Return the logits of labels."""
        features = option_rows(as_integers(features))
        return self.label_logits(features, self.read_texts(features, training), training)

    def row_features(self, rows: Sequence[SegmentRow], length: int) -> dict[str, np.ndarray]:
        """Return ids, segments and last positions of rows of a task, int32, padded to a length."""
        # GPT classifies at the position of `_classify_`, the last id of a row.
        features = padded_rows("decoder", [row.ids for row in rows], length)
        features["last_positions"] = np.array([[len(row.ids) - 1] for row in rows], np.int32)
        if any(row.swapped for row in rows):
            features |= padded_rows("swapped", [row.swapped for row in rows], length)
        return features

    def answer_logits(self, features: Mapping[str, Tensor]) -> Tensor:
        """Return the logits of labels, numbers and options, (batch, labels)."""
        return self(features, training=False)

    def read_texts(self, features: dict[str, Tensor], training: bool = False) -> list[Tensor]:
        """Return the decoder's output for the rows of tasks, and for the reverse order if given.

        Args:
            features: see the class.
            training: apply dropout.
        """
        # The reverse order shares all weights: it is the same network on other rows.
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
        states = [gather_positions(x_BLD, features["last_positions"])[:, 0] for x_BLD in decoded]
        # Rows that are read in one order only have no swapped segments; their second state is
        # meaningless.
        state_BD = states[0]
        if len(states) > 1:
            is_swapped_B1 = ops.cast(features["swapped_segments"][:, :1] > 0, state_BD.dtype)
            state_BD = state_BD + is_swapped_B1 * states[1]
        return self.label_head(self.label_dropout(state_BD, training=training))


TextNetwork = EncoderDecoder | Decoder
