"""Tasks that a run file describes: text, answers, scores, and what is refused."""

import json
from collections import Counter
from dataclasses import asdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from t5repro.config.sections.tasks import OwnTask, TasksStage, TaskTexts
from t5repro.config.validation import validate
from t5repro.errors import SettingsError, TaskDataError
from t5repro.evaluate.score import score_baseline, score_rows
from t5repro.files import read_json_lines
from t5repro.jobs.tasks import TasksJob
from t5repro.metrics.registry import score_names
from t5repro.tasks.build import write_examples
from t5repro.tasks.registry import task_named

REVIEWS = {
    "files": {"train": ["train.tsv"]},
    "prefix": "reviews",
    "fields": ["title", "text"],
    "target": "stars",
    "labels": ["bad", "good"],
    "label_values": ["0", "1"],
    "metrics": ["accuracy", "f1"],
}
TITLES = {
    "files": {"train": ["train.jsonl"]},
    "prefix": "give a title:",
    "fields": ["text"],
    "field_names": False,
    "target": "title",
    "metrics": ["rouge", "squad", "bleu", "accuracy"],
}
EASE = {
    "files": {"train": ["train.csv"]},
    "prefix": "ease",
    "fields": ["text"],
    "target": "score",
    "id": "name",
    "metrics": ["pearson_corrcoef", "spearman_corrcoef"],
}


def texts(**own):
    return TaskTexts(own={name: OwnTask(**definition) for name, definition in own.items()})


def read(definition, name, content, split="train"):
    task = task_named("mine", texts(mine=definition))
    name.write_text(content, encoding="utf-8")
    examples = [
        asdict(example)
        for row in task.read([name], split, Counter())
        for example in task.to_examples(row)
    ]
    return task, [
        {key: example[key] for key in ("inputs", "targets", "idx", "answer")}
        for example in examples
    ]


def test_labels_from_a_tab_separated_file(tmp_path):
    task, examples = read(
        REVIEWS, tmp_path / "a.tsv", 'stars\ttext\ttitle\n1\tI "loved" it.\tTea\n0\tCold.\tSoup\n'
    )
    assert examples == [
        {
            "inputs": 'reviews title: Tea text: I "loved" it.',
            "targets": "good",
            "idx": 0,
            "answer": 1,
        },
        {"inputs": "reviews title: Soup text: Cold.", "targets": "bad", "idx": 1, "answer": 0},
    ]
    answered = [
        row | {"prediction": word} for row, word in zip(examples, ("good", "Bad"), strict=True)
    ]
    assert score_rows(task, answered) == {"accuracy": 50.0, "f1": pytest.approx(200 / 3)}
    assert task.invalid_count(answered) == 1
    assert task.baseline.kind == "majority"


def test_free_text_from_json_lines_without_field_names(tmp_path):
    rows = [{"text": "Long text.", "title": "T"}, {"text": 7, "title": "Two words"}]
    task, examples = read(
        TITLES, tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows)
    )
    assert [(row["inputs"], row["targets"]) for row in examples] == [
        ("give a title: Long text.", "T"),
        ("give a title: 7", "Two words"),
    ]
    scores = score_rows(task, [row | {"prediction": row["targets"]} for row in examples])
    assert set(scores) == set(score_names(("rouge", "squad", "bleu", "accuracy")))
    assert scores["em"] == scores["accuracy"] == scores["rouge1"] == 100.0
    assert task.baseline.kind == "copy"
    assert score_baseline(task, examples, examples)["em"] == 0.0


def test_numbers_from_a_comma_separated_file_with_names_of_rows(tmp_path):
    text = 'name,text,score\na,"two\nlines",1.5\nb,x,3\nc,y,2\n'
    task, examples = read(EASE, tmp_path / "a.csv", text)
    assert examples[0] == {
        "inputs": "ease text: two\nlines",
        "targets": "1.5",
        "idx": "a",
        "answer": 1.5,
    }
    answered = [row | {"prediction": row["targets"]} for row in examples]
    assert score_rows(task, answered)["pearson_corrcoef"] == pytest.approx(100.0)
    assert score_baseline(task, examples, examples)["spearman_corrcoef"] == 0.0


