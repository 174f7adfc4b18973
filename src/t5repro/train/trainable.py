"""Which weights fine-tuning trains, and from which step on (paper section 3.5.1).

All of them; adapters and norms; or the top block of each stack first and one block more in each
episode, the embeddings always. What does not train yet keeps its bytes, and its slots of the
optimizer keep theirs.
"""

import re
from collections.abc import Iterable
from typing import Any

from t5repro.config.sections.finetune import FinetuneSettings
from t5repro.config.sections.model import ModelSettings
from t5repro.config.sections.training import TrainingSettings
from t5repro.model.adapters import PLACE

BLOCK = re.compile(r"^(encoder|decoder)/block_(\d+)/")
FIRST_BLOCK_TOO = re.compile(r"^(encoder|decoder)/relative_bias/")
NORM = re.compile(r"(^|/|_)norm/scale$")


def adapter_width(plan: TrainingSettings) -> int:
    """Return the inner width of the adapters that a stage trains; 0: it has none."""
    if isinstance(plan, FinetuneSettings) and plan.method == "adapters":
        return plan.adapter_width
    return 0


def trains(place: str, plan: TrainingSettings) -> bool:
    """Return whether a weight trains at any step of a stage.

    Args:
        place: its place in the model, such as ``encoder/block_0/adapter/norm/scale``.
        plan: of the stage.
    """
    if not adapter_width(plan):
        return True
    every_norm = isinstance(plan, FinetuneSettings) and plan.adapter_norms == "all"
    return PLACE in place or (every_norm and NORM.search(place) is not None)


def first_steps(
    places: Iterable[str], plan: TrainingSettings, model: ModelSettings
) -> dict[str, int]:
    """Return the steps of a stage that some weights wait before they train; absent: none.

    Gradual unfreezing has episodes of ``steps // episodes`` steps; what is left over belongs to
    the last. Episode n, from 0, trains the top ``ceil((n + 1) * blocks / episodes)`` blocks of
    each stack, in the paper one block more an episode. The norm above the top block and the
    embeddings train from the start, the table of position biases with the lowest block, where the
    released checkpoints hold it.

    Args:
        places: places of weights in the model.
        plan: of the stage.
        model: shape of the network.
    """
    if not isinstance(plan, FinetuneSettings) or plan.method != "gradual_unfreezing":
        return {}
    heights = {"encoder": model.num_encoder_layers, "decoder": model.num_decoder_layers}
    if model.decoder_only:
        del heights["encoder"]
    blocks = max(heights.values())
    episodes = plan.unfreezing_episodes or blocks
    waits = {}
    for place in places:
        found = BLOCK.match(place) or FIRST_BLOCK_TOO.match(place)
        if found is None:
            continue
        number = int(found[2]) if found.re is BLOCK else 0
        above = heights[found[1]] - 1 - number  # blocks of the stack over this one
        waits[place] = (above * episodes // blocks) * (plan.steps // episodes)
    return {place: step for place, step in waits.items() if step}


def freeze(model: Any, plan: TrainingSettings) -> None:
    """Take the weights that never train out of the model's trainable ones."""
    from t5repro.model.checkpoints import weight_variables

    for place, variable in weight_variables(model).items():
        if not trains(place, plan):
            variable.trainable = False
