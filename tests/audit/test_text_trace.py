"""From a text to the pages that have its passages, their steps and the scores."""

import sys
from pathlib import Path

import pytest
from made_crawl import CORPUS
from made_graphs import RESULT
from made_text import COPIED, PAGES, SCORES, TOKENS, text_of

from t5repro.audit import text_index
from t5repro.audit.steps import steps_that_saw
from t5repro.audit.text_trace import TextTrace, trace_text
from t5repro.audit.token_documents import TokenDocument
from t5repro.cli.main import main
from t5repro.errors import LineageError
from t5repro.lineage.graph import load_graph
from t5repro.lineage.store import Folder


def traced(root: Path, text: str, artifact: str | None = None) -> TextTrace:
    store = Folder(root)
    return trace_text(load_graph(store), store, text, artifact)


def test_a_copied_sentence_leads_to_every_page_that_has_it_and_to_the_score(texts: Path) -> None:
    (corpus,) = traced(texts, f"He said that {COPIED}, or so.").corpora
    best = max(corpus.passages, key=lambda passage: passage.words)
    assert (best.text, best.words, best.count) == (COPIED, len(COPIED.split()), 2)
    pages = [corpus.pages[number] for number in best.pages]
    # Page 4 has no document, so page 7 is document 6.
    assert [page.row.url for page in pages] == ["http://h.example/3", "http://h.example/7"]
    assert [page.document for page in pages] == [3, 6]
    assert [page.row.row for page in pages] == [3, 1]  # of the first file, of the second
    assert all(page.steps["r/pretrain/a"] for page in pages)
    assert corpus.scores == {"r/pretrain/a": [SCORES]}


def test_the_steps_are_those_that_read_the_documents(texts: Path) -> None:
    ids = str(Path(TOKENS).parent / "train.ids")
    documents = [TokenDocument(ids, number, "train", "r/tokens/a") for number in (3, 6)]
    seen = steps_that_saw(load_graph(Folder(texts)), texts, documents)
    (corpus,) = traced(texts, COPIED).corpora
    assert {page.document: page.steps[job] for page in corpus.pages for job in page.steps} == {
        steps.document: steps.steps for steps in seen
    }


def test_the_command_prints_passages_pages_and_scores(
    texts: Path, capsys: pytest.CaptureFixture
) -> None:
    assert main(["trace", "--text", COPIED]) == 0
    printed = capsys.readouterr().out
    assert f"15 words, 2 times: {COPIED}" in printed
    assert "3  http://h.example/3  no record of the cleaned shards" in printed
    assert f"scores that depend on r/pretrain/a: {SCORES}" in printed
    assert "does not prove" in printed


def test_common_language_is_counted_and_no_page_is_named(texts: Path) -> None:
    (corpus,) = traced(texts, "the river").corpora
    (passage,) = corpus.passages
    pages = [text_of(page) for page in range(PAGES)]
    assert passage.words == 2
    assert passage.count == sum(text.count("the river") for text in pages)
    assert corpus.pages == []
    assert "common language" in "\n".join(corpus.to_lines())


def test_what_the_corpus_has_not_is_not_found(texts: Path) -> None:
    (corpus,) = traced(texts, "Quixotic zebras jump").corpora
    assert corpus.pages == []
    assert all(passage.words < 5 for passage in corpus.passages)


def test_the_corpora_behind_a_score_are_searched(texts: Path) -> None:
    assert len(traced(texts, COPIED, SCORES).corpora) == 1
    with pytest.raises(LineageError, match="no ids of a corpus are behind"):
        traced(texts, COPIED, CORPUS.replace("00000-of-00001", "00000-of-00002"))


def test_a_text_without_words_is_refused(texts: Path) -> None:
    with pytest.raises(LineageError, match="has no word"):
        traced(texts, "  ")


@pytest.mark.parametrize("damage", ["0.positions", "0.counts", "index.json"])
def test_a_damaged_index_is_built_again(texts: Path, damage: str) -> None:
    before = traced(texts, COPIED)
    (folder,) = (texts / text_index.FOLDER).iterdir()
    content = (folder / damage).read_bytes()
    (folder / damage).write_bytes(content[:-2])
    assert traced(texts, COPIED) == before
    assert (folder / damage).read_bytes() == content


def test_an_index_is_kept_for_the_next_question_and_a_withdrawal_deletes_it(
    texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = traced(texts, COPIED)
    monkeypatch.setitem(sys.modules, "pydivsufsort", None)  # nothing can be sorted again
    assert traced(texts, COPIED) == before
    text_index.delete_indexes(texts)
    assert not (texts / text_index.FOLDER).exists()


def test_ids_that_changed_since_are_refused(texts: Path) -> None:
    (texts / RESULT / "tokens/a/train.ids").write_bytes(b"other")
    with pytest.raises(LineageError, match=r"train.ids has the SHA-256 .* restore it"):
        traced(texts, COPIED)


def test_a_trace_of_nothing_and_a_picture_of_a_text_are_refused(
    texts: Path, capsys: pytest.CaptureFixture
) -> None:
    assert main(["trace"]) == 2
    assert "name one" in capsys.readouterr().err
    assert main(["trace", "--text", "a", "--html", "x.html"]) == 2
    assert "writes no --html" in capsys.readouterr().err