@pytest.mark.parametrize(
    ("definition", "name", "text"),
    [
        (REVIEWS, "a.tsv", "text\ttitle\nx\ty\n"),
        (EASE, "a.csv", "name,text\na,x\n"),
        (TITLES, "a.jsonl", '{"text": "x"}\n'),
    ],
)
def test_a_test_row_may_have_no_answer_and_another_may_not(definition, name, text, tmp_path):
    _, examples = read(definition, tmp_path / name, text, split="test")
    assert [(row["targets"], row["answer"]) for row in examples] == [("<unk>", None)]
    with pytest.raises(TaskDataError, match=f"{name} line 1: "):
        read(definition, tmp_path / name, text)


@pytest.mark.parametrize(
    ("definition", "name", "text", "message"),
    [
        (
            REVIEWS,
            "a.tsv",
            "stars\ttext\ttitle\n2\ta\tb\n",
            r"line 2: stars is '2'; allowed: '0' or '1'; correct the row",
        ),
        (REVIEWS, "a.tsv", "stars\ttext\ttitle\n1\ta\n", "line 2: 2 columns in .* 3 columns"),
        (REVIEWS, "a.tsv", "stars\ttext\n1\ta\n", r"found the header \['stars', 'text'\]"),
        (EASE, "a.csv", "name,text,score\na,x,1\na,y,2\n", "line 3: repeats idx 'a'.*line 2"),
        (EASE, "a.csv", "name,text,score\na,x,high\n", "line 2: score is 'high'; allowed: a numbe"),
        (EASE, "a.csv", "name,text,score\na,x,inf\n", "line 2: score is 'inf'"),
        (TITLES, "a.jsonl", '{"text": "x", "title": " "}\n', "line 1: title is ' '; allowed: a va"),
        (TITLES, "a.jsonl", '{"text": null, "title": "t"}\n', "line 1: text is missing; allowed"),
        (TITLES, "a.jsonl", '{"title": "t"}\n', "line 1: no 'text' among"),
        (TITLES, "a.jsonl", "[1]\n", "line 1: found "),
    ],
)
def test_a_row_that_does_not_fit_is_refused_with_its_place(
    definition, name, text, message, tmp_path
):
    with pytest.raises(TaskDataError, match=message):
        read(definition, tmp_path / name, text)


def test_an_unreadable_encoding_is_refused_with_its_line(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"name,text,score\na,caf\xe9,1\n")
    task = task_named("mine", texts(mine=EASE))
    with pytest.raises(TaskDataError, match=r"a.csv line 2: bytes are not UTF-8: b'.xe9'"):
        list(task.read([tmp_path / "a.csv"], "train", Counter()))


def test_a_task_called_as_one_of_the_paper_is_refused():
    with pytest.raises(SettingsError, match="two tasks are named 'squad'; rename the one under"):
        task_named("squad", texts(squad=TITLES))
    with pytest.raises(SettingsError, match="unknown task 'minne'; nearest: 'mine'"):
        task_named("minne", texts(mine=TITLES))


