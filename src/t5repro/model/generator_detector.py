"""ELECTRA's two networks: a generator replaces masked pieces, a detector reads the result.

The detector is an encoder with the paths of any other encoder, so that fine-tuning reads its
weights and leaves out the generator's (`encoder_heads.PRETRAINING_HEADS`).

Source: Clark et al., 2020, section 2, and ELECTRA ``PretrainingModel``.

Shape suffixes: B rows of the batch, L positions, M masked positions, D features of the residual
stream, E features of the embedding, V ids.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from keras import ops

from t5repro.config.sections.model import ModelSettings
from t5repro.model.dense import embedding_shape
from t5repro.model.detector_head import DetectorHead
from t5repro.model.encoder import Encoder
from t5repro.model.encoder_stack import EncoderStack
from t5repro.model.initial_values import normal
from t5repro.model.layers import Tensor, gather_positions
from t5repro.model.masked_lm_head import MaskedLMHead
from t5repro.model.network import as_integers, mask_unused_rows

Task = Literal["detection", "masked_detection", "masked_pieces", "all_pieces"]


class Detector(Encoder):
    """The network that fine-tuning continues: an encoder with labels of its first state itself.

    Source: ELECTRA ``classification_tasks.ClassificationTask.get_prediction_module``.
    """

    has_pooler: ClassVar[bool] = False
    has_glorot_heads: ClassVar[bool] = True


class GeneratorDetector(Detector):
    """Both networks in pre-training.

    Args:
        model: shape of the detector; its `generator` is the other shape.
        embedding_rows: rows of the embedding.
        dropout_rate: share of features dropped in training, in both.
        seed: the run's seed; weights and noise follow from it.
        dtype: precision of activations, see `Encoder`.
        adapter_width: inner width of an adapter in each block of the detector; 0 means none.
        task: of the second network, `pretrain.replaced_tokens.task`.

    Calling it takes the features of an `Encoder` in pre-training, and returns the generator's
    logits at the masked positions, float32 (batch, masked positions, embedding_rows), and the
    detector's of the same ids, which it reads as they are: of being replaced, (batch, length), or
    of pieces at the masked positions if the task is `masked_pieces`.
    """

    weighted_layers: ClassVar[tuple[str, ...]] = (
        *Detector.weighted_layers,
        *("generator", "detector_head", "piece_head"),
    )

    def __init__(
        self,
        model: ModelSettings,
        *,
        embedding_rows: int,
        dropout_rate: float,
        seed: int,
        dtype: str = "float32",
        adapter_width: int = 0,
        task: Task = "detection",
    ) -> None:
        self.task = task  # before the heads are made
        super().__init__(
            model,
            embedding_rows=embedding_rows,
            dropout_rate=dropout_rate,
            seed=seed,
            dtype=dtype,
            adapter_width=adapter_width,
        )

    def add_pretraining_heads(self, dropout_rate: float) -> None:
        """Create the generator and the heads of both networks."""
        model, tying = self.settings, self.settings.generator_tying
        self.generator: EncoderStack | None = None
        if tying != "all":
            self.generator = EncoderStack(
                model.generator,
                dropout_rate=dropout_rate,
                embedding_of=self.encoder if tying == "embeddings" else None,
                has_glorot_projection=self.has_glorot_heads,
                **self.layer("generator"),
            )
        rows = self.embedding_rows
        self.masked_lm = MaskedLMHead(
            model if tying == "all" else model.generator,
            embedding_rows=rows,
            **self.layer("masked_lm"),
        )
        if self.task != "masked_pieces":  # of `all_pieces` it is the probability of copying
            self.detector_head = DetectorHead(model, **self.layer("detector_head"))
        if self.task in ("masked_pieces", "all_pieces"):
            self.piece_head = MaskedLMHead(model, embedding_rows=rows, **self.layer("piece_head"))

    def build(self, input_shape: Any) -> None:
        """Create all weights; shared ones once."""
        if self.settings.generator_tying == "none":
            shape = (self.embedding_rows, embedding_shape(self.settings.generator).d_model)
            self.generator_embedding = self._weight("generator_embedding", shape, normal(1.0))
        super().build(input_shape)

    def call(self, features: Mapping[str, Tensor], training: bool = False) -> tuple[Tensor, Tensor]:
        """Return the logits of both networks for the same ids."""
        features = as_integers(features)
        positions = features["target_positions"]
        pieces_BMV = self.masked_logits(self.generated(features, training=training), positions)
        encoded_BLD = self.encode(features, training=training)
        if self.task == "masked_pieces":
            return pieces_BMV, self.piece_logits(gather_positions(encoded_BLD, positions))
        return pieces_BMV, self.detector_head(encoded_BLD)

    def generated(self, features: Mapping[str, Tensor], training: bool = False) -> Tensor:
        """Return the output of the generator, (batch, length, its width).

        Args:
            features: int32 ids, segments and, with token types, types; see `Encoder`.
            training: apply dropout.
        """
        if self.generator is None:
            return self.encode(features, training=training)
        ids_BL = features["encoder_ids"]
        if self.settings.generator_tying == "none":
            rows_BLE = ops.take(self.generator_embedding, ids_BL, axis=0)
            embedded_BLE = ops.cast(rows_BLE, self.compute_dtype)
        else:
            embedded_BLE = self.embed(ids_BL)
        types_BL = features["encoder_types"] if self.settings.token_types else None
        return self.generator(
            embedded_BLE, features["encoder_segments"], types_BL, training=training
        )

    def masked_logits(self, encoded_BLD: Tensor, positions_BM: Tensor) -> Tensor:
        """Return the generator's logits at the masked positions, see `Encoder`."""
        ids_VE = self.embedded_ids()
        if self.settings.generator_tying == "none":
            ids_VE = ops.cast(ops.convert_to_tensor(self.generator_embedding), self.compute_dtype)
        logits_BMV = self.masked_lm(gather_positions(encoded_BLD, positions_BM), ids_VE)
        return mask_unused_rows(logits_BMV, self.rows_in_use)

    def piece_logits(self, states_BMD: Tensor) -> Tensor:
        """Return the second network's logits of pieces, float32 (batch, positions, ids).

        Args:
            states_BMD: its states at some positions.
        """
        return mask_unused_rows(self.piece_head(states_BMD, self.embedded_ids()), self.rows_in_use)
