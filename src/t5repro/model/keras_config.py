"""What Keras saves of a layer or a network: the arguments of its constructor.

Keras records arguments that are numbers and texts by itself; ours have a `ModelSettings` too, and
layers that lend their weights.
"""

import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

import keras

from t5repro.config.sections.model import ModelSettings

PACKAGE = "t5repro"  # in the registered names of classes: ``t5repro>EncoderDecoder``


class Configured:
    """A base of layers and networks that ``.keras`` files and `clone_model` make again.

    A layer with lent weights has its lender in its configuration; in a network the constructor
    shares them again.
    """

    _arguments: Mapping[str, Any]
    trainable: bool

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        keras.saving.register_keras_serializable(PACKAGE)(cls)

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        """Record the arguments."""
        instance = super().__new__(cls, *arguments, **named)
        bound = inspect.signature(cls.__init__).bind(instance, *arguments, **named).arguments
        bound |= bound.pop("layer", {})  # the arguments of `SeededLayer`
        bound.pop("self")
        # Keras would track layers in an attribute or a dictionary as parts of this one.
        vars(instance)["_arguments"] = MappingProxyType(bound)
        return instance

    def get_config(self) -> dict[str, Any]:
        """Return the arguments as values that JSON has, and whether the weights train."""
        trainable = {} if self.trainable else {"trainable": False}
        return {name: _as_json(value) for name, value in self._arguments.items()} | trainable

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return a new instance from the result of `get_config`."""
        arguments = {name: _from_json(name, value) for name, value in config.items()}
        trainable = arguments.pop("trainable", True)
        instance = cls(**arguments)
        if not trainable:
            instance.trainable = False
        return instance


def _as_json(value: Any) -> Any:
    if isinstance(value, ModelSettings):
        return value.model_dump(mode="json")
    is_object = isinstance(value, keras.layers.Layer | keras.DTypePolicy)
    return keras.saving.serialize_keras_object(value) if is_object else value


def _from_json(name: str, value: Any) -> Any:
    if name == "model":
        return ModelSettings.model_validate(value)
    is_object = isinstance(value, dict) and "class_name" in value
    return keras.saving.deserialize_keras_object(value) if is_object else value
