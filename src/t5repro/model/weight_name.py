"""The names of one weight in other libraries."""

from dataclasses import dataclass

TASK = "task."


@dataclass(frozen=True)
class WeightName:
    """The names of one weight.

    Attributes:
        path: path in our model.
        huggingface: name in a Hugging Face state.
        released: name in a released TensorFlow checkpoint; empty if there is none.
        keras_hub: attributes from keras-hub's backbone to the variable, joined by dots; from its
            task if they begin with `TASK`; empty if it has no such weight.
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

    @property
    def in_keras_hub_task(self) -> bool:
        """Whether keras-hub has the weight in a task, above the backbone."""
        return self.keras_hub.startswith(TASK)
