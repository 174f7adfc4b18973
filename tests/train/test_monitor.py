import csv

import pytest

tf = pytest.importorskip("tensorflow")
from t5repro.errors import StorageError  # noqa: E402
from t5repro.train import monitor as module  # noqa: E402
from t5repro.train.monitor import COLUMNS, Monitor  # noqa: E402

pytestmark = pytest.mark.keras


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def make(folder, first_step=0):
    return Monitor(folder, events=str(folder), positions=200, flops=1000, first_step=first_step)


def rows_of(folder):
    with (folder / "speed.csv").open() as handle:
        return list(csv.DictReader(handle))


def test_speeds_count_from_the_end_of_the_first_call_which_compiles(tmp_path, clock):
    monitor = make(tmp_path)
    clock.now += 60
    monitor.add(5, 700)
    clock.now += 2
    monitor.add(5, 800)
    monitor.write(10, 3.5, 0.01, validation_loss=4.5)
    clock.now += 1
    monitor.add(5, 900)
    monitor.write(15, 3.0, 0.01, validation_loss=4.0)
    first, second = (
        {name: float(value) for name, value in row.items()} for row in rows_of(tmp_path)
    )
    assert tuple(first) == COLUMNS
    assert first == {
        "step": 10,
        "loss": 3.5,
        "learning_rate": 0.01,
        "validation_loss": 4.5,
        "steps_per_second": 2.5,
        "tokens_per_second": 400,
        "padding_share": 0.25,
        "model_flops": 10_000,
        "model_flops_per_second": 2500,
    }
    assert (second["steps_per_second"], second["tokens_per_second"]) == (5, 900)
    assert second["padding_share"] == pytest.approx(0.1)


def test_time_that_is_left_out_counts_for_no_speed(tmp_path, clock):
    monitor = make(tmp_path)
    monitor.add(5, 700)
    monitor.write(5, 3.5, 0.01)
    clock.now += 30
    monitor.leave_out(30)
    clock.now += 2
    monitor.add(5, 700)
    monitor.write(10, 3.5, 0.01)
    assert [row["steps_per_second"] for row in rows_of(tmp_path)] == ["", "2.5"]


def test_a_row_of_the_first_call_alone_has_no_speed(tmp_path, clock):
    monitor = make(tmp_path)
    monitor.add(5, 1000)
    monitor.write(5, 3.5, 0.01)
    (row,) = rows_of(tmp_path)
    assert (row["steps_per_second"], row["padding_share"]) == ("", "0.0")


def test_tensorboard_gets_the_same_numbers(tmp_path, clock):
    monitor = make(tmp_path)
    monitor.add(1, 100)
    clock.now += 1
    monitor.add(1, 100)
    monitor.write(2, 3.5, 0.01, validation_loss=4.5)
    monitor.close()
    (file,) = tmp_path.glob("events.out.tfevents.*")
    found = {}
    for record in tf.data.TFRecordDataset(str(file)):
        event = tf.compat.v1.Event.FromString(record.numpy())
        for value in event.summary.value:
            assert event.step == 2
            found[value.tag] = float(tf.make_ndarray(value.tensor))
    (row,) = rows_of(tmp_path)
    del row["step"]
    assert found == {name: pytest.approx(float(value)) for name, value in row.items()}


def test_a_resumed_training_goes_on_with_the_rows_up_to_its_state(tmp_path, clock):
    monitor = make(tmp_path)
    for step in (2, 4, 6):
        monitor.add(2, 100)
        monitor.write(step, 3.5, 0.01)
    make(tmp_path, first_step=4)
    assert [row["step"] for row in rows_of(tmp_path)] == ["2", "4"]
    make(tmp_path, first_step=0)
    assert rows_of(tmp_path) == []


def test_a_damaged_table_is_begun_anew(tmp_path):
    (tmp_path / "speed.csv").write_text("nothing like it\n1,2")
    make(tmp_path, first_step=4)
    assert rows_of(tmp_path) == []


def test_without_a_folder_nothing_is_written(tmp_path):
    monitor = Monitor(None, events="", positions=1, flops=1, first_step=0)
    monitor.add(1, 1)
    monitor.write(1, 1.0, 1.0)
    monitor.close()
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write .*speed.csv"):
        make(tmp_path / "file")
