"""Rows that were planted in a corpus, and rows that were not."""

import csv
import io
import json
from pathlib import Path

import pytest
from made_graphs import RESULT, manifest
from made_text import COPIED, PAGES, SCORES, TOKENS, text_of

from t5repro.audit.contamination import Contamination, contamination
from t5repro.cli.main import main
from t5repro.errors import LineageError, SettingsError
from t5repro.files import write_json, write_json_lines
from t5repro.lineage.graph import load_graph
from t5repro.lineage.store import Folder

OTHER = "seven bright ships brought salt by morning years its river wheel tall"
PLANTED = {  # name -> sentence1, sentence2, whether the row is found
    "verbatim": (COPIED, OTHER, True),
    "in the second field": (OTHER, COPIED, True),
    "first half": (" ".join(COPIED.split()[:8]), "no such word", True),
    "seven words": (" ".join(COPIED.split()[:7]) + " zq zq", "qx qx qx qx", False),
    "a word replaced in the middle": (COPIED.replace("and", "zq"), "qx qx qx qx", False),
    "another case": (COPIED.upper(), "qx qx qx qx", True),
    "another order": (" ".join(COPIED.split()[::-1]), "qx qx qx qx", False),
    "split between fields": (
        " ".join(COPIED.split()[:7]) + " zq",
        " ".join(["zq", *COPIED.split()[7:12]]),
        False,
    ),
    "a whole field of five words": (" ".join(COPIED.split()[3:8]), "qx qx qx qx", True),
    "too short": ("the old mill", "stood", False),
}


def scored(root: Path, rows: list[dict], task: str = "glue_rte") -> Path:
    """Write predictions of a task's rows, and their scores, on the training of `texts`."""
    predictions = f"{RESULT}/evaluate_predict/a/{task}.jsonl"
    write_json_lines(root / predictions, rows)
    folder = Path(predictions).parent
    manifest(
        root,
        f"{folder}/manifest.json",
        rule="evaluate_predict",
        inputs=[f"{RESULT}/pretrain/a/weights.safetensors"],
        outputs=[predictions],
    )
    write_json(root / SCORES, {"tasks": {task: {}}})
    manifest(
        root,
        f"{RESULT}/evaluate_score/a/manifest.json",
        rule="evaluate_score",
        inputs=[predictions],
        outputs=[SCORES],
    )
    return root


def row(number: int, first: str, second: str, *, is_right: bool = True) -> dict:
    return {
        "idx": number,
        "inputs": f"rte sentence1: {first} sentence2: {second}",
        "targets": "entailment",
        "answer": 0,
        "prediction": "entailment" if is_right else "not_entailment",
    }


def asked(root: Path, name: str = SCORES, **options: object) -> Contamination:
    store = Folder(root)
    return contamination(load_graph(store), store, name, **options)


def test_rows_in_corpus_are_found_and_others_are_not(texts: Path) -> None:
    rows = [row(n, *fields) for n, (*fields, _) in enumerate(PLANTED.values())]
    (task,) = asked(scored(texts, rows)).tasks
    names = list(PLANTED)
    found = {names[entry["idx"]] for entry in task.found}
    assert found == {name for name, (*_, is_found) in PLANTED.items() if is_found}
    counts = task.sources["corpus"]["methods"]["longest"]
    assert (task.rows, counts["rows"]["unchecked"]) == (len(PLANTED), 1)
    dirty = {name: field["dirty"] for name, field in counts["fields"].items()}
    assert dirty == {"sentence1": 4, "sentence2": 1}
    verbatim = task.found[0]
    assert (verbatim["in_row"], verbatim["length"], verbatim["pages"]) == (COPIED, 15, 2)
    assert COPIED in verbatim["in_page"]
    assert verbatim["name"] == "http://h.example/3"
    page = task.pages[f"{verbatim['file']}#{verbatim['document']}"]
    assert page.row.url == "http://h.example/3"
    (steps,) = page.steps.values()
    assert steps


def test_the_counts_are_those_of_a_search_through_the_pages(texts: Path) -> None:
    pages = [text_of(page) for page in range(PAGES)]
    starts = range(30)
    rows = [row(n, " ".join(pages[n % 3].split()[n : n + 9]), OTHER) for n in starts]
    (task,) = asked(scored(texts, rows), words=9).tasks
    expected = {
        n
        for n in starts
        if any(f" {' '.join(pages[n % 3].split()[n : n + 9])} " in f" {page} " for page in pages)
    }
    assert {entry["idx"] for entry in task.found} == expected == set(starts)


