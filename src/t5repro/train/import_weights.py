"""Writes published weights in this project's form, with a vocabulary and lines for a run file."""

from pathlib import Path
from typing import Any

import yaml

from t5repro.artifacts import MANIFEST, OPTIMIZER, VOCABULARY, WEIGHTS
from t5repro.config.sections.vocab import LANES
from t5repro.errors import ArtifactError, VocabularyError
from t5repro.files import read_json, write_bytes, write_manifest, write_text
from t5repro.lineage.leftovers import remove_leftovers
from t5repro.model.checkpoints import write_arrays
from t5repro.model.foreign_vocabulary import ForeignVocabulary
from t5repro.model.foreign_weights import read_foreign
from t5repro.progress import announce
from t5repro.vocab.added_tokens import read_added_tokens
from t5repro.vocab.adopted.files import files_beside
from t5repro.vocab.vocabulary import Vocabulary

RULE = "import_weights"  # in the manifest
SETTINGS = "settings.yaml"
VOCABULARIES = "spiece.model, vocab.txt, vocab.json with merges.txt, tokenizer.json"
SENTINELS = 100  # of T5, for a vocabulary without any


def import_weights(source: Path, folder: Path) -> None:
    """Write published weights in this project's form.

    Args:
        source: folder of any library that `model/foreign_weights.py` reads.
        folder: receives arrays, vocabulary, settings and manifest.

    Raises:
        ArtifactError: the source contains no readable weights, or the folder is one of a job.
        CheckpointError: the weights do not belong to a T5 encoder-decoder.
        VocabularyError: the vocabulary is not T5's, or does not belong to the weights.
    """
    if (manifest := folder / MANIFEST).exists() and read_json(manifest).get("rule") != RULE:
        raise ArtifactError(f"{folder} has results of a job; name another folder: --folder")
    foreign = read_foreign(source)
    outputs = [folder / WEIGHTS, folder / SETTINGS]
    settings: dict[str, Any] = {"model": foreign.model.stated}
    if foreign.vocabulary is not None:
        pieces, sentinels = write_vocabulary(
            folder / VOCABULARY, foreign.vocabulary, rows=foreign.embedding_rows
        )
        settings["vocab"] = {"vocab_size": pieces, "extra_ids": sentinels}
        outputs.append(folder / VOCABULARY)
    else:
        announce(
            f"import_weights: {source} has no vocabulary ({VOCABULARIES}); a run that starts from "
            "these weights names their SentencePiece model in vocab.model_file"
        )
    write_arrays(outputs[0], foreign.weights)  # after the vocabulary, which may be refused
    if foreign.optimizer:
        write_arrays(folder / OPTIMIZER, foreign.optimizer)
        outputs.append(folder / OPTIMIZER)
    write_text(outputs[1], yaml.safe_dump(settings, sort_keys=True))
    write_manifest(
        folder / MANIFEST,
        rule=RULE,
        settings=settings,
        inputs=[],
        outputs=outputs,
        counters={"form": foreign.form, "embedding_rows": foreign.embedding_rows},
    )
    remove_leftovers([folder / MANIFEST, *outputs])  # of an import that was killed


def write_vocabulary(path: Path, foreign: ForeignVocabulary, *, rows: int) -> tuple[int, int]:
    """Write a vocabulary, with sentinels appended if it has none; return pieces and sentinels.

    Args:
        path: file to write.
        foreign: the vocabulary; most publishers leave out T5's sentinels. Files of a tokenizer next
            to it state their number.
        rows: rows of the embedding; a small model has fewer sentinels than T5.

    Raises:
        ArtifactError: it, or a file of the tokenizer, is damaged.
        VocabularyError: its special ids are not T5's, the embedding has other rows, or the
            tokenizer has tokens with other ids.
    """
    data, where = foreign.data, foreign.file
    vocabulary = Vocabulary.from_bytes(data, where)
    added = read_added_tokens([where, *files_beside(where)])
    # Only vocabularies with T5's order of ids have sentinels.
    usual = min(SENTINELS, rows - vocabulary.total_ids)
    sentinels = added.sentinels or (usual if vocabulary.pieces.order.foreign_ids is None else 0)
    if not vocabulary.extra_ids and sentinels > 0:
        data = vocabulary.pieces.with_sentinels(sentinels)
        vocabulary = Vocabulary.from_bytes(data, where)
    padded = -(-vocabulary.total_ids // LANES) * LANES
    if not vocabulary.total_ids <= rows <= padded:
        raise VocabularyError(
            f"the embedding has {rows:,} rows, {where} makes {vocabulary.total_ids:,} ids with "
            f"{vocabulary.extra_ids} sentinels, padded to {padded:,}; "
            + (
                "further rows are those of tokens that were added to the tokenizer and are not in "
                f"this file: cut them off with resize_token_embeddings({padded}) of transformers, "
                "or name a checkpoint without added tokens"
                if rows > padded
                else "vocabulary and weights are of different checkpoints: get both again"
            )
        )
    added.check(vocabulary)
    write_bytes(path, data)
    return vocabulary.total_ids - vocabulary.extra_ids, vocabulary.extra_ids
