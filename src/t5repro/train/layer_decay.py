"""Learning rates, or gradients, that fall from the head of a network to its embedding.

Source: ELECTRA ``model/optimization._get_layer_lrs``; XLNet ``model_utils.get_train_op``.
"""

import re
from collections.abc import Iterable

from t5repro.config.sections.model import ModelSettings
from t5repro.model.encoder_heads import HEADS

BLOCK = re.compile(r"^(?P<stack>encoder|decoder)/block_(?P<number>\d+)/")
LAST_NORM = re.compile(r"^(?P<stack>encoder|decoder)/norm/")
OUTPUT = ("output_matrix", *HEADS)


def rate_factors(paths: Iterable[str], decay: float, model: ModelSettings) -> dict[str, float]:
    """Return the factors of the learning rates of weights, without factors of 1.

    Heads have the rate itself, the top block of a stack decay^2, each block below it one decay
    more, and embedding, positions and all else below the first block one more than that. The norm
    above the blocks belongs to the top one.

    Args:
        paths: paths of weights in the model.
        decay: factor of a layer, more than 0; 1 means none.
        model: shape of the network.
    """
    if decay == 1:
        return {}
    heights = model.heights
    # The embedding is below the encoder, if there is one.
    highest = heights[model.family.stacks[0]]
    factors = {}
    for path in paths:
        if path.startswith(OUTPUT):
            continue
        layers_above = highest
        if match := BLOCK.match(path):
            layers_above = heights[match["stack"]] - 1 - int(match["number"])
        elif LAST_NORM.match(path):
            layers_above = 0
        factors[path] = decay ** (layers_above + 2)
    return factors


def gradient_factors(paths: Iterable[str], decay: float, model: ModelSettings) -> dict[str, float]:
    """Return the factors of the gradients of blocks: one decay for each block above.

    Embedding and heads keep their gradients.

    Args:
        paths: paths of weights in the model.
        decay: factor of a layer, more than 0; 1 means none.
        model: shape of the network.
    """
    matches = {path: BLOCK.match(path) for path in paths}
    factors = {
        path: decay ** (model.heights[match["stack"]] - 1 - int(match["number"]))
        for path, match in matches.items()
        if match
    }
    return {path: factor for path, factor in factors.items() if factor != 1}