def test_scores_are_those_of_the_rows_with_and_without_a_passage(texts: Path) -> None:
    rows = [row(n, COPIED, OTHER, is_right=n % 4 > 0) for n in range(40)]
    rows += [row(n, "zq zq zq zq", OTHER, is_right=n % 2 > 0) for n in range(40, 100)]
    (task,) = asked(scored(texts, rows)).tasks
    assert task.metric == "accuracy"
    scores = task.scores["longest"]
    values = {name: (score.rows, score.value) for name, score in scores.items()}
    expected = {"all": (100, 60.0), "clean": (60, 50.0), "dirty": (40, 75.0)}
    assert values == {**expected, "unchecked": (0, None)}
    low, high = scores["dirty"].interval
    assert low < 75 < high


def test_fewer_rows_than_thirty_have_no_score(texts: Path) -> None:
    rows = [row(n, COPIED if n < 5 else "zq zq zq zq", OTHER) for n in range(60)]
    (task,) = asked(scored(texts, rows)).tasks
    assert task.scores["longest"]["dirty"].value is None
    assert "dirty no score of 5 rows" in "\n".join(task.to_lines())


def test_answers_of_free_text_are_counted_apart(texts: Path) -> None:
    question = {"answer": [COPIED], "prediction": "x"}
    rows = [
        {**question, "idx": n, "inputs": f"question: zq zq zq {n} context: qx qx qx", "targets": t}
        for n, t in enumerate([COPIED, "zq zq zq zq"])
    ]
    (task,) = asked(scored(texts, rows, "squad")).tasks
    counts = task.sources["corpus"]["methods"]["longest"]
    assert (counts["rows"]["dirty"], counts["fields"]["targets"]["dirty"]) == (0, 1)
    assert [entry["role"] for entry in task.found] == ["answer"]


def test_the_command_prints_rows_and_pages_and_writes_a_table(
    texts: Path, capsys: pytest.CaptureFixture
) -> None:
    scored(texts, [row(n, COPIED, OTHER) for n in range(12)])
    assert main(["contamination", SCORES, "--csv", "rows.csv"]) == 0
    printed = capsys.readouterr().out
    assert "glue_rte, longest: 12 of 12 rows found (100.0 %), 0 unchecked" in printed
    assert f"row 0, sentence1, 15 of 15 words (longest): {COPIED}" in printed
    assert "and 2 more fields (--csv has all)" in printed
    lines = list(csv.DictReader(io.StringIO((texts / "rows.csv").read_text())))
    assert len(lines) == 12
    assert lines[0]["name"] == "http://h.example/3"
    assert main(["contamination", SCORES, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["tasks"][0]["sources"]["corpus"]["found"]) == 12


def test_what_cannot_be_asked_is_refused(texts: Path) -> None:
    with pytest.raises(LineageError, match="has no scores"):
        asked(scored(texts, [row(0, COPIED, OTHER)]), TOKENS.replace("manifest.json", "train.ids"))
    with pytest.raises(SettingsError, match="allowed: 4 or more"):
        asked(texts, words=3)
    with pytest.raises(SettingsError, match="no method is called 'gpt4'"):
        asked(texts, methods=["gpt4"])
    with pytest.raises(SettingsError, match="--words is the length of a run of the method longest"):
        asked(texts, methods=["palm"], words=9)
    with pytest.raises(LineageError, match=r"no such task; the file scores \['glue_rte'\]"):
        asked(texts, SCORES + "#glue_rta")


def test_every_method_answers_and_ids_are_those_of_the_vocabulary(texts: Path) -> None:
    methods = ["longest", "gpt3", "palm", "palm_any", "llama2", "exact", "near"]
    rows = [row(n, *fields) for n, (*fields, _) in enumerate(PLANTED.values())]
    (task,) = asked(scored(texts, rows), methods=methods).tasks
    entries = task.sources["corpus"]["methods"]
    dirty = {name: {list(PLANTED)[n] for n in entry["dirty"]} for name, entry in entries.items()}
    whole = {"verbatim", "in the second field", "first half", "another case"}
    assert dirty["exact"] == whole | {"a whole field of five words"}
    assert dirty["palm"] == dirty["palm_any"] == whole
    assert {"verbatim", "in the second field", "first half"} <= dirty["llama2"]
    assert "another case" not in dirty["llama2"]  # ids differ in case, words do not
