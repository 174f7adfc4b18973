"""A logger whose package is absent is refused before a job starts."""

import sys

import pytest

from t5repro.config.load import load_settings
from t5repro.config.logger_packages import check_logger_packages
from t5repro.errors import SettingsError


def test_a_package_that_is_absent_is_named_with_its_place() -> None:
    callbacks = ["keras.callbacks.CSVLogger", "dwclive.keras.DVCLiveCallback"]
    settings = load_settings({"run": {"loggers": [{"callback": name} for name in callbacks]}})
    with pytest.raises(SettingsError, match="no package 'dwclive'; .* pip") as error:
        check_logger_packages(settings)
    assert error.value.keys == ("run", "loggers", 1, "callback")


def test_a_package_that_is_there_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    settings = load_settings({"run": {"loggers": [{"callback": "wave.Logger"}]}})
    check_logger_packages(settings)
    assert "wave" not in sys.modules
