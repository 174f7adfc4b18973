"""Predictions of the fine-tuned model for every example of every task (paper section 2.4).

Decoding is greedy, except for the tasks of `evaluate.beam_tasks`, which use beam search. The padded
length of an example depends only on its own tokens, and all batches have the same number of rows,
so the shapes of its arithmetic do not depend on its neighbours. Its row in the batch does, which on
some devices moves the last bits of a float: a prediction changes only at a tie. Devices that work
in step take equal parts of each batch.
"""

from pathlib import Path

from t5repro.artifacts import MANIFEST, WEIGHTS, step_folder
from t5repro.engines.devices import Devices
from t5repro.errors import ArtifactError
from t5repro.files import write_json_lines, write_manifest
from t5repro.jobs.predict import PredictJob
from t5repro.model.decode_inputs import EXAMPLE_KEYS, read_examples
from t5repro.model.span_answers import TaskTexts
from t5repro.systems.answers import Rows

ONE_DEVICE = Devices("cpu", ("CPU:0",))


def predict(job: PredictJob, *, devices: Devices = ONE_DEVICE) -> None:
    """Write ``<task>.jsonl`` with a prediction for every example, in the file's order.

    Predictions of earlier kept checkpoints are written to ``step-<n>/<task>.jsonl``; the last
    checkpoint is the fine-tuned model itself, with predictions in `folder`.

    Args:
        job: the job.
        devices: devices that compute; the devices of a strategy share each batch.


    Raises:
        ArtifactError: the weights or the examples are missing or damaged.
        VocabularyError: the vocabulary has more ids than the model has embeddings.
    """
    from t5repro.systems.answering import answers
    from t5repro.vocab.vocabulary import Vocabulary

    members = [weights_next_to(path) for path in job.weights]
    earlier = {
        step: weights_next_to(job.weights[0].parent / step_folder(step) / MANIFEST)
        for step in sorted(job.kept_steps)[:-1]
    }
    pieces = Vocabulary.load(job.vocabulary)
    rows = {
        task: read_examples(path, limit=job.settings.evaluate.max_examples)
        for task, path in job.examples.items()
    }
    # One set of weights per folder of predictions. They are loaded in turn into the same models, so
    # that each shape is compiled once for all checkpoints.
    weight_sets = {job.folder: members} | {
        job.folder / step_folder(step): [path] for step, path in earlier.items()
    }
    with devices.scope():
        predictions = answers(job.settings, rows, list(weight_sets.values()), pieces)
    outputs: list[Path] = []
    for target_folder, texts in zip(weight_sets, predictions.texts, strict=True):
        for task, task_rows in rows.items():
            outputs.append(target_folder / f"{task}.jsonl")
            _write_predictions(outputs[-1], task_rows, texts[task])
    # Stale: a task that the mixture no longer contains, or a step that is no longer kept.
    for stale in {*job.folder.glob("*.jsonl"), *job.folder.glob("step-*/*.jsonl")} - set(outputs):
        stale.unlink()
    write_manifest(
        job.manifest,
        rule="evaluate_predict",
        settings=job.settings.model_dump(mode="json"),
        inputs=[*members, *earlier.values(), job.vocabulary, *job.examples.values()],
        outputs=outputs,
        counters={"tasks": predictions.counts},
    )


def weights_next_to(manifest: Path) -> Path:
    """Return the file of weights in the folder of a manifest of fine-tuning.

    Raises:
        ArtifactError: it is missing.
    """
    path = manifest.parent / WEIGHTS
    if not path.is_file():
        raise ArtifactError(f"{path} is missing; run the stage finetune, which writes it")
    return path


def _write_predictions(path: Path, rows: Rows, texts: TaskTexts) -> None:
    examples = ({key: row[key] for key in EXAMPLE_KEYS} for row in rows)
    predictions = zip(examples, texts.fields(), strict=True)
    write_json_lines(path, ({**row, **fields} for row, fields in predictions))
