"""The rows of the corpus under an objective: documents cut into segments, segments in rows.

A function of the offsets of the documents, the settings and the seed. Without TensorFlow, so that
an audit can ask which steps read a document without waiting for it.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from t5repro.array_types import Int64
from t5repro.config.sections.pretrain import PretrainSettings, PretrainStage
from t5repro.errors import CorpusError
from t5repro.inputs.packing import (
    PackedRows,
    Stream,
    chunk_documents,
    document_stream,
    pack_documents,
)
from t5repro.objectives.row_lengths import corruption_limits, segment_length
from t5repro.randomness import repeat_seed
from t5repro.vocab.token_files import read_offsets


@dataclass(frozen=True, kw_only=True)
class CorpusLayout:
    """The corpus as rows.

    Attributes:
        settings: of pre-training.
        seed: the run's seed.
        offsets: start of each document in the file of ids, and end of the last one.
        layout: tokens of each row.
        segment_tokens: tokens of the longest segment.
    """

    settings: PretrainSettings
    seed: int
    offsets: Int64
    layout: Stream | PackedRows
    segment_tokens: int

    @property
    def rows_per_epoch(self) -> int:
        """Rows until every segment was taken once."""
        return self.layout.segments if isinstance(self.layout, Stream) else self.layout.rows


def open_layout(settings: PretrainStage, offsets: Path) -> CorpusLayout:
    """Return the layout of a pre-training from its settings and its file of offsets.

    Raises:
        ArtifactError: the file is missing or damaged.
    """
    seed = repeat_seed(settings.seed, settings.pretrain.repeat)
    return lay_out(settings.pretrain, read_offsets(offsets), seed=seed)


def lay_out(settings: PretrainSettings, offsets: Int64, *, seed: int) -> CorpusLayout:
    """Lay out the corpus.

    Args:
        settings: of pre-training.
        offsets: start of each document in the file of ids, and end of the last one.
        seed: the run's seed.

    Raises:
        CorpusError: the corpus does not fill a row, or has fewer than `unique_tokens`.
        SettingsError: the targets of a segment do not fit `targets_length`.
    """
    segment_tokens = segment_length(settings)
    bounds = first_tokens(offsets, settings.unique_tokens)
    documents = chunk_documents(bounds, chunk_tokens=settings.chunk_tokens, seed=seed)
    layout: Stream | PackedRows
    if settings.concatenate_documents:
        layout = document_stream(documents, segment_tokens=segment_tokens, seed=seed)
    else:
        layout = pack_documents(
            documents,
            segment_tokens=segment_tokens,
            limits_by_tokens=corruption_limits(settings, segment_tokens),
            inputs_length=settings.inputs_length,
            targets_length=settings.targets_length,
            seed=seed,
        )
    return CorpusLayout(
        settings=settings, seed=seed, offsets=bounds, layout=layout, segment_tokens=segment_tokens
    )


def first_tokens(offsets: Int64, count: int) -> Int64:
    """Return the offsets of the first `count` tokens, the last document cut; 0 means all tokens.

    The corpus is ordered by a hash of each page's address, so its beginning is a random sample,
    and a smaller subset is part of every larger one.

    Raises:
        CorpusError: there are fewer.

    Source: paper section 3.4.2.
    """
    if not count:
        return offsets
    if count > offsets[-1]:
        raise CorpusError(
            f"pretrain.unique_tokens is {count}, the corpus has {int(offsets[-1])} tokens; lower "
            f"it, or give it more text"
        )
    documents = int(np.searchsorted(offsets, count))
    return np.append(offsets[:documents], count).astype(np.int64)
