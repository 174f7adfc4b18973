"""The rule `contamination` on the planted set: found rows, counts, and the same bytes anyhow."""

import dataclasses
import json
from functools import partial
from pathlib import Path

import pytest
from contamination_job import OTHER_TASK, TASK, contamination_job
from rows_in_corpus import PLANTED

from t5repro.contamination.methods import METHODS
from t5repro.contamination.rows_in_corpus import find_contamination, write_found
from t5repro.contamination.search import search_parts
from t5repro.errors import ArtifactError

ALL = [method.name for method in METHODS]


@pytest.fixture
def job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return contamination_job(Path("out"), methods=ALL)


def test_the_rows_of_the_planted_set_are_found_with_their_pages(job) -> None:
    find_contamination(job)
    content = json.loads(job.found.read_text())
    entries = content["tasks"][TASK]["corpus"]["found"]
    # The tiny vocabulary knows no German: by its ids much is alike.
    found = {entry["idx"]: entry for entry in entries if entry["unit"] == "words"}
    assert {entry["unit"] for entry in entries} == {"words", "ids"}
    assert {"verbatim", "other case and punctuation", "first half", "short"} <= found.keys()
    assert not {"paraphrase", "german", "french", "romanian", "unseen"} & found.keys()
    verbatim = found["verbatim"]
    assert verbatim["length"] == verbatim["of"] == 26
    assert {"longest", "gpt3", "palm", "palm_any", "exact", "near"} == set(verbatim["methods"])
    assert verbatim["name"].startswith("http://h.example/")
    counts = json.loads(job.manifest.read_text())["counters"]["rows"][TASK]
    assert counts["exact"]["dirty"] == 3
    assert all(sum(entry.values()) == len(PLANTED) + 3 for entry in counts.values())


def test_rows_of_other_tasks_are_searched_and_a_task_is_not_compared_with_itself(job) -> None:
    find_contamination(job)
    found = json.loads(job.found.read_text())["tasks"][TASK]["examples"]["found"]
    assert [entry["idx"] for entry in found] == ["short"]  # the row that the other task has
    assert OTHER_TASK in found[0]["file"]
    without = dataclasses.replace(
        job,
        settings=job.settings.model_copy(
            update={
                "contamination": job.settings.contamination.model_copy(
                    update={"other_tasks": False}
                )
            }
        ),
    )
    find_contamination(without)
    assert "examples" not in json.loads(job.found.read_text())["tasks"][TASK]


def test_bytes_do_not_depend_on_the_number_of_processes(job, monkeypatch) -> None:
    write_found(job, partial(search_parts, processes=2))
    expected = job.found.read_bytes(), job.manifest.read_bytes()
    find_contamination(job)
    assert (job.found.read_bytes(), job.manifest.read_bytes()) == expected
    # Small corpora are searched in one process.
    monkeypatch.setattr("t5repro.vocab.batches.BYTES_OF_PROCESS", 1)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    find_contamination(job)
    assert (job.found.read_bytes(), job.manifest.read_bytes()) == expected


def test_a_lost_shard_of_the_corpus_is_named(job) -> None:
    next(job.corpus.parent.glob("en-train-*")).unlink()
    with pytest.raises(ArtifactError, match="en-train-.* is listed in .* but missing"):
        find_contamination(job)
    assert not job.found.exists()
