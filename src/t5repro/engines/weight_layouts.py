"""How the weights of all networks are divided among the devices of a mesh, as one table.

A product with a divided matrix needs no numbers of the other parts: attention is divided by heads,
the feed-forward layer by its inner features, the embedding by ids. The matrices that return to the
residual stream (`o`, `wo`) are divided by their rows, and their products are added up. All else is
small, and every device has all of it.

To add a weight to a network, add its path here, also if it is not divided: a weight that no key
covers is refused.

Source: Shoeybi et al., 2019 (Megatron-LM), section 3; t5x ``standard_logical_axis_rules``.
"""

import re
from collections.abc import Iterable

from t5repro.errors import SettingsError

MODEL_AXIS = "model"
Axes = tuple[str | None, ...]  # for each axis of a weight: the axis of the mesh that divides it

WHOLE: Axes = ()  # every device has all of the weight
ROWS: Axes = (MODEL_AXIS, None)
COLUMNS: Axes = (None, MODEL_AXIS)
FEATURES: Axes = (MODEL_AXIS,)  # of a bias, which is added to divided columns

_STACK = r"(encoder|decoder|generator)"
_BLOCK = rf"{_STACK}/block_\d+"
_ATTENTION = rf"{_BLOCK}/(self|cross)_attention"
_FEED_FORWARD = rf"{_BLOCK}/feed_forward"

# Path of a weight, without the network's name, as a regular expression -> its axes.
LAYOUTS: tuple[tuple[str, Axes], ...] = (
    (r"(generator_)?embedding", ROWS),
    (r"output_matrix", COLUMNS),
    (rf"{_ATTENTION}/[qkv]", COLUMNS),
    (rf"{_ATTENTION}/[qkv]_bias", FEATURES),
    (rf"{_ATTENTION}/o", ROWS),
    (rf"{_ATTENTION}/o_bias", WHOLE),
    (rf"{_FEED_FORWARD}/wi(_[01])?", COLUMNS),
    (rf"{_FEED_FORWARD}/wi(_[01])?_bias", FEATURES),
    (rf"{_FEED_FORWARD}/wo", ROWS),
    (rf"{_FEED_FORWARD}/wo_bias", WHOLE),
    (r"(encoder|decoder)/(block_\d+/)?relative_bias/table", ROWS),  # a row for each head
    # Attention to distances and types: its biases and vectors have an axis of heads.
    (rf"{_ATTENTION}/r", COLUMNS),
    (rf"{_ATTENTION}/(content|distance|type)_bias", ROWS),
    (rf"{_ATTENTION}/type_table", (None, MODEL_AXIS, None)),
    (r"encoder/query_start", WHOLE),
    (rf"{_BLOCK}/(self_attention|cross_attention|feed_forward)_norm/(scale|bias)", WHOLE),
    (rf"{_BLOCK}/adapter/norm/(scale|bias)", WHOLE),
    (rf"{_BLOCK}/adapter/feed_forward/w[io](_bias)?", WHOLE),
    (r"(encoder|decoder)/norm/(scale|bias)", WHOLE),
    (rf"{_STACK}/positions/table", WHOLE),
    # Encoders: what is added to the embedding, and the heads.
    (rf"{_STACK}/token_types/table", WHOLE),
    (rf"{_STACK}/embedding_norm/(scale|bias)", WHOLE),
    (rf"{_STACK}/embedding_projection/(matrix|bias)", WHOLE),
    (r"(masked_lm|boundary_head|piece_head)/bias", FEATURES),  # a number for each id
    (r"(masked_lm|piece_head)/transform/(matrix|bias)", WHOLE),
    (r"(masked_lm|piece_head)/norm/(scale|bias)", WHOLE),
    (r"detector_head/(transform|logit)/(matrix|bias)", WHOLE),
    (r"boundary_head/indices", WHOLE),
    (r"boundary_head/(first|second)/(matrix|bias)", WHOLE),
    (r"boundary_head/(first|second)_norm/(scale|bias)", WHOLE),
    (r"san_head/\w+/(query|attention|classes)/(matrix|bias)", WHOLE),
    (r"san_head/\w+/gru/(input|state)_(matrix|bias)", WHOLE),
    (r"(pooler|pair_head|label_head|span_head|tag_head)/(matrix|bias)", WHOLE),
)


def axes_of(path: str, layouts: Iterable[tuple[str, Axes]] = LAYOUTS) -> Axes:
    """Return the axes of the mesh that divide a weight.

    Args:
        path: of the weight, without the network's name.
        layouts: the table.

    Raises:
        SettingsError: no key or more than one matches the path.
    """
    matching = {key: axes for key, axes in layouts if re.fullmatch(key, path)}
    if len(matching) != 1:
        keys = f"{len(matching)} keys ({', '.join(matching)})" if matching else "no key"
        raise SettingsError(
            f"weight {path!r} is matched by {keys} of LAYOUTS in engines/weight_layouts.py, which "
            "divides the weights among the devices of devices.mesh; exactly one is needed, also "
            "for a weight that is not divided: add or correct its key, or set devices.mesh.model "
            "to 1"
        )
    return next(iter(matching.values()))


def checked_axes(path: str, shape: tuple[int, ...], parts: int) -> Axes:
    """Return `axes_of` for a weight that can be divided evenly.

    Args:
        path: see `axes_of`.
        shape: of the weight.
        parts: devices that the weight is divided among.

    Raises:
        SettingsError: see `axes_of`; or the weight has other axes, or cannot be divided evenly.
    """
    axes = axes_of(path)
    if axes and len(axes) != len(shape):
        raise SettingsError(
            f"weight {path!r} has the shape {shape}, and its layout in engines/weight_layouts.py "
            f"has {len(axes)} axes; correct the layout"
        )
    for size, axis in zip(shape, axes, strict=False):
        if axis and size % parts:
            raise SettingsError(
                f"weight {path!r} has the shape {shape}, of which {size} is not a multiple of "
                f"devices.mesh.model {parts}; set devices.mesh.model to a divisor of {size}"
            )
    return axes
