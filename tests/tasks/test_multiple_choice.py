"""RACE from its archive, and rows of the tasks with options and of SNLI that are refused."""

import io
import json
import tarfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from t5repro.config.sections.tasks import TaskRows, TasksStage
from t5repro.errors import RawDataError, TaskDataError
from t5repro.files import read_json_lines, read_manifest
from t5repro.jobs.tasks import TasksJob
from t5repro.tasks.build import write_examples
from t5repro.tasks.registry import task_named

FOLDERS = ("train/middle", "train/high", "dev/middle", "dev/high", "test/middle", "test/high")


def article(name: str, **change: Any) -> dict[str, Any]:
    values = {
        "id": name,
        "article": f"The text of {name}.",
        "questions": ["Who?", "It was _ ."],
        "options": [["a", "b", "c", "d"], ["one", "two", "three", "four"]],
        "answers": ["D", "B"],
    }
    return {key: value for key, value in (values | change).items() if value is not ...}


def archive(path: Path, members: Mapping[str, bytes], *, prefix: str = "RACE/") -> Path:
    with tarfile.open(path, "w:gz") as opened:
        for name, data in members.items():
            info = tarfile.TarInfo(prefix + name)
            info.size = len(data)
            opened.addfile(info, io.BytesIO(data))
    return path


@pytest.fixture
def race(tmp_path: Path) -> Path:
    members = {
        f"{folder}/{number}.txt": json.dumps(
            article(f"{folder.partition('/')[2]}{number}.txt")
        ).encode()
        for number, folder in enumerate(FOLDERS)
    }
    return archive(tmp_path / "RACE.tar.gz", {"readme.txt": b"no article", **members})


def read(task: str, split: str, *paths: Path) -> list[Any]:
    return list(task_named(task).read(paths, split, Counter()))


def test_a_split_reads_its_own_folders_of_the_archive(race: Path) -> None:
    found = {
        split: [row["idx"]["article"] for row in read("race", split, race)[::2]]
        for split in ("train", "validation", "test")
    }
    assert found == {
        "train": ["middle0.txt", "high1.txt"],
        "validation": ["middle2.txt", "high3.txt"],
        "test": ["middle4.txt", "high5.txt"],
    }


@pytest.mark.parametrize("level", ["middle", "high"])
def test_a_level_has_its_own_questions_of_the_same_archive(race: Path, level: str) -> None:
    rows = read(f"race_{level}", "validation", race)
    assert [row["idx"]["article"].startswith(level) for row in rows] == [True, True]
    both = read("race", "validation", race)
    assert [row for row in both if row["idx"]["article"].startswith(level)] == rows


def test_an_archive_that_begins_with_a_dot_is_the_same(tmp_path: Path) -> None:
    data = json.dumps(article("high1.txt")).encode()
    path = archive(tmp_path / "a.tar.gz", {"train/high/1.txt": data}, prefix="./RACE/")
    assert len(read("race", "train", path)) == 2