def test_the_stage_writes_an_own_task_and_nothing_of_a_broken_one(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text("stars\ttext\ttitle\n1\ta\tb\n")
    stage = TasksStage(tasks=texts(reviews=REVIEWS).model_dump())
    folder = tmp_path / "out"
    arguments = {"task": "reviews", "folder": folder, "manifest": folder / "manifest.json"}
    write_examples(TasksJob(stage, files={"train": [path]}, **arguments))
    assert [row["targets"] for row in read_json_lines(folder / "train.jsonl")] == ["good"]
    for name in ("train.jsonl", "manifest.json"):
        (folder / name).unlink()
    path.write_text("stars\ttext\ttitle\n1\ta\tb\n9\tc\td\n")
    with pytest.raises(TaskDataError, match="train.tsv line 3: stars is '9'"):
        write_examples(TasksJob(stage, files={"train": [path]}, **arguments))
    assert list(folder.iterdir()) == []


def test_a_share_of_the_rows_is_the_validation_split_and_keeps_equal_inputs_together(tmp_path):
    path = tmp_path / "a.csv"
    definition = {
        "files": {"train": ["a.csv"], "validation": ["a.csv"]},
        "validation_share": 0.25,
        "fields": ["text"],
        "target": "label",
        "labels": ["x", "y"],
        "metrics": ["accuracy"],
    }
    rows = [f"text {number // 2},{'xy'[number % 2]}\n" for number in range(400)]
    _, train = read(definition, path, "text,label\n" + "".join(rows))
    _, held_out = read(definition, path, "text,label\n" + "".join(rows), split="validation")
    assert sorted(row["idx"] for row in [*train, *held_out]) == list(range(400))
    assert not {row["inputs"] for row in train} & {row["inputs"] for row in held_out}
    assert 60 <= len(held_out) <= 140
    # The order of the rows decides nothing.
    _, others = read(definition, path, "text,label\n" + "".join(rows[::-1]), split="validation")
    assert {row["inputs"] for row in others} == {row["inputs"] for row in held_out}
    assert train[0]["inputs"].startswith("mine text: text ")  # no prefix: the name of the task


def test_a_column_names_the_split_of_a_row(tmp_path):
    definition = {
        "files": {"train": ["a.csv"], "test": ["a.csv"]},
        "split_column": "part",
        "fields": ["text"],
        "target": "label",
        "labels": ["x", "y"],
        "metrics": ["accuracy"],
    }
    text = "text,label,part\na,x,train\nb,y,TEST\nc,y,train\nd,x,dev\n"
    splits = {
        split: [
            (row["idx"], row["inputs"])
            for row in read(definition, tmp_path / "a.csv", text, split)[1]
        ]
        for split in ("train", "validation", "test")
    }
    assert splits == {
        "train": [(0, "mine text: a"), (2, "mine text: c")],
        "validation": [(3, "mine text: d")],
        "test": [(1, "mine text: b")],
    }
    with pytest.raises(
        TaskDataError, match="line 2: part is 'else'; allowed: train or training or"
    ):
        read(definition, tmp_path / "a.csv", "text,label,part\na,x,else\n")


def test_rows_of_a_parquet_file(tmp_path):
    definition = {"fields": ["text", "n"], "target": "label", "labels": ["true", "false"]}
    definition |= {"files": {"train": ["a.parquet"]}, "metrics": ["accuracy"]}
    task = task_named("mine", texts(mine=definition))
    path = tmp_path / "a.parquet"

    def read_table(split="train", **columns):
        pq.write_table(pa.table(columns), path)
        return [
            (example.inputs, example.targets)
            for row in task.read([path], split, Counter())
            for example in task.to_examples(row)
        ]

    columns = {"text": ["a", "b"], "n": [1, 2], "other": [[1], [2]]}
    assert read_table(**columns, label=[True, False]) == [
        ("mine text: a n: 1", "true"),
        ("mine text: b n: 2", "false"),
    ]
    assert read_table("test", **columns)[0] == ("mine text: a n: 1", "<unk>")
    with pytest.raises(TaskDataError, match=r"found the columns .*missing: \['label'\]"):
        read_table(**columns)
    with pytest.raises(TaskDataError, match="row 2: label is missing; allowed: a value"):
        read_table(**columns, label=["true", None])


def test_a_damaged_page_of_a_parquet_file_is_refused(tmp_path):
    definition = {"fields": ["text"], "target": "label", "labels": ["x", "y"]}
    definition |= {"files": {"train": ["a.parquet"]}, "metrics": ["accuracy"]}
    task = task_named("mine", texts(mine=definition))
    path = tmp_path / "a.parquet"
    words = [f"text {number}" for number in range(500)]
    table = pa.table({"text": words, "label": ["x", "y"] * 250})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[200:260] = bytes(60)
    path.write_bytes(data)
    with pytest.raises(
        TaskDataError, match=r"a\.parquet after row 0: cannot be read: .*; allowed: Parquet"
    ):
        list(task.read([path], "train", Counter()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"validation_share": 0.1}, "files.validation must name the same files"),
        ({"validation_share": 0.6}, "less than or equal to 0.5"),
        (
            {
                "files": {"train": ["a.csv"], "validation": ["a.csv"]},
                "validation_share": 0.1,
                "split_column": "part",
            },
            "validation_share and split_column are given",
        ),
    ],
)
def test_a_split_that_is_described_twice_or_by_half_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        OwnTask(**{**REVIEWS, **change})


