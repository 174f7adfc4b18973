"""What `tasks new` warns of: rows that can be read and are likely meant otherwise."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from t5repro.config.sections.tasks import OwnTask
from t5repro.errors import TaskDataError
from t5repro.new_task.doubts import doubts
from t5repro.new_task.proposal import Options, propose
from t5repro.new_task.rows import read_rows


def warnings(path: Path, targets: Sequence[str], text: str = "text {}") -> list[str]:
    """Return the warnings about rows with these targets, in turn."""
    lines = [f"{text.format(n)}|{targets[n % len(targets)]}" for n in range(40)]
    path.write_text("\n".join(["text|label", *lines, ""]), encoding="utf-8")
    rows = read_rows(path, delimiter="|")
    definition = propose(rows, Options()).definition
    files: dict[str, list[str]] = {"train": [path.name], "validation": [path.name]}
    return list(doubts(rows, OwnTask(files=files, **definition)))


@pytest.mark.parametrize(
    "labels",
    [
        ("no", "yes", "Yes"),
        ("no", "yes", "yes "),
        ("no", "yes", "yes\u00a0"),
        ("no", "yes", "ye\u200bs"),
        ("no", "\u00e9", "e\u0301"),
        ("0", "1", "1.0"),
        ("no", "\uff59es", "yes"),
    ],
)
def test_labels_that_look_alike_are_named(labels: Sequence[str], tmp_path: Path) -> None:
    (warning,) = warnings(tmp_path / "rows.csv", labels)
    shown = sorted(map(repr, labels[1:]))
    assert warning.startswith("the labels ")
    assert sorted(warning.removeprefix("the labels ").split(" look")[0].split(", ")) == shown


@pytest.mark.parametrize("labels", [("no", "yes"), ("1", "2", "10"), ("c++", "c#"), ("é", "e")])
def test_other_labels_are_not(labels: Sequence[str], tmp_path: Path) -> None:
    assert warnings(tmp_path / "rows.csv", labels) == []


@pytest.mark.parametrize("word", ["N/A", "nan", "NULL", "None", "-", "#N/A"])
def test_words_for_a_missing_value_are_counted(word: str, tmp_path: Path) -> None:
    (warning,) = warnings(tmp_path / "rows.csv", ("no", "yes", "no", "yes", word))
    assert warning.startswith(f"8 rows have {word!r} as label")
    (warning,) = warnings(tmp_path / "rows.csv", ("no",) * 39 + ("yes",), text=word)[1:]
    assert warning.startswith(f"40 rows have {word!r} as text")


@pytest.mark.parametrize("form", ["{},5", "{} %", "{},000", "$ {}.50", "1 {}00"])
def test_numbers_that_are_read_as_text_are_named(form: str, tmp_path: Path) -> None:
    targets = [form.format(n) for n in range(1, 41)]
    (warning,) = warnings(tmp_path / "rows.csv", targets)
    assert warning.startswith("40 of 40 values of label look like numbers and are read as text")
    assert repr(targets[0]) in warning


def test_equal_inputs_with_different_targets_are_counted(tmp_path: Path) -> None:
    (warning,) = warnings(tmp_path / "rows.csv", ("no", "yes"), text="the same")
    assert warning.startswith("1 inputs occur with different values of label, the first 'the same'")
    assert warnings(tmp_path / "rows.csv", [f"other answer {n}" for n in range(40)]) == []


def test_a_header_that_joined_files_repeat_is_no_row(tmp_path: Path) -> None:
    rows = "".join(f"line {n},{n % 2}\n" for n in range(9))
    for name, cells in (("a.csv", ","), ("a.tsv", "\t")):
        table = f"text,label\n{rows}text,label\n{rows}".replace(",", cells)
        (tmp_path / name).write_text(table)
        with pytest.raises(TaskDataError, match="line 11: the header again: .* remove the line"):
            read_rows(tmp_path / name)


def test_what_excel_and_an_old_mac_write_before_or_between_lines_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("sep=;\ntext;label\na;1\nb;0\n")
    with pytest.raises(TaskDataError, match="line 1: found 'sep=,'; .* delete the line"):
        read_rows(tmp_path / "a.csv")
    (tmp_path / "a.tsv").write_bytes(b"text\tlabel\ra\t1\rb\t0\r")
    with pytest.raises(TaskDataError, match="no carriage return in a name; convert the line ends"):
        read_rows(tmp_path / "a.tsv")


def test_a_value_that_the_first_record_lacks_is_a_fault_of_that_record(tmp_path: Path) -> None:
    rows = "".join(f'{{"id": {n}, "text": "a{n}", "label": {n % 2}}}\n' for n in range(9))
    (tmp_path / "a.jsonl").write_text('{"id": 9, "text": "b"}\n' + rows)
    with pytest.raises(TaskDataError, match="line 1: no 'label' among"):
        propose(read_rows(tmp_path / "a.jsonl"), Options())
