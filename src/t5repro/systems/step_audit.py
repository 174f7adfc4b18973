"""Documents that a step of pre-training read, and steps that read a document.

The answers are computed from the layout that training itself reads, so they cannot differ from it.
They need the settings, the seed and the files of ids, which the manifest of pre-training names, but
neither weights nor history.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from t5repro.config.sections.pretrain import PretrainStage
from t5repro.errors import ArtifactError
from t5repro.files import read_json
from t5repro.inputs.rows import CorpusRows
from t5repro.randomness import repeat_seed
from t5repro.systems.pretraining import open_rows

SENTENCE_FILES = {"sentences": "train.sentences", "word_starts": "word_starts"}


@dataclass(frozen=True)
class DocumentSpan:
    """Consecutive tokens of a document in the batch of a step.

    Attributes:
        step: of pre-training, from 0.
        row: of the batch, from 0.
        document: index of the document in the files of `tokens`, from 0.
        first_token: index of the first token within its document.
        tokens: number of tokens, before corruption.
        denoiser: index of the denoiser of its segment in `pretrain.denoisers`; None if the
            objective is not a mixture.
    """

    step: int
    row: int
    document: int
    first_token: int
    tokens: int
    denoiser: int | None = None


def open_recorded_inputs(manifest: Path) -> tuple[CorpusRows, int]:
    """Open the inputs of a pre-training from its manifest.

    Args:
        manifest: of the rule `pretrain`; its paths are relative to the current folder.

    Returns:
        The inputs, and the number of steps of the training.

    Raises:
        ArtifactError: it is not a manifest of pre-training, or a file of ids is missing.
    """
    record = read_json(manifest)
    if not isinstance(record, dict) or record.get("rule") != "pretrain":
        raise ArtifactError(f"{manifest} is not a manifest of the rule pretrain")
    try:
        settings = PretrainStage.model_validate(record["settings"])
    except ValidationError as error:
        raise ArtifactError(
            f"{manifest} records settings that this version does not read: {error}"
        ) from error
    paths = {Path(entry["path"]).name: Path(entry["path"]) for entry in record["inputs"]}
    names = {"ids": "train.ids", "offsets": "train.offsets"}
    if settings.pretrain.reads_sentences:
        names |= SENTENCE_FILES
    if absent := set(names.values()) - set(paths):
        raise ArtifactError(f"{manifest} names no {sorted(absent)} among its inputs")
    files = {keyword: paths[name] for keyword, name in names.items()}
    seed = repeat_seed(settings.seed, settings.pretrain.repeat)
    return open_rows(settings, **files, seed=seed), settings.pretrain.steps


def steps_of_document(inputs: CorpusRows, document: int, *, steps: int) -> list[int]:
    """Return the steps below `steps` that read tokens of a document.

    Args:
        inputs: of the pre-training.
        document: index of the document in the files of `tokens`.
        steps: number of steps of the training.

    Raises:
        ArtifactError: the document does not exist.
    """
    return inputs.steps_of([document], steps=steps)[document]


def spans_in_step(inputs: CorpusRows, step: int) -> list[DocumentSpan]:
    """Return the spans of documents that a step read, in the order of its rows.

    A document that occurs twice in a row, or continues in the next one, has a span for each.
    """
    starts, tokens, rows, segments = inputs.pieces(step)
    documents = np.searchsorted(inputs.offsets, starts, side="right") - 1
    segment_denoisers = inputs.denoisers(step)
    denoisers = None if segment_denoisers is None else segment_denoisers[segments].tolist()
    return [
        DocumentSpan(
            step,
            int(rows[piece]),
            int(document),
            int(starts[piece] - inputs.offsets[document]),
            int(tokens[piece]),
            denoisers[piece] if denoisers else None,
        )
        for piece, document in enumerate(documents)
    ]