@pytest.mark.parametrize("word", ["1_1", "nan", "Infinity", "1e999", "\u0661", "0x1", "1,5"])
def test_what_only_python_reads_as_a_number_is_refused(word, tmp_path):
    with pytest.raises(TaskDataError, match="line 2: score is .*; allowed: a number"):
        read(EASE, tmp_path / "a.csv", f'name,text,score\na,x,"{word}"\n')


@pytest.mark.parametrize("word", ["1.5", "+1.5", " 1.5 ", "15e-1", "1.50", "001.5"])
def test_a_decimal_number_is_read(word, tmp_path):
    _, examples = read(EASE, tmp_path / "a.csv", f"name,text,score\na,x,{word}\n")
    assert examples[0]["answer"] == 1.5


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "text,title\na,x\n\n,y\nb,\nc,z\n"),
        ("a.tsv", "text\ttitle\na\tx\n\n\ty\nb\t \nc\tz\n"),
        ("a.jsonl", '{"text": "a", "title": "x"}\n\n\n{"text": null, "title": "y"}\n'
         '{"text": "b"}\n{"text": "c", "title": "z"}\n'),
    ],
)  # fmt: skip
def test_rows_without_a_value_are_counted_or_skipped_alike(name, text, tmp_path):
    message = rf"{name} line 4: text is .*; 2 rows lack one: {name} line 4 \(text\), {name} line 5 "
    with pytest.raises(TaskDataError, match=message + r"\(title\); .*incomplete: skip"):
        read(TITLES, tmp_path / name, text)
    task = task_named("mine", texts(mine=TITLES | {"incomplete": "skip"}))
    excluded = Counter()
    rows = list(task.read([tmp_path / name], "train", excluded))
    assert [(row["target"], row["idx"]) for row in rows] == [("x", 0), ("z", 3)]
    assert excluded == {"incomplete": 2}


def test_every_label_with_two_inputs_has_validation_rows_and_equal_inputs_stay_together(tmp_path):
    files = {"train": ["a.tsv"], "validation": ["a.tsv"]}
    definition = REVIEWS | {"files": files, "validation_share": 0.2, "stratified": True}
    rows = [f"{int(n < 95)}\tt\ttext {n}" for n in range(100)] + ["0\tt\ttext 95"] * 7
    text = "\n".join(["stars\ttitle\ttext", *rows, ""])
    splits = {
        split: read(definition, tmp_path / "a.tsv", text, split)[1]
        for split in ("train", "validation")
    }
    counts = {split: Counter(row["targets"] for row in rows) for split, rows in splits.items()}
    assert counts["validation"]["good"] == 19
    assert counts["train"]["good"] == 76
    assert counts["validation"]["bad"] in (1, 8)  # the repeated input in one split
    assert sum(map(len, splits.values())) == 107
    inputs = [{row["inputs"] for row in rows} for rows in splits.values()]
    assert not inputs[0] & inputs[1]
    with pytest.raises(SettingsError, match="stratified divides rows by label; give validation_"):
        validate(OwnTask, REVIEWS | {"stratified": True}, label="task ")


def test_a_label_without_rows_does_not_lower_macro_f1(tmp_path):
    definition = REVIEWS | {
        "labels": ["a", "b", "c"], "label_values": ["0", "1", "2"], "metrics": ["macro_f1"],
    }  # fmt: skip
    task, rows = read(definition, tmp_path / "a.tsv", "stars\ttext\ttitle\n0\tx\ty\n1\tx\tz\n")
    right = [row | {"prediction": row["targets"]} for row in rows]
    assert score_rows(task, right) == {"macro_f1": 100.0}
    assert score_rows(task, [right[0], right[1] | {"prediction": "none"}]) == {"macro_f1": 50.0}
    wrong = [right[0], right[1] | {"prediction": "c"}]
    assert score_rows(task, wrong) == {"macro_f1": pytest.approx(100 / 3)}


def test_an_encoding_that_is_no_text_with_ascii_is_refused():
    for name in ("utf-16", "rot13", "latin-99", "cp037"):
        with pytest.raises(SettingsError, match=f"encoding is '{name}'"):
            validate(OwnTask, REVIEWS | {"encoding": name}, label="task ")
