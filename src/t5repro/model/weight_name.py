"""The names of one weight in other libraries."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WeightName:
    """The names of one weight.

    Attributes:
        path: path in our model.
        huggingface: name in a Hugging Face state.
        released: name in a released TensorFlow checkpoint; empty if there is none.
        keras_hub: attributes from keras-hub's backbone to the variable, joined by dots; empty if it
            has no such network.
        transposed: whether Hugging Face stores the transposed matrix.
        transposed_in_keras_hub: whether keras-hub does.
        third: which third of Hugging Face's array it is, along the last axis, from 0; none if it is
            the whole.
        head: layer above the blocks to which it belongs, which not every network has; empty if
            every network has the weight.
        t5x: name below `target` of a T5X checkpoint; empty if there is none.
    """

    path: str
    huggingface: str
    released: str = ""
    keras_hub: str = ""
    transposed: bool = True
    transposed_in_keras_hub: bool = False
    third: int | None = None
    head: str = ""
    t5x: str = ""
