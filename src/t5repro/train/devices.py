"""Devices of training; prediction needs the same, so they are in `model.devices`."""

from t5repro.model.devices import Devices, prepare

__all__ = ["Devices", "prepare"]
