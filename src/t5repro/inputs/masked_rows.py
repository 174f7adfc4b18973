"""Batches of the masked language models: encoders, and the generator of ELECTRA.

The rows are whole sentences of `sentence_layout`, read by `sentence_rows`. The positions to predict
are drawn and their ids replaced by `objectives.masked_rows`. As in `pretraining`, the batch of step
n depends only on the data, the settings, the seed and n.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.array_types import Int32, Int64, Mask
from t5repro.config.sections.pretrain import PretrainSettings, PretrainStage
from t5repro.config.sections.vocab import VocabSettings
from t5repro.errors import CorpusError
from t5repro.inputs.batches import Batches, Features
from t5repro.inputs.electra_segments import electra_reader
from t5repro.inputs.masked_steps import steps_of_masked_documents
from t5repro.inputs.pretraining import PROBED_STEPS, Pieces
from t5repro.inputs.sentence_corpus import open_sentences
from t5repro.inputs.sentence_layout import PairRows, RunRows, pair_rows, run_rows
from t5repro.inputs.sentence_rows import (
    SentenceIds,
    SentenceReader,
    TokenRows,
    pair_reader,
    run_reader,
)
from t5repro.objectives.boundaries import boundaries
from t5repro.objectives.masked_positions import row_tokens
from t5repro.objectives.masked_rows import Masking, mask_rows
from t5repro.objectives.masks import first_positions
from t5repro.objectives.row_draws import Draw
from t5repro.vocab.special_ids import PAD_ID

Maker = Callable[[int], tuple[Features, Int32, dict[str, int]]]


@dataclass(frozen=True, kw_only=True)
class MaskedInputs:
    """The corpus, laid out in rows of sentences for a masked language model.

    Attributes:
        settings: of pre-training.
        seed: the run's seed.
        offsets: start of each document in the file of ids, and end of the last one.
        layout: sentences of each row.
        vocab: of the vocabulary.
        corpus: the mapped ids and sentences.
        is_word_start: whether the piece of each id begins a word, ``(total_ids,)``.
        token_types: types of tokens that the model distinguishes.
        draws_samples: whether rows have random numbers for pieces that a step draws.
    """

    settings: PretrainSettings
    seed: int
    offsets: Int64
    layout: PairRows | RunRows
    vocab: VocabSettings
    corpus: SentenceIds
    is_word_start: Mask
    token_types: int
    draws_samples: bool = False

    @property
    def rows_per_epoch(self) -> int:
        """Rows until every chunk of sentences was taken once."""
        return self.layout.rows

    def batches(self, *, first_step: int, steps: int) -> Batches:
        """Return the batches of steps `first_step` to `first_step + steps - 1`.

        A batch of B rows of length L with at most M predicted positions consists of features and
        targets, all int32. The features are ``encoder_ids`` after masking, ``encoder_segments``, 1
        at tokens and 0 at padding, and ``encoder_types``, all ``(B, L)``; ``target_positions``, the
        masked and shuffled positions in ascending order and then 0, ``(B, M)``; with a pair task
        ``pair_label``, ``(B,)``, see `sentence_rows.pair_labels`; with a boundary objective
        ``boundary_positions``, ``(B, M, 2)``, and ``boundary_index``, ``(B, M)``, see `Boundaries`;
        with samples ``sample_draws``, random numbers of `DRAW_BITS` bits, ``(B, M)``. The targets
        are the original ids at the positions and then 0, ``(B, M)``.
        """
        make = self._batch_maker()
        return Batches(lambda step: make(step)[:2], first_step, steps)

    def counters(self, *, steps: int) -> dict[str, Any]:
        """Count tokens and pairs in `PROBED_STEPS` steps, spread evenly over the first `steps`.

        Returns:
            ``padding_share`` of the inputs, ``epochs`` of the steps, and totals of the probed
            steps: tokens, predicted positions, those with `[MASK]` and with another piece, pairs,
            and shuffled tokens and trigrams if there are any.
        """
        if not steps:
            return {"probed_steps": 0}
        probed = np.unique(np.linspace(0, steps - 1, PROBED_STEPS, dtype=np.int64))
        make = self._batch_maker()
        totals: dict[str, int] = {}
        for step in probed:
            for name, value in make(int(step))[2].items():
                totals[name] = totals.get(name, 0) + value
        rows = self.settings.batch_size * len(probed)
        return {
            "probed_steps": len(probed),
            "rows": rows,
            "rows_per_epoch": self.rows_per_epoch,
            "epochs": round(steps * self.settings.batch_size / self.rows_per_epoch, 4),
            "padding_share": round(
                1 - totals["input_tokens"] / (rows * self.settings.inputs_length), 6
            ),
            **totals,
        }

    def pieces(self, step: int) -> Pieces:
        """Return the pieces of the file of ids in the batch of a step; each is a segment."""
        rows = self.reader()(step)
        filled = rows.piece_lengths > 0
        return Pieces(
            rows.starts[filled],
            rows.piece_lengths[filled],
            rows.piece_rows[filled],
            np.flatnonzero(filled),
        )

    def steps_of(self, documents: Sequence[int], *, steps: int) -> dict[int, list[int]]:
        """Return the steps below `steps` that read tokens of each document."""
        read = self.reader()

        def starts(step: int) -> Int64:
            rows = read(step)
            return rows.starts[rows.piece_lengths > 0]

        return steps_of_masked_documents(starts, self.offsets, documents, steps=steps)

    def denoisers(self, step: int) -> None:
        """Return None: the objective is not a mixture of denoisers."""

    def reader(self) -> SentenceReader:
        """Return the function from a step to its rows before masking."""
        if self.settings.masked_lm.rows == "electra_segments" and isinstance(self.layout, PairRows):
            return electra_reader(self.layout, self.corpus, self.settings, self.seed)
        if isinstance(self.layout, PairRows):
            return pair_reader(self.layout, self.corpus, self.settings, self.seed)
        return run_reader(self.layout, self.corpus, self.settings, self.seed)

    def _batch_maker(self) -> Maker:
        """Return the function from a step to features, targets and statistics."""
        settings, masked_lm = self.settings, self.settings.masked_lm
        read = self.reader()

        def make(step: int) -> tuple[Features, Int32, dict[str, int]]:
            # 1. Rows of ids. 2. The positions to predict, and their replacement; the targets are
            #    the original ids. All draws are functions of row and epoch, not of the batch.
            rows = read(step)
            tokens = row_tokens(
                settings, rows.ids, rows.lengths, rows.draws, word_starts=self.is_word_start
            )
            masking = mask_rows(settings, rows.ids, tokens, vocab=self.vocab)
            masked = masking.rows
            width = settings.inputs_length
            features = {
                "encoder_ids": masked.ids,
                "encoder_segments": first_positions(rows.lengths, width).astype(np.int32),
                # With one token type every token has type 0.
                "encoder_types": rows.types if self.token_types > 1 else np.zeros_like(rows.types),
                "target_positions": masked.positions,
            }
            if masked_lm.pair_task != "none":
                features["pair_label"] = rows.pair_label
            if masked_lm.boundary_weight:
                is_text = (rows.ids != PAD_ID) & (rows.ids < self.vocab.total_ids)
                borders = boundaries(masking.mask, masked.positions, masked.targets, is_text)
                features["boundary_positions"] = borders.borders
                features["boundary_index"] = borders.index_in_span
            if self.draws_samples:
                features["sample_draws"] = rows.draws.features(
                    Draw.SAMPLES, settings.targets_length
                )
            return features, masked.targets, self._statistics(rows, masking)

        return make

    def _statistics(self, rows: TokenRows, masking: Masking) -> dict[str, int]:
        mask, shuffled, masked = masking
        is_mask_piece = mask & (masked.ids == self.corpus.special("[MASK]"))
        values = {
            "input_tokens": rows.lengths,
            "target_tokens": masked.targets != PAD_ID,
            "masked_tokens": is_mask_piece,
            # A random piece that equals the original one counts as unchanged.
            "random_tokens": mask & ~is_mask_piece & (masked.ids != rows.ids),
            "second_segments_of_other_documents": rows.is_random_next,
            "positive_pairs": rows.pair_label > 0,
        }
        if shuffled is not None:
            values |= {"shuffled_tokens": shuffled.places, "shuffled_trigrams": shuffled.starts}
        return {name: int(value.sum()) for name, value in values.items()}


def load_masked_inputs(settings: PretrainStage, *, seed: int, **files: Path) -> MaskedInputs:
    """Open the corpus and lay it out in rows of sentences.

    Args:
        settings: of the stage; with less than two token types all tokens are of type 0, and a
            network with a generator gets random numbers for the pieces that it draws.
        seed: the run's seed.
        files: of the split, see `open_sentences`.

    Raises:
        ArtifactError: a file is missing or damaged, or the ids are of another vocabulary.
        CorpusError: the corpus has no whole sentence, or only one document although B of a pair
            comes from another one, or fewer ids than `unique_tokens`.
    """
    training = settings.pretrain
    offsets, corpus, documents, is_word_start = open_sentences(settings, seed=seed, **files)
    layout: PairRows | RunRows
    if training.masked_lm.has_pairs:
        if training.masked_lm.pair_task != "none" and len(documents.firsts) == 1:
            raise CorpusError(
                f"{files['ids']} has one document with sentences, and pretrain.masked_lm.pair_task "
                f"{training.masked_lm.pair_task} takes segments from another one; give it more "
                f"text, or set pair_task to none"
            )
        layout = pair_rows(training, corpus.sentences, documents, seed=seed)
    else:
        layout = run_rows(training, corpus.sentences, documents, seed=seed)
    return MaskedInputs(
        settings=training,
        seed=seed,
        offsets=offsets,
        layout=layout,
        vocab=settings.vocab,
        corpus=corpus,
        is_word_start=is_word_start,
        token_types=settings.model.token_types,
        draws_samples=settings.model.family.has_generator,
    )
