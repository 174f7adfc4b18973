"""Predictions of a model in training for a few validation examples (`run.samples`).

They are not outputs of the graph: lines of JSON next to the table of speeds, the log and
TensorBoard show them. The bytes of the weights do not depend on them.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from t5repro.config.sections.finetune import FinetuneStage
from t5repro.config.sections.model import tuned_family
from t5repro.engines.engine import engine
from t5repro.files import read_json_lines, write_json_lines
from t5repro.model.decode import greedy
from t5repro.model.decode_inputs import batches, encode, pad_batch, read_examples
from t5repro.model.span_answers import LIMITS_OF_BERT
from t5repro.model.task_answers import task_answers
from t5repro.model.task_rows import TaskRowEncoder, TaskRows, encode_rows, texts_of
from t5repro.vocab.vocabulary import Vocabulary

FILE = "samples.jsonl"
Predictions = Callable[[Any], dict[tuple[str, int], str]]


class Samples:
    """Decodes the same examples at every interval, greedily and without dropout.

    Args:
        examples: task -> JSON lines of its validation split.
        count: examples of each task, from the first.
        every_steps: interval; steps.
        settings: settings of the stage.
        vocabulary: SentencePiece model.
        folder: folder of the training's log.
        announce: prints a line to the log.

    Raises:
        ArtifactError: a file of examples is missing or damaged.
    """

    def __init__(
        self,
        examples: Mapping[str, Path],
        *,
        count: int,
        every_steps: int,
        settings: FinetuneStage,
        vocabulary: Path,
        folder: Path,
        announce: Callable[[str], None],
    ) -> None:
        self.every_steps = every_steps
        self._file = folder / FILE
        self._announce = announce
        self._vocabulary = Vocabulary.load(vocabulary)
        self._rows = {task: read_examples(path, limit=count) for task, path in examples.items()}
        self._predictions: Predictions = (
            self._text_predictions(settings)
            if tuned_family(settings.model, settings.finetune).writes_text
            else self._label_predictions(settings)
        )
        self._written: list[dict[str, Any]] = []

    def resume(self, first_step: int) -> None:
        """Forget what an interrupted attempt wrote after the step that training resumes from."""
        if first_step and self._file.is_file():
            rows = read_json_lines(self._file)
            self._written = [row for row in rows if row["step"] <= first_step]

    def write(self, step: int, model: Any) -> list[dict[str, Any]]:
        """Decode the examples; add them to the file and the log, and return them.

        Args:
            step: steps so far.
            model: the network.
        """
        predictions = self._predictions(model)
        rows = [
            {
                "step": step,
                "task": task,
                "inputs": row["inputs"],
                "targets": row["targets"],
                "prediction": predictions[task, number],
            }
            for task, task_rows in self._rows.items()
            for number, row in enumerate(task_rows)
        ]
        self._written += rows
        write_json_lines(self._file, self._written)
        for row in rows:
            texts = f"{row['prediction']!r}, target {row['targets']!r}"
            self._announce(f"step {step}, {row['task']}: {texts}")
        return rows

    def _text_predictions(self, settings: FinetuneStage) -> Predictions:
        """Return the function from a model to task and row -> text that it writes."""
        encoded = encode(
            self._rows,
            self._vocabulary,
            model=settings.model,
            inputs_length=settings.finetune.inputs_length,
        )

        def predict(model: Any) -> dict[tuple[str, int], str]:
            texts = {}
            for batch in batches(encoded, batch_size=len(encoded)):
                with engine().scope_of(model):
                    ids = greedy(
                        model.network,
                        pad_batch(batch, batch_size=len(batch)),
                        max_decode_length=settings.finetune.targets_length,
                    )
                for row, inputs in enumerate(batch):
                    texts[inputs.task, inputs.row] = self._vocabulary.decode(ids[row].tolist())
            return texts

        return predict

    def _label_predictions(self, settings: FinetuneStage) -> Predictions:
        """Return the function from a network of labels to task and row -> its answer as text."""
        encoder = TaskRowEncoder(
            self._vocabulary,
            model=settings.model,
            length=settings.finetune.inputs_length,
            windows=settings.tasks.windows,
            options_first=settings.tasks.options_first,
        )
        texts_by_task = texts_of(self._rows)  # refused now, not at the first sample
        encoded: dict[str, TaskRows] = {}

        def predict(model: Any) -> dict[tuple[str, int], str]:
            texts: dict[tuple[str, int], str] = {}
            if not encoded:
                encoded.update(encode_rows(encoder, texts_by_task, model.objective.columns))
            for task, rows in encoded.items():
                with engine().scope_of(model):
                    answers = task_answers(
                        [model.network],
                        rows,
                        columns=model.objective.columns,
                        task=task,
                        inputs_length=settings.finetune.inputs_length,
                        batch_size=len(rows.rows),
                        spans=LIMITS_OF_BERT,
                    )
                texts |= {(task, number): text for number, text in enumerate(answers.texts)}
            return texts

        return predict
