"""Loggers of other projects get the rows of the history (`run.loggers`)."""

import csv
import dataclasses

import pytest
import traced_steps

pytest.importorskip("tensorflow")
import keras

from t5repro.errors import SettingsError
from t5repro.train.loggers import Loggers

pytestmark = pytest.mark.keras
CSV_LOGGER = {
    "callback": "keras.callbacks.CSVLogger",
    "arguments": {"filename": "{folder}/table.csv"},
}


class Broken(keras.callbacks.Callback):
    """A logger whose server goes down after the first row."""

    calls: list[int] = []  # noqa: RUF012 shared with the test

    def on_epoch_end(self, epoch, logs=None):
        self.calls.append(epoch)
        if len(self.calls) == 2:
            raise ConnectionError("no route to host")


class Offline(keras.callbacks.Callback):
    """A logger that asks its server when it is made."""

    def __init__(self):
        raise ConnectionError("no route to host")


class Unattached(keras.callbacks.Callback):
    """A logger that cannot take the model."""

    def set_model(self, model):
        raise RuntimeError("no sample of the inputs")


def test_a_logger_gets_every_row_of_the_history(tiny, tmp_path):
    job = tiny.make_job(
        tmp_path,
        monitor=True,
        steps=6,
        log_every_steps=2,
        validation_every_steps=2,
        loggers=[CSV_LOGGER],
    )
    traced_steps.run(job)
    with (tmp_path / "logs" / "table.csv").open() as stream:
        logged = list(csv.DictReader(stream))
    with (tmp_path / "results" / "history.csv").open() as stream:
        history = list(csv.DictReader(stream))
    assert [row["epoch"] for row in logged] == [row["step"] for row in history] == ["2", "4", "6"]
    for row, expected in zip(logged, history, strict=True):
        assert float(row["loss"]) == pytest.approx(float(expected["loss"]), rel=1e-8)
        measured = float(expected["validation_loss"])
        assert float(row["val_loss"]) == pytest.approx(measured, rel=1e-8)


def test_a_logger_that_fails_ends_no_training(tiny, tmp_path, capsys):
    broken = {"callback": f"{__name__}.Broken", "arguments": {}}
    Broken.calls.clear()
    job = tiny.make_job(
        tmp_path, monitor=True, steps=6, log_every_steps=2, loggers=[broken, CSV_LOGGER]
    )
    traced_steps.run(job)
    assert Broken.calls == [2, 4]
    assert "ConnectionError: no route to host); training goes on" in capsys.readouterr().err
    assert (tmp_path / "logs" / "table.csv").read_text().count("\n") == 4


def test_two_loggers_of_one_class_both_write(tiny, tmp_path):
    names = ["first.csv", "second.csv"]
    loggers = [
        {"callback": "keras.callbacks.CSVLogger", "arguments": {"filename": f"{{folder}}/{name}"}}
        for name in names
    ]
    job = tiny.make_job(tmp_path, monitor=True, steps=2, log_every_steps=2, loggers=loggers)
    traced_steps.run(job)
    assert all((tmp_path / "logs" / name).read_text().count("\n") == 2 for name in names)


def test_a_logger_that_refuses_the_model_gets_no_rows(capsys):
    entry = {"callback": f"{__name__}.Unattached", "arguments": {}}
    loggers = Loggers([entry, entry], None, folder=None, announce=print)
    loggers.write(1, {"loss": 1.0})
    printed = capsys.readouterr().out
    assert printed.count("Unattached.set_model failed (RuntimeError: no sample of the inputs)") == 2


def test_loggers_change_no_byte_of_the_results(tiny, tmp_path):
    job = tiny.make_job(tmp_path / "one", monitor=True, steps=4)
    traced_steps.run(job)
    other = tiny.make_job(tmp_path / "two", monitor=True, steps=4)
    traced_steps.run(dataclasses.replace(other, loggers=[CSV_LOGGER]))
    for path in sorted((tmp_path / "one" / "results").glob("*.safetensors")):
        assert path.read_bytes() == (tmp_path / "two" / "results" / path.name).read_bytes()


@pytest.mark.parametrize(
    ("callback", "arguments", "message"),
    [
        ("no_such_package.Logger", {}, "cannot be imported"),
        ("keras.callbacks.NoSuchLogger", {}, "keras.callbacks has no NoSuchLogger"),
        ("keras.callbacks.CSVLogger", {"file": "x"}, "refuses {'file': 'x'}"),
        (f"{__name__}.Offline", {}, "refuses {} (ConnectionError: no route to host)"),
        ("collections.OrderedDict", {}, "is no keras.callbacks.Callback"),
    ],
)
def test_a_logger_that_cannot_be_made_is_named_before_the_training(callback, arguments, message):
    entry = {"callback": callback, "arguments": arguments}
    with pytest.raises(SettingsError, match="run.loggers: ") as caught:
        Loggers([entry], None, folder=None, announce=print)
    assert message in str(caught.value)