def test_a_network_of_labels_reads_the_option_in_the_blank_or_after_the_question(
    race: Path, tmp_path: Path
) -> None:
    """ALBERT's, XLNet's and RoBERTa's programs join them so."""
    settings = TasksStage(tasks=TaskRows(segments=True))
    files = {"train": [race], "validation": [race]}
    manifest = tmp_path / "out/manifest.json"
    write_examples(TasksJob(settings, "race", files, tmp_path / "out", manifest))
    first, second, *_ = read_json_lines(tmp_path / "out/train.jsonl")
    assert first["segments"] == second["segments"] == ["The text of middle0.txt."]
    assert first["options"] == ["Who? a", "Who? b", "Who? c", "Who? d"]
    assert second["options"][:2] == ["It was one .", "It was two ."]
    assert (second["answer"], second["targets"]) == (1, "B")
    assert second["inputs"] == (
        "race question: It was _ . A: one B: two C: three D: four article: The text of middle0.txt."
    )
    counters = read_manifest(manifest)["counters"]
    assert (counters["train"]["rows"], counters["validation"]["labelled"]) == (4, 4)


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"id": "college1.txt"}, ["id is 'college1.txt'", "middle<number>.txt or high"]),
        ({"answers": ["D", "E"]}, ["the answer to question 1 is 'E'", "A, B, C or D"]),
        ({"answers": ["D"]}, ["numbers of questions, options and answers are [1, 2]"]),
        ({"answers": ...}, ["no 'answers' among"]),
        ({"options": [["a"], ["b"]]}, ["options of question 0 are ['a']", "four options"]),
        ({"options": ["abcd", "abcd"]}, ["options is 'abcd'", "a list of texts"]),
        ({"questions": "Who?"}, ["questions is 'Who?'", "a list of texts"]),
        ({"article": 3}, ["article is 3", "allowed: text"]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_article_that_is_not_as_those_of_race_is_refused(
    tmp_path: Path, change: dict[str, Any], parts: list[str]
) -> None:
    data = json.dumps(article("high1.txt", **change)).encode()
    path = archive(tmp_path / "RACE.tar.gz", {"train/high/1.txt": data})
    with pytest.raises(TaskDataError) as caught:
        read("race", "train", path)
    for part in ("RACE.tar.gz member RACE/train/high/1.txt", *parts):
        assert part in str(caught.value)


def test_an_article_that_occurs_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    data = json.dumps(article("high1.txt")).encode()
    path = archive(tmp_path / "RACE.tar.gz", {"dev/high/1.txt": data, "dev/high/2.txt": data})
    with pytest.raises(TaskDataError, match=r"2\.txt: repeats idx 'high1\.txt'.*high/1\.txt"):
        read("race", "validation", path)


@pytest.mark.parametrize("text", ["", "[1]", '{"id": 1, "id": 2}'])
def test_a_member_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    path = archive(tmp_path / "RACE.tar.gz", {"train/high/1.txt": text.encode()})
    with pytest.raises(TaskDataError, match=r"high/1\.txt: (not JSON|found \[1\])"):
        read("race", "train", path)


def test_a_damaged_archive_is_named_and_kept(race: Path) -> None:
    race.write_bytes(race.read_bytes()[:-40])
    with pytest.raises(RawDataError, match=r"RACE\.tar\.gz is damaged .* download it again"):
        read("race", "test", race)
    assert race.is_file()


def test_an_archive_that_expands_beyond_reason_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "RACE.tar.gz", {"train/high/1.txt": b" " * (1 << 25)})
    with pytest.raises(RawDataError, match=r"expands from [\d,]+ to more than 16,777,216 bytes"):
        read("race", "train", path)


def test_a_missing_archive_is_named_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(TaskDataError, match=r"RACE\.tar\.gz is missing; put the original file"):
        read("race", "train", tmp_path / "RACE.tar.gz")


PAIR = {"sentence1": "p", "sentence2": "h", "gold_label": "neutral"}
STORY = ",".join(
    (
        *("InputStoryid", "InputSentence1", "InputSentence2", "InputSentence3", "InputSentence4"),
        *("RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2", "AnswerRightEnding"),
    )
)


@pytest.mark.parametrize(
    ("task", "text", "message"),
    [
        ("snli", json.dumps(PAIR | {"gold_label": "maybe"}), "entailment or neutral or contra"),
        ("snli", json.dumps({"sentence1": "p", "sentence2": "h"}), "no 'gold_label' among"),
        (
            "scitail",
            json.dumps(PAIR | {"gold_label": "contradiction"}),
            "entailment or neutral or -",
        ),
        ("swag", "sent1,sent2,ending0,ending1,ending2,label", r"missing: \['ending3'\]"),
        (
            "swag",
            "sent1,sent2,ending0,ending1,ending2,ending3,label\na,b,c,d,e,f,4",
            "label is '4'",
        ),
        ("story_cloze", f"{STORY}\ni,a,b,c,d,e,f,0", "AnswerRightEnding is '0'; allowed: 1 or 2"),
    ],
)
def test_a_row_that_is_not_as_those_of_its_task_is_refused(
    tmp_path: Path, task: str, text: str, message: str
) -> None:
    path = tmp_path / "file"
    path.write_text(f"{text}\n")
    with pytest.raises(TaskDataError, match=message):
        read(task, "train", path)


def test_pairs_without_a_gold_label_are_counted(tmp_path: Path) -> None:
    rows = [PAIR, PAIR | {"gold_label": "-"}, PAIR | {"gold_label": "entailment"}]
    path = tmp_path / "snli.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    excluded: Counter[str] = Counter()
    read_rows = list(task_named("snli").read([path], "train", excluded))
    assert [(row["idx"], row["label"]) for row in read_rows] == [(0, 1), (1, 0)]
    assert excluded == {"no_gold_label": 1}
