"""Rows of pre-training that are pieces of a stream of ids, of networks that write text."""

from pathlib import Path

from t5repro.config.sections.pretrain import PretrainStage
from t5repro.inputs.pretraining import CorpusInputs, load_corpus_inputs


def corpus_rows(settings: PretrainStage, *, ids: Path, offsets: Path, seed: int) -> CorpusInputs:
    """Open the files of a split of the corpus.

    Args:
        settings: settings of the stage.
        ids: file of ids.
        offsets: file of document offsets.
        seed: of the rows and the noise.

    Raises:
        ArtifactError: a file is missing or damaged, or the ids are of another vocabulary.
        CorpusError: the corpus does not fill a row.
    """
    return load_corpus_inputs(
        settings.pretrain,
        ids=ids,
        offsets=offsets,
        vocab=settings.vocab,
        seed=seed,
        joined=settings.model.family.joined,
    )
