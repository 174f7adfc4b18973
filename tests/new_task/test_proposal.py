"""What a file of rows says of its task, and the files that say nothing."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from t5repro.errors import RawDataError, SettingsError, TaskDataError
from t5repro.new_task.proposal import Options, propose
from t5repro.new_task.rows import read_rows

REVIEWS = "id,text,stars\n1,Warm bread.,1\n2,Cold soup.,0\n3,Fine view.,1\n4,Too slow.,0\n"


def proposed(path: Path, text: str | bytes, **options: Any) -> dict[str, Any]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return propose(read_rows(path), Options(**options)).definition


def csv(path: Path, header: str, *rows: str, **options: Any) -> dict[str, Any]:
    return proposed(path / "rows.csv", "\n".join([header, *rows, ""]), **options)


def test_a_table_of_labels(tmp_path: Path) -> None:
    assert proposed(tmp_path / "rows.csv", REVIEWS) == {
        "validation_share": 0.2,
        "fields": ["text"],  # a column of names is no input
        "target": "stars",
        "labels": ["0", "1"],
        "stratified": True,
        "metrics": ["accuracy", "f1"],
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.tsv", "text\tlabel\na b\tno\nc\tyes\nd\tno\ne\tyes\n"),
        ("rows.jsonl", '{"text": "a b", "label": "no"}\n{"text": "c", "label": "yes"}\n' * 2),
        ("rows.csv", "\ufefftext,label\na b,no\nc,yes\nd,no\ne,yes\n"),
    ],
)
def test_every_form_of_file_gives_the_same_task(name: str, text: str, tmp_path: Path) -> None:
    definition = proposed(tmp_path / name, text)
    assert definition["fields"] == ["text"]
    assert definition["labels"] == ["no", "yes"]


def test_a_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"text": ["a", "b", "c"], "score": [0.5, 1.25, 3.0]}), path)
    definition = propose(read_rows(path), Options()).definition
    assert definition["metrics"] == ["pearson_corrcoef", "spearman_corrcoef"]
    assert "labels" not in definition


@pytest.mark.parametrize(
    ("targets", "metrics", "labels"),
    [
        (["0", "1"] * 4, ["accuracy", "f1"], ["0", "1"]),
        (["10", "9", "8"] * 3, ["accuracy", "macro_f1"], ["8", "9", "10"]),  # as numbers
        (["joy", "fear", "anger"] * 3, ["accuracy", "macro_f1"], ["anger", "fear", "joy"]),
        ([str(number) for number in range(12)], ["pearson_corrcoef", "spearman_corrcoef"], None),
        (["1.5", "2", "0.25", "1.5"], ["pearson_corrcoef", "spearman_corrcoef"], None),
        ([f"town {number}" for number in range(9)], ["squad"], None),
        ([f"a long answer of more than {n} words" for n in range(9)], ["squad"], None),
        ([f"one two three four five six seven eight {n}" for n in range(9)], ["rouge"], None),
    ],
)
def test_the_metric_follows_from_the_kind_of_the_target(
    targets: list[str], metrics: list[str], labels: list[str] | None, tmp_path: Path
) -> None:
    definition = csv(tmp_path, "text,target", *(f"text,{target}" for target in targets))
    assert definition["metrics"] == metrics
    assert definition.get("labels") == labels


def test_the_target_is_named_so_or_the_last_column(tmp_path: Path) -> None:
    rows = ["a,b,c", "d,e,f", "d,e,f"]
    assert csv(tmp_path, "label,title,text", *rows)["target"] == "label"
    assert csv(tmp_path, "one,title,two", *rows)["target"] == "two"
    assert csv(tmp_path, "one,title,page_id", *rows)["target"] == "title"


def test_a_column_of_splits_divides_the_rows(tmp_path: Path) -> None:
    rows = ["a,x,train", "b,y,train", "c,x,Dev"]
    definition = csv(tmp_path, "text,label,split", *rows)
    assert definition["split_column"] == "split"
    assert definition["fields"] == ["text"]
    assert "validation_share" not in definition
    assert "split_column" not in csv(tmp_path, "text,label,set", "a,x,red", "b,y,blue")


def test_options_replace_every_guess(tmp_path: Path) -> None:
    definition = csv(
        tmp_path,
        "text,title,stars",
        "a,b,1",
        "c,d,2",
        target="stars",
        inputs=("title",),
        labels=("bad", "good"),
        metric="accuracy",
        validation="0.5",
    )
    assert definition == {
        "validation_share": 0.5,
        "fields": ["title"],
        "target": "stars",
        "labels": ["bad", "good"],
        "label_values": ["1", "2"],
        "stratified": True,
        "metrics": ["accuracy"],
    }
    assert csv(tmp_path, "text,stars", "a,1", "b,2", metric="bleu")["metrics"] == ["bleu"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("rows.csv", "", r"rows.csv is empty; it must have a header and a row"),
        ("rows.csv", "text,label\n", "has a header and no rows"),
        ("rows.csv", "text\na\n", "line 1: found one column 'text'; allowed: two columns or more"),
        ("rows.csv", "text,text\na,b\n", r"line 1: the header repeats \['text'\]"),
        ("rows.csv", "text,label\na,x\n,y\n", "line 3: text is ''; allowed: a value"),
        ("rows.csv", "text,label\na,x\nb, \n", "line 3: label is ' '; allowed: a value"),
        ("rows.csv", "text,label\na,x\nb\n", "line 3: 1 columns in 'b'; allowed: 2 columns"),
        ("rows.csv", b"text,label\na,x\n\xe4,y\n", r"line 3: bytes are not UTF-8: b'\\xe4'"),
        ("rows.csv", "text,label\na,x\na\0b,y\n", r"line 3: text has a NUL character: 'a\\x00b'"),
        ("rows.jsonl", '{"a": "x\\u0000", "b": 1}\n', "line 1: a has a NUL character"),
        ("rows.csv", 'text,label\n"a,x\n', "line 2: not comma-separated values"),
        (
            "rows.csv",
            "text,score\na,1.5\nb,2.5\nc,3\nd,many\ne,4\nf,5\n",
            "line 5: score is 'many'; allowed: a number, as in 5 of 6 rows",
        ),
        ("rows.csv", "text,label\na,x\nb,x\n", "label is 'x' in every row"),
        (
            "rows.jsonl",
            '{"text": "a", "label": 1}\n{"text": "b"}\n',
            "line 2: label is ''; allowed",
        ),
        ("rows.jsonl", '{"text": "a", "label": null}\n', "line 1: label is ''; allowed: a value"),
        ("rows.jsonl", "text\n", "line 1: not JSON"),
        ("rows.jsonl", "[1]\n", "line 1: found"),
        ("rows.parquet", "text", "cannot be read: .*; allowed: Parquet"),
        (
            "rows.csv",
            "text,label,split\na,x,train\nb,y,eval\n",
            "line 3: split is 'eval'; allowed: tr",
        ),
        ("rows.csv", "text,label,split\na,x,test\nb,y,test\n", "split gives no row to train"),
        ("rows.csv", "text,label\na,b,c\n", "3 columns in 'a,b,c'.*; correct the file$"),
        ("rows.jsonl", "[" * 100_000 + "\n", "line 1: not JSON"),
        ("rows.jsonl", '{"a": 1, "b": "x"}\n' + "[" * 100_000, "line 2: not JSON"),
        ("rows.jsonl", f'{{"a": 1, "b": 2}}\n{{"a": {"1" * 5000}, "b": 2}}\n', "line 2: not JSON"),
        ("rows.jsonl", '{"a\\ud800": "x", "b": "y"}\n', "without halves of surrogate pairs"),
        ("rows.jsonl", '\ufeff{"a": "x", "b": "y"}\n', "line 1 begins with a byte order mark"),
        ("rows.xlsx", "text", "must end in .tsv, .csv, .jsonl, .parquet"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(
    name: str, text: str | bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(TaskDataError, match=message):
        proposed(tmp_path / name, text)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_pipe_and_a_device_are_refused_and_not_waited_for(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path / "rows.csv")
    with pytest.raises(TaskDataError, match="it is a pipe or a device and not a file"):
        read_rows(tmp_path / "rows.csv")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TaskDataError, match="rows.csv is missing; name a file of rows"):
        read_rows(tmp_path / "rows.csv")


def test_a_missing_number_of_a_parquet_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"text": ["a", "b"], "score": [0.5, float("nan")]}), path)
    with pytest.raises(TaskDataError, match=r"rows.parquet row 2: score is ''; allowed: a value"):
        propose(read_rows(path), Options())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "acuracy"}, "--metric is 'acuracy'; .*nearest: 'accuracy'"),
        ({"labels": ("bad",)}, r"--labels has 1 words, the target 2 values: \['0', '1'\]"),
        ({"labels": ("a", "b"), "metric": "rouge"}, "stars is a text; leave it out"),
        ({"validation": "0.9"}, "a share is more than 0 and at most 0.5"),
        ({"labels": ("a", "a")}, r"--labels contains \['a'\] more than once"),
        ({"labels": ("a", "")}, "--labels has an empty word"),
        ({"inputs": ("text", "text")}, r"--inputs contains \['text'\] more than once"),
        ({"validation": "configs"}, "--validation is 'configs'; allowed: a share such as 0.2, or"),
        ({"target": "text", "inputs": ("text",)}, "which are the target or the split"),
    ],
)
def test_an_option_that_does_not_fit_is_refused(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=message):
        proposed(tmp_path / "rows.csv", REVIEWS, **options)


def test_a_column_that_does_not_exist_is_named_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(REVIEWS, encoding="utf-8")
    with pytest.raises(TaskDataError, match="has no column 'star'.*nearest: 'stars'"):
        propose(read_rows(tmp_path / "rows.csv"), Options(target="star"))
    with pytest.raises(TaskDataError, match="has no column 'txt'.*nearest: 'text'"):
        propose(read_rows(tmp_path / "rows.csv"), Options(inputs=("txt",)))


SPLIT_ROWS = ["a,x,train", "b,y,train", "c,x,dev", "d,y,test"]


@pytest.mark.parametrize(
    "options",
    [{}, {"inputs": ("text",), "target": "label"}, {"target": "label"}, {"metric": "accuracy"}],
)
def test_rows_of_test_are_not_trained_on_whatever_the_options(
    options: dict[str, Any], tmp_path: Path
) -> None:
    definition = csv(tmp_path, "text,label,split", *SPLIT_ROWS, **options)
    assert definition["split_column"] == "split"
    assert definition["fields"] == ["text"]
    assert "validation_share" not in definition


@pytest.mark.parametrize("validation", ["0.2", "other.csv"])
def test_a_column_of_splits_and_another_division_are_refused(
    validation: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=f"--validation is {validation}, but the column split"):
        csv(tmp_path, "text,label,split", *SPLIT_ROWS, validation=validation)


def test_a_column_of_splits_that_names_one_is_no_input(tmp_path: Path) -> None:
    definition = csv(tmp_path, "text,label,split", "a,x,train", "b,y,train")
    assert definition["fields"] == ["text"]
    assert definition["validation_share"] == 0.2


def test_a_column_that_tells_the_target_is_no_input(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = [f"row {n},{n % 2},{'good' if n % 2 else 'bad'}" for n in range(8)]
    path.write_text("\n".join(["text,label,label_text", *rows, ""]), encoding="utf-8")
    proposal = propose(read_rows(path), Options())
    assert proposal.definition["fields"] == ["text"]
    assert proposal.left_out == ("label_text (it tells the label)",)


def test_a_translation_with_a_repeated_row_keeps_its_input(tmp_path: Path) -> None:
    rows = ["one,eins,x", "two,zwei,y", "three,drei,x", "one,eins,y"]
    assert csv(tmp_path, "en,target,topic", *rows)["fields"] == ["en", "topic"]


def test_a_test_split_without_targets_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = ["a,x,train", "b,y,train", "c,x,dev", "d,,test"]
    path.write_text("\n".join(["text,label,split", *rows, ""]), encoding="utf-8")
    proposal = propose(read_rows(path), Options())
    assert proposal.splits == ("train", "validation")
    assert proposal.definition["labels"] == ["x", "y"]
    assert proposal.left_out == ("1 rows of test (they have no label)",)


def test_a_column_that_no_task_can_have_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    columns = {"text": ["a", "b"], "list": [[1], [2]], "label": ["x", "y"]}
    pq.write_table(pa.table(columns), path)
    proposal = propose(read_rows(path), Options())
    assert proposal.definition["fields"] == ["text"]
    (lists,) = proposal.left_out
    assert "row 1: list is [1]" in lists
    assert "tasks.own" not in lists
    path = tmp_path / "rows.jsonl"
    lines = ['{"text": "a", "note": 1, "label": "x"}', '{"text": "b", "label": "y"}']
    path.write_text("\n".join(lines), encoding="utf-8")
    assert propose(read_rows(path), Options(inputs=("text",))).definition["fields"] == ["text"]
    with pytest.raises(TaskDataError, match="line 2: note is ''; allowed: a value; correct"):
        propose(read_rows(path), Options(inputs=("note",)))


def test_a_damaged_page_of_a_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    texts = [f"text {n * 7919 % 1000003}" for n in range(5000)]
    pq.write_table(pa.table({"text": texts, "label": texts}), path, compression="zstd")
    data = bytearray(path.read_bytes())
    data[50:] = b"\xff" * 20_000 + data[20_050:]
    path.write_bytes(data)
    with pytest.raises(TaskDataError, match="rows.parquet after row 0: cannot be read"):
        read_rows(path)


def test_parquet_text_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    wrong = pa.array([b"\xff\xfe"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 1, wrong.buffers())
    pq.write_table(pa.table({"text": text, "label": text}), path)
    with pytest.raises(TaskDataError, match="rows.parquet after row 0: cannot be read: .*utf-8"):
        read_rows(path)


def test_f1_of_three_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--metric is f1, which needs two labels, .* has 3"):
        csv(tmp_path, "text,label", *(f"{n},{'abc'[n % 3]}" for n in range(9)), metric="f1")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.csv", "text,label\na,x\n\nb,\n,y\nc,x\nd,y\n \n"),
        ("rows.tsv", "text\tlabel\na\tx\n\nb\t\n\ty\nc\tx\nd\ty\n  \n"),
        (
            "rows.jsonl",
            '{"text": "a", "label": "x"}\n\n\n{"text": "b", "label": NaN}\n{"label": "y"}\n'
            '{"text": "c", "label": "x"}\n{"text": "d", "label": "y"}\n\n',
        ),
    ],
)
def test_blank_lines_are_no_rows_and_rows_without_a_value_are_counted_in_every_form(
    name: str, text: str, tmp_path: Path
) -> None:
    message = rf"{name} line 4: label is ''; .*; 2 rows lack one: {name} line 4 \(label\), "
    with pytest.raises(TaskDataError, match=message):
        proposed(tmp_path / name, text)
    path = tmp_path / name
    proposal = propose(read_rows(path), Options(skip_incomplete=True))
    assert proposal.definition["incomplete"] == "skip"
    assert proposal.definition["labels"] == ["x", "y"]
    assert proposal.left_out == (f"2 rows without a value (the first: {path} line 4, label)",)


def test_missing_values_of_parquet_are_counted_too(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table = {"text": ["a", None, "c", "d"], "score": [0.5, 1.5, float("nan"), 2.25]}
    pq.write_table(pa.table(table), path)
    with pytest.raises(TaskDataError, match=r"row 2: text is ''; .*2 rows lack one: .* row 3"):
        propose(read_rows(path), Options())
    assert propose(read_rows(path), Options(skip_incomplete=True)).definition["fields"] == ["text"]


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_json_calls_a_number_and_is_none_is_no_input(value: str, tmp_path: Path) -> None:
    text = f'{{"text": {value}, "label": "x"}}\n{{"text": 1, "label": "y"}}\n'
    expected = r"line 1: (text is (''|inf|-inf); allowed|not JSON \(the number 1e999 is too large)"
    with pytest.raises(TaskDataError, match=expected):
        proposed(tmp_path / "rows.jsonl", text)


@pytest.mark.parametrize(
    "codes",
    [[f"{n}_1" for n in range(1, 13)], [f"{n}\u0662" for n in range(12)], ["nan", "inf"] * 6],
)
def test_codes_that_only_python_reads_as_numbers_are_labels(
    codes: list[str], tmp_path: Path
) -> None:
    rows = [f"row {n},{codes[n % 12]}" for n in range(48)]
    definition = csv(tmp_path, "text,code", *rows)
    assert definition["labels"] == sorted(set(codes))


def test_a_semicolon_and_windows_letters_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes("text;label\ngr\u00fcn, ja;x\nb;y\nc;x\nd;y\n".encode("cp1252"))
    with pytest.raises(
        TaskDataError, match="line 2: bytes are not UTF-8.*or name its encoding: --encoding"
    ):
        read_rows(path)
    rows = read_rows(path, encoding="cp1252")
    assert rows.column("text")[0] == "gr\u00fcn, ja"
    definition = propose(rows, Options()).definition
    assert (definition["delimiter"], definition["encoding"]) == (";", "cp1252")
    # A comma in the only name of a header is found, so an option is needed.
    path.write_text("text, short;label\na;x\nb;y\n", encoding="utf-8")
    assert read_rows(path, delimiter=";").columns == ("text, short", "label")
    with pytest.raises(SettingsError, match="encoding is 'utf-16'; allowed: an encoding of Python"):
        read_rows(path, encoding="utf-16")
    with pytest.raises(SettingsError, match="encoding is 'latin-99'"):
        read_rows(path, encoding="latin-99")


@pytest.mark.parametrize(
    "word", ["\u0441\u043b\u043e\u0432\u043e", "\u03bb\u03cc\u03b3\u03bf\u03c2", "\u8a00\u8449"]
)
def test_rouge_is_not_proposed_for_scripts_that_it_drops(word: str, tmp_path: Path) -> None:
    rows = [f"text {n},{(word + ' ') * 40}{n}" for n in range(6)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["text,summary", *rows, ""]), encoding="utf-8")
    proposal = propose(read_rows(path), Options())
    assert proposal.definition["metrics"] == ["bleu"]
    assert proposal.left_out == (
        "rouge: 6 of 6 targets are in a script of which it drops most letters (it reads a to z and "
        "digits)",
    )
    with pytest.raises(SettingsError, match="--metric is rouge: 6 of 6 targets .*allowed: bleu"):
        propose(read_rows(path), Options(metric="rouge"))
    path.write_text("\n".join(["text,summary", rows[0], *["a,some words in a to z"] * 5, ""]))
    proposal = propose(read_rows(path), Options(metric="rouge"))
    assert proposal.definition["metrics"] == ["rouge"]
    assert proposal.left_out[0].startswith("rouge: 1 of 6 targets")


def test_a_pointer_of_git_lfs_is_named(tmp_path: Path) -> None:
    for name in ("rows.csv", "rows.tsv", "rows.jsonl", "rows.parquet"):
        with pytest.raises(RawDataError, match=f"{name} is a pointer of git LFS"):
            proposed(tmp_path / name, "version https://git-lfs.github.com/spec/v1\noid x\nsize 1\n")
