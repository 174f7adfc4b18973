"""A fine-tuned model with its vocabulary, which answers texts.

Answers equal the predictions of the rule `evaluate_predict`: the same functions encode and decode,
in batches of the same number of rows.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t5repro.config.sections.evaluate import PredictStage
from t5repro.errors import SettingsError
from t5repro.vocab.special_ids import EOS_ID, PAD_ID

if TYPE_CHECKING:
    import keras

TEXTS = "texts"  # stands for the name of a task
SURROGATE = re.compile("[\ud800-\udfff]")  # cannot be written as UTF-8


@dataclass(frozen=True)
class Prediction:
    """The answer to a text.

    Attributes:
        inputs: the text; of a row of segments these, separated by tabs.
        prediction: the answer.
        log_probability: natural logarithm of the probability of the answer's tokens, EOS included,
            given the inputs; None if it was not asked for. Members of an ensemble count alike.
        truncated: whether the inputs were cut to the run's `evaluate.inputs_length`.
    """

    inputs: str
    prediction: str
    log_probability: float | None = None
    truncated: bool = False


class Model:
    """A fine-tuned model; several files of weights are an ensemble.

    TensorFlow is imported, and the weights are read, with the first text.

    Args:
        settings: settings of the rule `evaluate_predict`.
        weights: safetensors files.
        vocabulary: SentencePiece model.
        kept: whatever must exist as long as the model, such as a temporary folder of its files.
    """

    def __init__(
        self,
        settings: PredictStage,
        weights: Sequence[Path],
        vocabulary: Path,
        *,
        kept: object = None,
    ) -> None:
        self.settings = settings
        self._kept = kept
        self._weights = tuple(weights)
        self._vocabulary_file = vocabulary
        self._loaded: tuple[Any, Any, list[Any]] | None = None

    def predict(
        self, texts: Sequence[str], *, beam: bool = False, log_probabilities: bool = False
    ) -> list[Prediction]:
        """Return the answers, in the order of the texts.

        Args:
            texts: inputs with the task's prefix, such as ``"sst2 sentence: a joy"``.
            beam: search with the beam width and the length penalty of the run; greedy otherwise.
            log_probabilities: compute these as well, which costs another pass.

        Raises:
            ArtifactError: the weights are damaged.
            SettingsError: `texts` is a string, or a text is not a string or cannot be written as
                UTF-8; log-probabilities of a decoder without an encoder.
        """
        if isinstance(texts, str):
            raise SettingsError("texts is a string; give a list: [text]")
        for index, text in enumerate(texts):
            if not isinstance(text, str):
                raise SettingsError(
                    f"texts[{index}] is {text!r}; give strings, such as 'sst2 sentence: a joy'"
                )
        if surrogates := [text for text in texts if SURROGATE.search(text)]:
            raise SettingsError(
                f"{surrogates[0]!r} cannot be written as UTF-8; correct its encoding"
            )
        if log_probabilities and self.settings.model.family.joined:
            raise SettingsError(
                f"model.architecture is {self.settings.model.architecture!r}; log-probabilities "
                "are those of a model with an encoder"
            )
        if not texts:
            return []
        return self._predict(texts, beam=beam, log_probabilities=log_probabilities)

    @property
    def networks(self) -> "list[keras.Model]":
        """The networks with their weights, which are read now: one, or all of an ensemble."""
        return self._load()[-1]

    def _predict(
        self, texts: Sequence[str], *, beam: bool, log_probabilities: bool
    ) -> list[Prediction]:
        devices, vocabulary, models = self._load()
        from t5repro.model.decode_inputs import encode
        from t5repro.progress import Progress
        from t5repro.systems.text_answers import decode

        beam_tasks = [TEXTS] if beam else []
        evaluate = self.settings.evaluate.model_copy(update={"beam_tasks": beam_tasks})
        settings = self.settings.model_copy(update={"evaluate": evaluate})
        inputs = encode(
            {TEXTS: [{"inputs": text} for text in texts]},
            vocabulary,
            model=settings.model,
            inputs_length=settings.evaluate.inputs_length,
        )
        with devices.scope(), Progress("predict", total=len(texts), unit="texts") as progress:
            ids = decode(settings, inputs, models, progress)
            answers = [ids[TEXTS, row] for row in range(len(texts))]
            sums = self._log_probabilities(inputs, answers) if log_probabilities else {}
        return [
            Prediction(text, vocabulary.decode(answer), sums.get(row), row_inputs.truncated)
            for row, (text, answer, row_inputs) in enumerate(
                zip(texts, answers, inputs, strict=True)
            )
        ]

    def _load(self) -> tuple[Any, Any, list[Any]]:
        """Return devices, vocabulary and networks with their weights."""
        if self._loaded is None:
            from t5repro.engines.devices import prepare

            # Before TensorFlow is imported, unless this process has it already.
            devices = prepare(self.settings.devices, any_threads=True)
            from t5repro.model.checkpoints import load_weights
            from t5repro.systems.answering import build_network
            from t5repro.systems.text_answers import check_vocabulary
            from t5repro.vocab.vocabulary import Vocabulary

            vocabulary = Vocabulary.load(self._vocabulary_file)
            check_vocabulary(self.settings, total_ids=vocabulary.total_ids)
            with devices.scope():
                models = [build_network(self.settings) for _ in self._weights]
                for path, model in zip(self._weights, models, strict=True):
                    load_weights(path, model)
            self._loaded = devices, vocabulary, models
        return self._loaded

    def _log_probabilities(
        self, inputs: Sequence[Any], answers: Sequence[Sequence[int]]
    ) -> dict[int, float]:
        """Return row -> log-probability of its answer, computed in batches of one shape."""
        from t5repro.model.decode_inputs import batches, pad_batch

        _, _, models = self._load()
        sums: dict[int, float] = {}
        batch_size = self.settings.evaluate.batch_size
        for batch in batches(inputs, batch_size=batch_size):
            rows = [row.row for row in batch]
            targets = np.full((batch_size, len(answers[0])), PAD_ID, np.int32)
            targets[: len(rows)] = [_until_eos(answers[row]) for row in rows]
            encoder_ids = pad_batch(batch, batch_size=batch_size)
            values = np.mean(
                [_sequence_log_probability(model, encoder_ids, targets) for model in models], axis=0
            )
            sums.update(zip(rows, values[: len(rows)].tolist(), strict=True))
        return sums


def _until_eos(ids: Sequence[int]) -> list[int]:
    """Return the ids with padding after the first EOS."""
    ids = list(ids)
    length = ids.index(EOS_ID) + 1 if EOS_ID in ids else len(ids)
    return ids[:length] + [PAD_ID] * (len(ids) - length)


def _sequence_log_probability(model: Any, encoder_ids: Any, targets: Any) -> Any:
    """Return the sum of log-probabilities of each row's targets, float64 of shape (batch,).

    Args:
        model: the network.
        encoder_ids: int32 (batch, inputs_length), 0 is padding.
        targets: int32 (batch, targets_length), 0 is padding.
    """
    from keras import ops

    start_ids = np.full((len(targets), 1), PAD_ID, np.int32)
    is_target = targets != PAD_ID
    logits = model(
        {
            "encoder_ids": encoder_ids,
            "encoder_segments": (encoder_ids != PAD_ID).astype(np.int32),
            "decoder_ids": np.concatenate([start_ids, targets[:, :-1]], axis=1),
            "decoder_segments": np.ones_like(targets),
        }
    )
    values = np.asarray(ops.convert_to_numpy(logits), np.float64)
    # The logarithm of a sum of exponentials, without overflow.
    largest = values.max(axis=-1, keepdims=True)
    log_sum = largest[..., 0] + np.log(np.exp(values - largest).sum(axis=-1))
    target_logits = np.take_along_axis(values, targets[..., None], axis=-1)[..., 0]
    return np.where(is_target, target_logits - log_sum, 0.0).sum(axis=-1)
