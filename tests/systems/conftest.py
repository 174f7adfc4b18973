"""The environment of a training, before any test module imports TensorFlow."""

from t5repro.config.sections.devices import DevicesSettings
from t5repro.model.devices import set_environment

set_environment(DevicesSettings())
