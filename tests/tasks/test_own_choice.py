"""Tasks of run files whose rows have options: two or ten columns, in every form of file."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from checkout import ROOT
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from t5repro.config.known_tasks import known_tasks
from t5repro.config.sections.tasks import OwnTask, TaskTexts
from t5repro.errors import TaskDataError
from t5repro.tasks.own import own_task
from t5repro.tasks.task import Example, Task

ROWS = [
    {"text": "The mill, old as it is, turns.", "one": "by wind", "two": "by night", "right": "one"},
    {"text": "The river is wide.", "one": "a hat", "two": "a boat", "right": "two"},
]


def definition(**change: Any) -> OwnTask:
    values = {
        "files": {"train": ["mine/train.csv"]},
        "fields": ["text"],
        "options": ["one", "two"],
        "target": "right",
        "metrics": ["accuracy"],
    }
    return OwnTask.model_validate(values | change)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        with path.open("w", newline="") as handle:
            delimiter = "\t" if path.suffix == ".tsv" else ","
            writer = csv.DictWriter(handle, list(rows[0]), delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
    return path


def examples(task: Task, path: Path, split: str = "train") -> list[Example]:
    return [e for row in task.read([path], split, Counter()) for e in task.to_examples(row)]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_options_are_first_in_the_text_and_apart_for_a_network_of_labels(
    tmp_path: Path, suffix: str
) -> None:
    task = own_task("mine", definition())
    first, second = examples(task, write(tmp_path / f"train.{suffix}", ROWS))
    assert first.inputs == ("mine one: by wind two: by night text: The mill, old as it is, turns.")
    assert (first.targets, first.answer) == ("one", 0)
    assert second.segments == ("The river is wide.",)
    assert (second.options, second.targets, second.answer) == (("a hat", "a boat"), "two", 1)
    assert task.labels == ("one", "two")
    assert [task.read_prediction(text, {}) for text in ("two", "a boat")] == [1, -1]


def test_labels_name_the_options_and_label_values_are_their_values_in_the_file(
    tmp_path: Path,
) -> None:
    columns = [f"ending{number}" for number in range(10)]
    rows = [
        {"start": "It", **{name: f"does {name}" for name in columns}, "label": number}
        for number in range(10)
    ]
    task = own_task(
        "mine",
        definition(
            fields=["start"],
            options=columns,
            target="label",
            labels=list("ABCDEFGHIJ"),
            label_values=[str(number) for number in range(10)],
            field_names=False,
        ),
    )
    read = examples(task, write(tmp_path / "train.jsonl", rows))
    assert [(example.answer, example.targets) for example in read] == list(enumerate("ABCDEFGHIJ"))
    assert read[0].inputs.startswith("mine A: does ending0 B: does ending1 C:")
    assert read[0].inputs.endswith("J: does ending9 It")
    assert read[0].options[9] == "does ending9"


def test_the_row_of_the_table_has_as_many_options() -> None:
    texts = TaskTexts(own={"mine": definition()})
    facts = known_tasks(texts)["mine"]
    assert (facts.answer, facts.options) == ("choice", 2)


def test_a_row_without_an_option_is_refused_or_left_out_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "train.csv", [*ROWS, ROWS[0] | {"two": " "}])
    with pytest.raises(TaskDataError, match=r"train\.csv line 4: two is ' '; allowed: a value"):
        examples(own_task("mine", definition()), path)
    excluded: Counter[str] = Counter()
    task = own_task("mine", definition(incomplete="skip"))
    assert len(list(task.read([path], "train", excluded))) == 2
    assert excluded == {"incomplete": 1}


def test_a_target_that_names_no_option_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "train.csv", [ROWS[0] | {"right": "by wind"}])
    with pytest.raises(TaskDataError, match="right is 'by wind'; allowed: 'one' or 'two'"):
        examples(own_task("mine", definition()), path)


def test_a_test_file_may_lack_the_target_but_no_option(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "right"} for row in ROWS]
    (first, _) = examples(
        own_task("mine", definition()), write(tmp_path / "test.csv", rows), split="test"
    )
    assert (first.targets, first.answer, first.options) == ("<unk>", None, ("by wind", "by night"))
    path = write(tmp_path / "no.csv", [{"text": "a", "one": "b"}])
    with pytest.raises(TaskDataError, match=r"missing: \['two'\]"):
        examples(own_task("mine", definition()), path, split="test")


def test_the_documented_task_writes_the_documented_text(tmp_path: Path) -> None:
    page = (ROOT / "docs/add_a_task.md").read_text(encoding="utf-8")
    block = page.partition("### Rows with options")[2].partition("```yaml")[2].partition("```")[0]
    own = TaskTexts.model_validate(yaml.safe_load(block)["tasks"]).own
    row = {"beginning": "…", "ending_a": "…", "ending_b": "…", "ending_c": "…", "right": "0"}
    path = write(tmp_path / "endings.csv", [row])
    (example,) = examples(own_task("endings", own["endings"]), path)
    assert f"T5 reads `{example.inputs}` and writes `{example.targets}`" in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": ["one"]}, "options has only ['one']; name two or more columns, or none"),
        ({"options": ["one", "one"]}, "options contains ['one'] more than once"),
        ({"options": ["one", "text"]}, "fields and options contains ['text'] more than once"),
        ({"labels": ["A", "B", "C"]}, "labels has 3 names and options 2 columns"),
        ({"label_values": ["1"]}, "label_values has 1 values and options 2"),
        ({"metrics": ["f1"]}, "which need answers of a kind other than 'choice'"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_description_that_does_not_fit_together_is_refused(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        definition(**change)
    assert message in str(caught.value)


@given(st.integers(2, 12), st.data())
def test_the_text_has_each_option_once_after_its_name(number: int, data: st.DataObject) -> None:
    names = [f"o{index}" for index in range(number)]
    right = data.draw(st.integers(0, number - 1))
    task = own_task("mine", definition(options=names))
    row = {
        "fields": {"text": "t"},
        "options": tuple(f"<{name}>" for name in names),
        "label": right,
        "target": names[right],
        "idx": 0,
    }
    (example,) = task.to_examples(row)
    assert example.inputs == f"mine {' '.join(f'{n}: <{n}>' for n in names)} text: t"
    assert example.options[right] == f"<{example.targets}>"
