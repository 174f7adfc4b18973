"""The inputs of a pre-training for its objective: pieces of a stream, or rows of sentences."""

from pathlib import Path

from t5repro.config.sections.pretrain import PretrainStage
from t5repro.inputs.masked_rows import MaskedInputs, load_masked_inputs
from t5repro.inputs.pretraining import CorpusInputs, load_corpus_inputs


def open_inputs(
    settings: PretrainStage, *, ids: Path, offsets: Path, seed: int, **sentences: Path
) -> CorpusInputs | MaskedInputs:
    """Open the files of a split of the corpus.

    Args:
        settings: settings of the stage.
        ids: file of ids.
        offsets: file of document offsets.
        seed: of the rows and the noise.
        sentences: `sentences` and `word_starts`, if the objective is `masked_lm`.

    Raises:
        ArtifactError: a file is missing or damaged, or the ids are of another vocabulary.
        CorpusError: the corpus does not fill a row.
    """
    if settings.pretrain.objective == "masked_lm":
        return load_masked_inputs(
            settings.pretrain,
            ids=ids,
            offsets=offsets,
            **sentences,
            vocab=settings.vocab,
            seed=seed,
            token_types=settings.model.token_types,
        )
    return load_corpus_inputs(
        settings.pretrain,
        ids=ids,
        offsets=offsets,
        vocab=settings.vocab,
        seed=seed,
        decoder_only=settings.model.decoder_only,
    )
