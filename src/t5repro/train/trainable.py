"""Which weights fine-tuning trains, and from which step on (paper section 3.5.1).

All of them; adapters and norms; or the top block of each stack first and one block more in each
episode, the embeddings always. A weight that does not train yet keeps its bytes, and so do its
slots of the optimizer.
"""

import re
from collections.abc import Iterable
from typing import Any, Protocol, cast

from t5repro.config.sections.model import AddedLayers, ModelSettings
from t5repro.config.sections.training import TrainingSettings
from t5repro.model.adapters import ADAPTER
from t5repro.model.checkpoints import weight_variables
from t5repro.model.encoder_heads import LABEL_HEAD, POOLER, SAN_HEAD, SPAN_HEAD

BLOCK = re.compile(r"^(encoder|decoder)/block_(\d+)/")
POSITIONS = re.compile(r"^(encoder|decoder)/(relative_bias|positions)/")
NORM = re.compile(r"(^|/|_)norm/(scale|bias)$")


class Method(Protocol):
    """The settings of `finetune` that decide which weights train.

    Pre-training imports this module and must not import the settings of fine-tuning: each new one
    would rerun it.
    """

    @property
    def adapter_norms(self) -> str:
        """``all`` norms train, or the adapters' ``own``."""

    @property
    def unfreezing_episodes(self) -> int:
        """Episodes of gradual unfreezing; 0 means one per block."""


def _method(training: TrainingSettings, name: str) -> Method | None:
    """Return the settings of the method `name`, or nothing if the stage has another one."""
    if not isinstance(training, AddedLayers) or training.method != name:
        return None
    return cast("Method", training)


def adapter_width(training: TrainingSettings) -> int:
    """Return the inner width of the adapters that a stage trains; 0 means none."""
    return training.width if isinstance(training, AddedLayers) else 0


def is_trainable(path: str, training: TrainingSettings) -> bool:
    """Return whether a weight trains at any step of a stage.

    Args:
        path: its path in the model, such as ``encoder/block_0/adapter/norm/scale``.
        training: settings of the stage.
    """
    adapters = _method(training, "adapters")
    if (
        adapters is None
        or ADAPTER in path
        or path.startswith((LABEL_HEAD, SAN_HEAD, SPAN_HEAD, POOLER))
    ):
        return True
    return adapters.adapter_norms == "all" and NORM.search(path) is not None


def unfreeze_steps(
    paths: Iterable[str], training: TrainingSettings, model: ModelSettings
) -> dict[str, int]:
    """Return the first training step of each weight that does not train from step 0.

    Gradual unfreezing has episodes of ``steps // episodes`` steps; the remainder belongs to the
    last. Episode n, from 0, trains the top ``ceil((n + 1) * blocks / episodes)`` blocks of each
    stack, in the paper one block more per episode. The norm above the top block and the embeddings
    train from the start; the table of position biases trains with the lowest block, which contains
    it in the released checkpoints, and so does a table of learned positions.

    Args:
        paths: paths of weights in the model.
        training: settings of the stage.
        model: shape of the network.
    """
    unfreezing = _method(training, "gradual_unfreezing")
    if unfreezing is None:
        return {}
    heights = model.heights
    blocks = max(heights.values())
    episodes = unfreezing.unfreezing_episodes or blocks
    first_steps = {}
    for path in paths:
        match = BLOCK.match(path) or POSITIONS.match(path)
        if match is None:
            continue
        block = int(match[2]) if match.re is BLOCK else 0
        blocks_above = heights[match[1]] - 1 - block
        # Counted from the top: a shorter stack is complete before the taller one.
        first_steps[path] = (blocks_above * episodes // blocks) * (training.steps // episodes)
    return {path: step for path, step in first_steps.items() if step}


def freeze(model: Any, training: TrainingSettings) -> None:
    """Mark the weights that never train as not trainable."""
    for path, variable in weight_variables(model).items():
        if not is_trainable(path, training):
            variable.trainable = False
