"""A fine-tuned network of labels, which answers rows of the tasks that it was trained on.

Answers equal the predictions of the rule `evaluate_predict`: the same functions encode and answer.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t5repro.config.sections.evaluate import PredictStage
from t5repro.errors import ArtifactError, SettingsError, nearest
from t5repro.inference.model import SURROGATE, Prediction
from t5repro.model.segment_rows import OPTIONS, SEGMENTS
from t5repro.model.task_rows import SegmentTexts, trained_task

if TYPE_CHECKING:
    import keras

Row = Mapping[str, Any]
FORM = f'a row is {{"{SEGMENTS}": [text, ...]}}, of a task with choices with "{OPTIONS}" as well'


class LabelModel:
    """A fine-tuned network that predicts labels, numbers, options or spans; see `Model`.

    Args:
        settings: settings of the rule `evaluate_predict`.
        weights: safetensors files; several are an ensemble.
        vocabulary: SentencePiece model.
    """

    def __init__(self, settings: PredictStage, weights: Sequence[Path], vocabulary: Path) -> None:
        self.settings = settings
        self._weights = tuple(weights)
        self._vocabulary_file = vocabulary
        self._loaded: tuple[Any, ...] | None = None

    def predict(self, rows: Sequence[Row], *, task: str) -> list[Prediction]:
        """Return the answers, in the order of the rows.

        Args:
            rows: segments of each row in the order of the task's files, and its options if the
                task has choices.
            task: name of the task, such as ``glue_rte``.

        Raises:
            ArtifactError: the weights are damaged, or a row has other options than in training.
            SettingsError: the network was not trained on the task, or a row has no such form.
        """
        texts = [_texts_of(row, index) for index, row in enumerate(rows)]
        devices, vocabulary, columns, models = self._load()
        try:
            trained_task(columns, task)
        except ArtifactError as error:
            raise SettingsError(
                f"the network answers no task {task!r}{nearest(task, columns.answers)}; its tasks "
                f"are {sorted(columns.answers)}"
            ) from error
        if not texts:
            return []
        from t5repro.progress import Progress
        from t5repro.systems.label_answers import answer_rows, task_rows

        encoded = task_rows(self.settings, vocabulary, {task: texts}, columns)
        total = len(encoded[task].rows)
        with devices.scope(), Progress("predict", total=total, unit="rows") as progress:
            answers = answer_rows(self.settings, encoded, models, columns, progress)
        cut = encoded[task].cut
        return [
            Prediction("\t".join((*row.segments, *row.options)), answer, truncated=index in cut)
            for index, (row, answer) in enumerate(zip(texts, answers[task].texts, strict=True))
        ]

    @property
    def networks(self) -> "list[keras.Model]":
        """The networks with their weights, which are read now: one, or all of an ensemble."""
        networks: list[keras.Model] = self._load()[-1]
        return networks

    def _load(self) -> tuple[Any, ...]:
        """Return devices, vocabulary, columns of the head, and networks with their weights."""
        if self._loaded is None:
            from t5repro.engines.devices import prepare

            # Before TensorFlow is imported, unless this process has it already.
            devices = prepare(self.settings.devices, any_threads=True)
            from t5repro.model.checkpoints import load_weights
            from t5repro.systems.answering import build_network
            from t5repro.systems.label_answers import shared_labels
            from t5repro.vocab.vocabulary import Vocabulary

            columns = shared_labels(self._weights)
            with devices.scope():
                models = [build_network(self.settings, columns) for _ in self._weights]
                for path, model in zip(self._weights, models, strict=True):
                    load_weights(path, model)
            vocabulary = Vocabulary.load(self._vocabulary_file)
            self._loaded = devices, vocabulary, columns, models
        return self._loaded


def _texts_of(row: Row, index: int) -> SegmentTexts:
    """Return the texts of a row.

    Raises:
        SettingsError: it has no segments, or a text is not a string or cannot be written as UTF-8.
    """
    text_lists = (
        [row.get(key, ()) for key in (SEGMENTS, OPTIONS)] if isinstance(row, Mapping) else []
    )
    are_texts = all(
        isinstance(texts, list | tuple) and all(map(_is_text, texts)) for texts in text_lists
    )
    if not are_texts or not text_lists or not text_lists[0]:
        raise SettingsError(f"rows[{index}] is {row!r}; {FORM}, all of them texts")
    segments, options = text_lists
    return SegmentTexts(tuple(segments), tuple(options))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not SURROGATE.search(value)
