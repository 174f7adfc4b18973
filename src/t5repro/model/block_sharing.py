"""Which blocks of an encoder-only network have the same weights (ALBERT, section 3.1).

Source: ALBERT ``transformer_model`` with ``num_hidden_groups`` and ``inner_group_num``.
"""

from t5repro.config.sections.model import ModelSettings


def block_with_weights(model: ModelSettings, number: int) -> int:
    """Return the first block that has the weights of a block; itself if no earlier one has.

    Args:
        model: shape of the network.
        number: of the block, from 0.
    """
    if not model.block_groups:
        return number
    blocks = model.num_encoder_layers // model.block_groups  # of each group, one after another
    return number // blocks * blocks + number % model.blocks_per_group


def blocks_with_weights(model: ModelSettings) -> list[int]:
    """Return the numbers of the blocks with weights of their own."""
    if not model.block_groups:
        return list(range(model.num_encoder_layers))
    blocks = model.num_encoder_layers // model.block_groups
    return [
        group * blocks + number
        for group in range(model.block_groups)
        for number in range(model.blocks_per_group)
    ]
