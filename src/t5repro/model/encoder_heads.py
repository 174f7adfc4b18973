"""The heads that an encoder takes over from an earlier training, and the heads it reinitialises."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from t5repro.model.checkpoints import opened, read_labels
from t5repro.model.labels import LabelColumns

PAIR_HEAD = "pair_head/"
# The last three begin the names of ELECTRA's generator and of the heads of its second network.
PRETRAINING_HEADS = (
    *("masked_lm/", "boundary_head/", PAIR_HEAD),
    *("generator", "detector_head/", "piece_head/"),
)
LABEL_HEAD = "label_head/"
SPAN_HEAD = "span_head/"
TAG_HEAD = "tag_head/"
SAN_HEAD = "san_head/"
POOLER = "pooler/"
HEADS = (*PRETRAINING_HEADS, LABEL_HEAD, SAN_HEAD, SPAN_HEAD, TAG_HEAD, POOLER)


def new_heads(path: Path, columns: LabelColumns) -> tuple[str, ...]:
    """Return the starts of the names of weights that a file cannot give, or that have no use.

    Labels of other tasks have another head (BERT, section 3.2); the head of spans serves all. A
    pre-training without a task on pairs has no pooler, which RoBERTa adds in fine-tuning.

    Args:
        path: weights of the earlier training.
        columns: of the network's head; empty for a network that writes text, which has no new head.

    Raises:
        ArtifactError: the file is missing or damaged.
    """
    if not columns.answers:
        return ()
    with opened(path) as arrays:
        names = tuple(arrays.keys())
    # Labels need no head of spans, and spans no pooler: one of the two networks may lack them.
    needed = {SPAN_HEAD: columns.has_spans, POOLER: columns.pooled > 0}
    exists = {head: any(name.startswith(head) for name in names) for head in needed}
    other_labels = read_labels(path).answers != columns.answers
    has_networks = bool(columns.networks) or any(name.startswith(SAN_HEAD) for name in names)
    return (
        *([LABEL_HEAD, TAG_HEAD] if other_labels else []),
        *([SAN_HEAD] if other_labels and has_networks else []),
        *(head for head in needed if exists[head] != needed[head]),
    )


def shared_weights(
    arrays: Mapping[str, np.ndarray], variables: Mapping[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the weights of a checkpoint and of a model, without heads that only one has."""
    return (
        {name: array for name, array in arrays.items() if name in variables or not _is_head(name)},
        {name: value for name, value in variables.items() if name in arrays or not _is_head(name)},
    )


def _is_head(name: str) -> bool:
    return name.startswith(HEADS)
