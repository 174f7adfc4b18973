"""The stage `tasks`: what it writes, and that it writes nothing when a row is refused."""

import json
from pathlib import Path

import pytest

from t5repro.config.sections.tasks import TasksStage
from t5repro.errors import SettingsError, TaskDataError
from t5repro.files import read_json, read_json_lines
from t5repro.jobs.tasks import TasksJob
from t5repro.tasks import build

SETTINGS = TasksStage()


def write_file(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    return path


@pytest.fixture
def raw(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_file(Path("raw/train.tsv"), "sentence\tlabel", "good ü\t1", "bad\t0")
    write_file(Path("raw/dev.tsv"), "sentence\tlabel", "fine, really\t1")
    write_file(Path("raw/test.tsv"), "index\tsentence", "0\tunknown")
    return {
        "train": [Path("raw/train.tsv")],
        "validation": [Path("raw/dev.tsv")],
        "test": [Path("raw/test.tsv")],
    }


def write(files, *, task="glue_sst2", folder=Path("out/glue_sst2")):
    build.write_examples(
        TasksJob(SETTINGS, task=task, files=files, folder=folder, manifest=folder / "manifest.json")
    )


def left_behind(folder):
    return sorted(path.name for path in Path(folder).rglob("*") if path.is_file())


def test_every_split_has_its_rows_in_the_order_of_the_file(raw):
    write(raw)
    assert list(read_json_lines(Path("out/glue_sst2/train.jsonl"))) == [
        {"inputs": "sst2 sentence: good ü", "targets": "positive", "idx": 0, "answer": 1},
        {"inputs": "sst2 sentence: bad", "targets": "negative", "idx": 1, "answer": 0},
    ]
    (test,) = read_json_lines(Path("out/glue_sst2/test.jsonl"))
    assert test["answer"] is None
    assert test["targets"] == "<unk>"


def test_segments_are_the_texts_of_the_fields_with_the_premise_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_file(
        Path("raw/cb.jsonl"),
        json.dumps({"premise": "It rains.", "hypothesis": "Wet.", "label": "entailment", "idx": 0}),
    )
    settings = TasksStage.model_validate({"tasks": {"segments": True}})
    for stage in (SETTINGS, settings):
        build.write_examples(
            TasksJob(
                stage,
                task="super_glue_cb",
                files={"train": [path]},
                folder=Path("out"),
                manifest=Path("out/manifest.json"),
            )
        )
        (row,) = read_json_lines(Path("out/train.jsonl"))
        assert row["inputs"] == "cb hypothesis: Wet. premise: It rains."
        assert row.get("segments") == (["It rains.", "Wet."] if stage is settings else None)


def written(task, split, record, folder):
    """Return the first row of a task, with segments."""
    path = write_file(Path(f"raw/{task}.json"), json.dumps(record))
    build.write_examples(
        TasksJob(
            TasksStage.model_validate({"tasks": {"segments": True}}),
            task=task,
            files={split: [path]},
            folder=Path("out"),
            manifest=Path("out/manifest.json"),
        )
    )
    return next(iter(read_json_lines(Path(f"out/{split}.jsonl"))))


def test_the_options_of_copa_are_apart_from_its_premise_and_question(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = {
        "premise": "The jar broke.", "question": "cause", "choice1": "It fell.",
        "choice2": "It sang.", "label": 0, "idx": 0,
    }  # fmt: skip
    row = written("super_glue_copa", "train", record, tmp_path)
    assert row["segments"] == ["The jar broke.", "What was the cause of this?"]
    assert row["options"] == ["It fell.", "It sang."]
    assert row["inputs"].startswith("copa choice1: It fell. choice2: It sang. premise:")


@pytest.mark.parametrize(
    ("answers", "spans"),
    [
        ([{"text": "Ana's cat", "answer_start": 4}], ["Ana ' s cat"]),
        ([{"text": "cat,", "answer_start": 10}, {"text": " Ana", "answer_start": 3}],
         ["cat ,", "Ana"]),
        ([{"text": "cat", "answer_start": 9}, {"text": "Ana"}], None),
    ],
    ids=["one", "two", "not at this place, and without one"],
)  # fmt: skip
def test_answers_of_squad_have_their_place_in_the_padded_text(
    tmp_path, monkeypatch, answers, spans
):
    monkeypatch.chdir(tmp_path)
    context = "Oh, Ana's cat, of course."
    question = {"id": "q", "question": "Whose?", "answers": answers}
    record = {"data": [{"paragraphs": [{"context": context, "qas": [question]}]}]}
    row = written("squad", "train", record, tmp_path)
    assert row["segments"] == ["Whose ?", "Oh , Ana ' s cat , of course . "]
    found = row.get("spans") and [row["segments"][1][first:end] for first, end in row["spans"]]
    assert found == spans
    assert row["inputs"] == "question: Whose ? context: Oh , Ana ' s cat , of course . "


def test_the_manifest_counts_rows_labels_and_the_longest_inputs(raw):
    write(raw)
    manifest = read_json(Path("out/glue_sst2/manifest.json"))
    assert manifest["rule"] == "tasks"
    assert manifest["settings"] == SETTINGS.model_dump(mode="json")
    assert manifest["counters"] == {
        "train": {"rows": 2, "labelled": 2, "longest_inputs_chars": 21, "left_out": {}},
        "validation": {"rows": 1, "labelled": 1, "longest_inputs_chars": 27, "left_out": {}},
        "test": {"rows": 1, "labelled": 0, "longest_inputs_chars": 22, "left_out": {}},
    }
    assert [item["path"] for item in manifest["inputs"]] == [
        "raw/train.tsv",
        "raw/dev.tsv",
        "raw/test.tsv",
    ]
    assert [item["path"] for item in manifest["outputs"]] == [
        "out/glue_sst2/train.jsonl",
        "out/glue_sst2/validation.jsonl",
        "out/glue_sst2/test.jsonl",
    ]


def test_what_is_left_out_is_in_the_manifest(raw):
    pair = write_file(Path("raw/a.en"), "one", "", "three")
    write({"train": [pair, pair]}, task="wmt_en_de")
    counters = read_json(Path("out/glue_sst2/manifest.json"))["counters"]
    assert counters["train"]["left_out"] == {"empty_side": 1}
    assert counters["train"]["rows"] == 2


def test_the_bytes_do_not_depend_on_the_folder_or_on_a_second_run(raw, tmp_path):
    write(raw)
    first = Path("out/glue_sst2/train.jsonl").read_bytes()
    write(dict(reversed(raw.items())), folder=Path("elsewhere/x"))
    write(raw)
    assert Path("elsewhere/x/train.jsonl").read_bytes() == first
    assert Path("out/glue_sst2/train.jsonl").read_bytes() == first


def test_a_broken_row_in_the_last_split_leaves_nothing_behind(raw):
    write_file(Path("raw/test.tsv"), "index\tsentence", "0\tunknown\textra")
    with pytest.raises(TaskDataError, match="raw/test.tsv line 2: 3 columns"):
        write(raw)
    assert left_behind("out") == []


def test_a_broken_row_leaves_the_results_of_the_run_before(raw):
    write(raw)
    before = Path("out/glue_sst2/train.jsonl").read_bytes()
    write_file(Path("raw/train.tsv"), "sentence\tlabel", "good\t7")
    with pytest.raises(TaskDataError, match="found the label '7'"):
        write(raw)
    assert Path("out/glue_sst2/train.jsonl").read_bytes() == before
    assert left_behind("out/glue_sst2") == [
        "manifest.json",
        "test.jsonl",
        "train.jsonl",
        "validation.jsonl",
    ]


def test_an_interrupt_leaves_nothing_half_written(raw, monkeypatch):
    def interrupted(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(build.Progress, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(raw)
    assert left_behind("out") == []


def test_a_split_that_is_gone_is_taken_away(raw):
    write(raw)
    del raw["test"]
    write(raw)
    assert left_behind("out/glue_sst2") == ["manifest.json", "train.jsonl", "validation.jsonl"]


def test_an_empty_split_is_refused(raw):
    write_file(Path("raw/dev.tsv"), "sentence\tlabel")
    with pytest.raises(TaskDataError, match=r"split 'validation' has no rows in \['raw/dev.tsv'\]"):
        write(raw)
    assert left_behind("out") == []


@pytest.mark.parametrize(
    ("task", "files", "message"),
    [
        ("glue_ssst2", {"train": ["x"]}, "unknown task 'glue_ssst2'; nearest: 'glue_sst2'"),
        ("glue_sst2", {}, "task 'glue_sst2' got no files"),
        ("glue_sst2", {"dev": ["x"]}, "unknown split 'dev'; splits are"),
        ("glue_sst2", {"train": []}, "split 'train' got no files; name at least one"),
        ("glue_wnli", {"train": ["x"]}, "'glue_wnli' is never trained on, but got .*'x'"),
    ],
)
def test_an_impossible_request_is_refused(task, files, message, tmp_path):
    with pytest.raises(SettingsError, match=message):
        write(
            {split: [Path(item) for item in items] for split, items in files.items()},
            task=task,
            folder=tmp_path / "out",
        )
    assert left_behind(tmp_path) == []


def test_rows_are_written_as_json_with_their_own_letters(raw):
    write(raw)
    line = Path("out/glue_sst2/train.jsonl").read_text("utf-8").splitlines()[0]
    assert "good ü" in line
    assert list(json.loads(line)) == ["answer", "idx", "inputs", "targets"]


def test_progress_counts_every_row(raw, capsys):
    write_file(Path("raw/train.tsv"), "sentence\tlabel", *["good\t1"] * 2500)
    write(raw)
    assert "tasks glue_sst2 train: 2500 rows (done)" in capsys.readouterr().err
