"""Batches of XLNet: rows of `stream_rows`, and their predictions of `objectives.permutation`.

As in `pretraining`, the batch of step n depends only on the data, the settings, the seed and n. The
rows of step n + 1 continue the rows of step n, slot by slot.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.array_types import Int32, Int64, Mask
from t5repro.config.sections.pretrain import PretrainSettings, PretrainStage
from t5repro.inputs.batches import Batches, Features
from t5repro.inputs.masked_steps import steps_of_masked_documents
from t5repro.inputs.pretraining import PROBED_STEPS, Pieces
from t5repro.inputs.sentence_corpus import open_sentences
from t5repro.inputs.stream_rows import SlotReader, pieces_of
from t5repro.objectives.permutation import predictions

Maker = Callable[[int], tuple[Features, Int32, dict[str, int]]]


@dataclass(frozen=True, kw_only=True)
class PermutedInputs:
    """The corpus as row slots that go on from step to step.

    Attributes:
        settings: of pre-training.
        offsets: start of each document in the file of ids, and end of the last one.
        read: returns the rows of a step before the prediction is drawn.
        is_word_start: whether the piece of each id begins a word, ``(total_ids,)``.
    """

    settings: PretrainSettings
    offsets: Int64
    read: SlotReader
    is_word_start: Mask

    @property
    def rows_per_epoch(self) -> int:
        """Rows of the first pass over the corpus."""
        return self.read.steps_of_pass(0) * self.settings.batch_size

    def batches(self, *, first_step: int, steps: int) -> Batches:
        """Return the batches of steps `first_step` to `first_step + steps - 1`.

        A batch of B rows of length L with M selected positions consists of features and targets,
        all int32. The features are ``encoder_ids``, ``encoder_segments``, which are 1,
        ``encoder_types`` and ``encoder_order``, all ``(B, L)``, and ``target_positions``,
        ascending and then 0, ``(B, M)``. The targets are the ids at the positions and then 0,
        ``(B, M)``. Row b of each step continues row b of the step before it; with both directions
        odd rows are read backwards.
        """
        return Batches(lambda step: self._make(step)[:2], first_step, steps)

    def counters(self, *, steps: int) -> dict[str, Any]:
        """Count tokens and targets in `PROBED_STEPS` steps, spread evenly over the first `steps`.

        Returns:
            ``epochs``: passes over the corpus, and totals of the probed steps: tokens, predicted
            positions, selected separators, and rows whose second segment follows the first.
        """
        if not steps:
            return {"probed_steps": 0}
        probed = np.unique(np.linspace(0, steps - 1, PROBED_STEPS, dtype=np.int64))
        totals: dict[str, int] = {}
        for step in probed.tolist():
            for name, value in self._make(step)[2].items():
                totals[name] = totals.get(name, 0) + value
        passes = self.read.passes(steps)
        return {
            "probed_steps": len(probed),
            "rows": self.settings.batch_size * len(probed),
            "rows_per_epoch": self.rows_per_epoch,
            "epochs": round(passes, 4),
            "padding_share": 0.0,
            **totals,
        }

    def pieces(self, step: int) -> Pieces:
        """Return the pieces of the file of ids in the batch of a step; each is a segment.

        The text that the memory has of earlier steps is not among them.
        """
        starts, lengths, rows = pieces_of(self.read(step).places)
        return Pieces(starts, lengths, rows, np.arange(len(starts)))

    def steps_of(self, documents: Sequence[int], *, steps: int) -> dict[int, list[int]]:
        """Return the steps below `steps` that read tokens of each document in their rows."""
        return steps_of_masked_documents(
            lambda step: self.pieces(step).starts, self.offsets, documents, steps=steps
        )

    def denoisers(self, step: int) -> None:
        """Return None: the objective is not a mixture of denoisers."""

    def _make(self, step: int) -> tuple[Features, Int32, dict[str, int]]:
        """Return features, targets and statistics of a step."""
        rows = self.read(step)
        prediction = predictions(
            self.settings,
            rows.ids,
            rows.separators,
            rows.backwards,
            rows.draws,
            word_starts=self.is_word_start,
        )
        features = {
            "encoder_ids": rows.ids,
            "encoder_segments": np.ones_like(rows.ids),
            "encoder_types": rows.types,
            "encoder_order": prediction.order,
            "target_positions": prediction.positions,
        }
        selected_separators = prediction.selected & rows.separators
        statistics = {
            "input_tokens": rows.ids.size,
            "target_tokens": int(np.count_nonzero(prediction.targets)),
            "selected_separators": int(np.count_nonzero(selected_separators)),
            "following_segments": int(np.count_nonzero(rows.follows)),
        }
        return features, prediction.targets, statistics


def load_permuted_inputs(settings: PretrainStage, *, seed: int, **files: Path) -> PermutedInputs:
    """Open the corpus as row slots.

    Args:
        settings: of the stage.
        seed: the run's seed.
        files: of the split, see `open_sentences`.

    Raises:
        ArtifactError: a file is missing or damaged, or the ids are of another vocabulary.
        CorpusError: the corpus has no whole sentence, fewer ids than `unique_tokens`, or does not
            fill a row of each slot.
    """
    corpus = open_sentences(settings, seed=seed, **files)
    return PermutedInputs(
        settings=settings.pretrain,
        offsets=corpus.offsets,
        read=SlotReader(settings.pretrain, corpus.ids, corpus.documents, seed=seed),
        is_word_start=corpus.is_word_start,
    )
