"""What is not in the expected layout is refused, with place, value, what is allowed and cure."""

import csv
import gzip
import json
from collections import Counter

import pytest

from t5repro.errors import TaskDataError
from t5repro.tasks.registry import task_named

SQUAD = {"id": "a", "question": "Q?", "answers": [{"text": "x"}]}
WSC = {
    "text": "Ann told Bo that she won .",
    "target": {"span1_index": 0, "span1_text": "Ann", "span2_index": 4, "span2_text": "she"},
    "idx": 0,
    "label": True,
}
MULTIRC = {
    "idx": 0,
    "passage": {
        "text": "t",
        "questions": [
            {"question": "q", "idx": 1, "answers": [{"text": "a", "idx": 2, "label": 1}]}
        ],
    },
}
RECORD = {
    "idx": 0,
    "passage": {"text": "Ann", "entities": [{"start": 0, "end": 2}]},
    "qas": [{"query": "@placeholder", "idx": 1, "answers": [{"text": "Ann"}]}],
}


def squad(*questions):
    return {"data": [{"paragraphs": [{"context": "C.", "qas": list(questions)}]}]}


def mrqa(**change):
    question = {"qid": "a", "question": "Q?", "answers": ["C"], "detected_answers": []}
    return {"context": "C.", "qas": [question | change]}


def read(task, split, *contents, folder):
    paths = []
    for number, content in enumerate(contents):
        path = folder / f"file{number}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        paths.append(path)
    task = task_named(task)
    return [e for row in task.read(paths, split, Counter()) for e in task.to_examples(row)]


def lines(*texts):
    return "".join(text + "\n" for text in texts)


def records(*rows):
    return lines(*(row if isinstance(row, str) else json.dumps(row) for row in rows))


def changed(record, **change):
    return {key: value for key, value in (record | change).items() if value is not ...}


REFUSED = [
    # name, task, split, files, parts of the message
    (
        "too few columns",
        "glue_rte",
        "train",
        [lines("index\tsentence1\tsentence2\tlabel", "0\ta\tb\tentailment", "1\ta\tb")],
        ["file0 line 3", "3 columns", "'1\\ta\\tb'", "4 columns", "index, sentence1", "download"],
    ),
    (
        "too many columns",
        "glue_cola",
        "train",
        [lines("s\t1\t\ta", "s\t1\t\ta\tb")],
        ["file0 line 2", "5 columns", "4 columns separated by tabs: source, label, star"],
    ),
    (
        "an empty line",
        "glue_sst2",
        "train",
        [lines("sentence\tlabel", "", "a\t1")],
        ["file0 line 2", "1 columns in ''"],
    ),
    (
        "a wrong header",
        "glue_sst2",
        "train",
        [lines("text\tlabel", "a\t1")],
        ["file0 line 1", "['text', 'label']", "columns ['sentence', 'label']", "tasks.files"],
    ),
    (
        "a byte-order mark where none belongs",
        "glue_sst2",
        "train",
        [lines("\ufeffsentence\tlabel", "a\t1")],
        ["file0 line 1", "['\\ufeffsentence', 'label']"],
    ),
    (
        "no label outside the test split",
        "glue_qnli",
        "validation",
        [lines("index\tquestion\tsentence", "0\ta\tb")],
        ["file0 line 1", "columns ['question', 'sentence', 'label']"],
    ),
    ("an empty file", "glue_sst2", "train", [""], ["file0 line 1", "found the header ['']"]),
    (
        "neither layout of the diagnostic set",
        "glue_ax",
        "test",
        [lines("a\tb")],
        ["['Premise', 'Hypothesis', 'Label'] or a header with", "['sentence1', 'sentence2', 'la"],
    ),
    (
        "a label out of range",
        "glue_cola",
        "train",
        [lines("s\t2\t\ta")],
        ["file0 line 1", "found the label '2'", "allowed: '0' or '1'"],
    ),
    (
        "a label in another spelling",
        "glue_rte",
        "train",
        [lines("index\tsentence1\tsentence2\tlabel", "0\ta\tb\tEntailment")],
        ["file0 line 2", "'Entailment'", "'entailment' or 'not_entailment'"],
    ),
    *(
        (
            f"the score {score}",
            "glue_stsb",
            "train",
            [lines("sentence1\tsentence2\tscore", f"a\tb\t{score}")],
            ["file0 line 2", f"'{score}'", "a number from 0 to 5"],
        )
        for score in ("5.1", "-1", "nan", "high", "")
    ),
    (
        "an index twice",
        "glue_rte",
        "train",
        [lines("index\tsentence1\tsentence2\tlabel", "0\ta\tb\tentailment", "0\tc\td\tentailment")],
        ["file0 line 3", "repeats idx {'index': '0'}", "file0 line 2"],
    ),
    (
        "a pair of MRPC twice",
        "glue_mrpc",
        "train",
        [lines("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", *["1\t8\t9\ta\tb"] * 2)],
        ["file0 line 3", "repeats idx {'#1 ID': '8', '#2 ID': '9'}"],
    ),
    (
        "a WNLI index twice",
        "glue_wnli",
        "validation",
        [
            lines(
                "index\tsentence1\tsentence2\tlabel",
                *["3\tIce is here. It melts.\tIce melts.\t1"] * 2,
            )
        ],
        ["file0 line 3", "repeats idx {'index': '3'}"],
    ),
    (
        "bytes that are not UTF-8",
        "glue_sst2",
        "train",
        [b"sentence\tlabel\na\t1\ncaf\xe9\t1\n"],
        ["file0 line 3", "not UTF-8: b'\\xe9'", "convert the file to UTF-8"],
    ),
    (
        "a list of ids with one column",
        "glue_mrpc",
        "train",
        [lines("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "1\t1\t2\ta\tb"), lines("12")],
        ["file1 line 1", "'12'", "two ids"],
    ),
    (
        "too many broken rows in QQP",
        "glue_qqp",
        "train",
        [lines("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", *["broken"] * 51)],
        ["file0 line 52", "1 columns in 'broken'"],
    ),
    (
        "a line that is not JSON",
        "super_glue_cb",
        "train",
        [records({"premise": "p", "hypothesis": "h", "label": "neutral", "idx": 0}, '{"premise')],
        ["file0 line 2", "not JSON", "'{\"premise'", "one JSON object per line"],
    ),
    (
        "an empty line among records",
        "super_glue_cb",
        "train",
        [records({"premise": "p", "hypothesis": "h", "label": "neutral", "idx": 0}, "")],
        ["file0 line 2", "not JSON"],
    ),
    (
        "brackets without end",
        "super_glue_cb",
        "train",
        ["[" * 100_000 + "\n"],
        ["line 1", "not JSON"],
    ),
    ("a list", "super_glue_cb", "train", ["[1]\n"], ["file0 line 1", "found [1]", "JSON object"]),
    (
        "an absent field",
        "super_glue_cb",
        "train",
        [records({"premise": "p", "label": "neutral", "idx": 0})],
        ["file0 line 1", "no 'hypothesis' among ['idx', 'label', 'premise']"],
    ),
    (
        "an absent label",
        "super_glue_cb",
        "validation",
        [records({"premise": "p", "hypothesis": "h", "idx": 0})],
        ["file0 line 1", "no 'label'", '"entailment" or "contradiction" or "neutral"'],
    ),
    (
        "a field that is a number",
        "super_glue_cb",
        "train",
        [records({"premise": 3, "hypothesis": "h", "label": "neutral", "idx": 0})],
        ["file0 line 1", "premise is 3", "allowed: text"],
    ),
    (
        "half a surrogate pair",
        "super_glue_cb",
        "train",
        ['{"premise": "\\ud83d", "hypothesis": "h", "label": "neutral", "idx": 0}\n'],
        ["file0 line 1", "premise is '\\ud83d'", "surrogate"],
    ),
    (
        "a truth written as a number",
        "super_glue_boolq",
        "train",
        [records({"passage": "p", "question": "q", "label": 1, "idx": 0})],
        ["file0 line 1", "label is 1", "allowed: false or true"],
    ),
    (
        "a choice out of range",
        "super_glue_copa",
        "train",
        [
            records(
                {"premise": "p", "choice1": "a", "choice2": "b", "question": "c"}
                | {"label": 2, "idx": 0}
            )
        ],
        ["file0 line 1", "label is 2", "allowed: 0 or 1"],
    ),
    (
        "an idx twice",
        "super_glue_cb",
        "train",
        [records(*[{"premise": "p", "hypothesis": "h", "label": "neutral", "idx": 7}] * 2)],
        ["file0 line 2", "repeats idx 7", "file0 line 1"],
    ),
    (
        "an idx that is text",
        "super_glue_cb",
        "train",
        [records({"premise": "p", "hypothesis": "h", "label": "neutral", "idx": "7"})],
        ["idx is '7'", "a whole number"],
    ),
    (
        "a MultiRC question id in two paragraphs",
        "super_glue_multirc",
        "train",
        [records(MULTIRC, changed(MULTIRC, idx=5))],
        ["file0 line 2", "repeats the question id 1", "paragraph 0 has it, too"],
    ),
    (
        "a MultiRC passage that is text",
        "super_glue_multirc",
        "train",
        [records(changed(MULTIRC, passage="t"))],
        ["file0 line 1", "passage is 't'", "an object"],
    ),
    (
        "MultiRC questions that are texts",
        "super_glue_multirc",
        "train",
        [records(changed(MULTIRC, passage={"text": "t", "questions": ["q"]}))],
        ["file0 line 1", "questions contains 'q'", "a list of objects"],
    ),
    (
        "a ReCoRD entity outside the passage",
        "super_glue_record",
        "train",
        [records(changed(RECORD, passage={"text": "Ann", "entities": [{"start": 1, "end": 3}]}))],
        ["file0 line 1", "[1, 3]", "0 <= start <= end < 3"],
    ),
    (
        "no ReCoRD answers in training",
        "super_glue_record",
        "train",
        [records(changed(RECORD, qas=[{"query": "@placeholder", "idx": 1}]))],
        ["file0 line 1", "no 'answers'"],
    ),
    (
        "a WSC pronoun elsewhere",
        "super_glue_wsc",
        "train",
        [records(changed(WSC, target=WSC["target"] | {"span2_index": 3}))],
        ["file0 line 1", "span2_index 3 is at 'that'", "span2_text 'she'"],
    ),
    *(
        (
            f"a WSC pronoun at {index}",
            "super_glue_wsc",
            "train",
            [records(changed(WSC, target=WSC["target"] | {"span2_index": index}))],
            ["file0 line 1", f"span2_index {index} is at"],
        )
        for index in (0, 99, -1)
    ),
    (
        "a WSC candidate of another text",
        "super_glue_wsc",
        "train",
        [records(changed(WSC, target=WSC["target"] | {"span1_text": "Cy"}))],
        ["file0 line 1", "span1_text is 'Cy'", "a phrase of the text"],
    ),
    (
        "a WSC candidate at no word",
        "super_glue_wsc",
        "train",
        [records(changed(WSC, target=WSC["target"] | {"span1_text": "cy", "span1_index": 70}))],
        ["file0 line 1", "span1_index is 70", "one of 7 words"],
    ),
    (
        "a WNLI premise without a pronoun",
        "glue_wnli",
        "validation",
        [lines("index\tsentence1\tsentence2\tlabel", "0\tIce melts.\tIce melts.\t0")],
        ["file0 line 2", "no pronoun in 'Ice melts.'", "'him'"],
    ),
    (
        "a WNLI candidate with two spaces",
        "glue_wnli",
        "validation",
        [lines("index\tsentence1\tsentence2\tlabel", "0\tIce? it melts.\tBig  ice melts.\t0")],
        ["file0 line 2", "no candidate 'big ice' in 'Big  ice melts.'"],
    ),
    (
        "SQuAD that is not JSON",
        "squad",
        "train",
        ['{"data":\n [}'],
        ["file0 line 2 column 3", "not JSON"],
    ),
    (
        "SQuAD that is nested too deep",
        "squad",
        "train",
        ["[" * 200_000],
        ["file0: not JSON", "levels deep", "allowed: SQuAD v1.1 JSON"],
    ),
    (
        "SQuAD with a number that is too long",
        "squad",
        "train",
        ['{"data": ' + "1" * 5000 + "}"],
        ["file0: not JSON", "digits", "allowed: SQuAD v1.1 JSON"],
    ),
    (
        "SQuAD with its data twice",
        "squad",
        "train",
        ['{"data": [], "data": []}'],
        ["file0: not JSON", "the key 'data' is set twice"],
    ),
    ("SQuAD that is a list", "squad", "train", ["[]"], ["file0: found []", "'data'"]),
    (
        "a SQuAD question without answers",
        "squad",
        "train",
        [json.dumps(squad(changed(SQUAD, answers=...)))],
        ["file0 data[0].paragraphs[0].qas[0] (id a)", "no 'answers'"],
    ),
    (
        "a SQuAD 2.0 question",
        "squad",
        "validation",
        [json.dumps(squad(SQUAD, changed(SQUAD, id="b", answers=[])))],
        ["qas[1] (id b)", "answers are []", "at least one answer", "version 1.1"],
    ),
    (
        "a SQuAD 2.0 question without a flag",
        "squad_2",
        "validation",
        [json.dumps(squad(changed(SQUAD, answers=[])))],
        ["qas[0] (id a)", "no 'is_impossible'", "true or false"],
    ),
    (
        "a SQuAD 2.0 question with an answer that it cannot have",
        "squad_2",
        "train",
        [json.dumps(squad(changed(SQUAD, is_impossible=True)))],
        ["qas[0] (id a)", "is_impossible is true and answers are", "allowed: no answer"],
    ),
    (
        "a SQuAD 2.0 question without its answer",
        "squad_2",
        "train",
        [json.dumps(squad(changed(SQUAD, answers=[], is_impossible=False)))],
        ["qas[0] (id a)", "is_impossible is false", "at least one answer"],
    ),
    (
        "an answer of MRQA behind its text",
        "newsqa",
        "train",
        [records(mrqa(detected_answers=[{"text": "C", "char_spans": [[0, 2]]}]))],
        ["file0 line 1: char_spans contains [0, 2]", "[first, last] of 2 characters"],
    ),
    (
        "a question of MRQA without an accepted answer",
        "hotpotqa",
        "validation",
        [records({"header": {}}, mrqa(answers=[]))],
        ["file0 line 2 (qid a): answers are []", "at least one answer"],
    ),
    (
        "an accepted answer of MRQA that is a number",
        "triviaqa",
        "train",
        [records(mrqa(answers=["C", 3]))],
        ["file0 line 1: answers is 3", "allowed: text"],
    ),
    (
        "a question of MRQA twice",
        "searchqa",
        "train",
        [records(mrqa(), mrqa())],
        ["file0 line 2: repeats idx 'a'"],
    ),
    (
        "a word without a tag",
        "conll_2003",
        "train",
        [lines("EU NNP I-NP I-ORG", "rejects")],
        ["file0 line 2: the line is 'rejects'", "allowed: a word, other columns, and O, B-"],
    ),
    (
        "a tag of another scheme",
        "conll_2003",
        "validation",
        [lines("EU S-ORG")],
        ["file0 line 1: the line is 'EU S-ORG'"],
    ),
    (
        "a SQuAD id twice",
        "squad",
        "train",
        [json.dumps(squad(SQUAD, SQUAD))],
        ["qas[1] (id a)", "repeats idx 'a'", "qas[0] (id a)"],
    ),
    (
        "SQuAD bytes that are not UTF-8",
        "squad",
        "train",
        [b'{"data": "\xff"}'],
        ["file0", "not UTF-8"],
    ),
    (
        "a CSV header without a column",
        "cnn_dailymail",
        "train",
        [lines("id,article,summary", "a,b,c")],
        ["file0 line 1", "['id', 'article', 'summary']", "(missing: ['highlights'])"],
    ),
    (
        "a CSV row with too few cells",
        "cnn_dailymail",
        "train",
        [lines("id,article,highlights", '1,"a', 'b",c', "2,b")],
        ["file0 line 4", "2 columns in '2,b'", "3 columns: id, article, highlights"],
    ),
    (
        "a CSV quote that is never closed",
        "cnn_dailymail",
        "train",
        [lines("id,article,highlights", "1,a,b", '2,"a,b')],
        ["file0 line 3", "not comma-separated values", "unexpected end of data"],
    ),
    (
        "a CSV id twice",
        "cnn_dailymail",
        "train",
        [lines("id,article,highlights", "1,a,b", "1,c,d")],
        ["file0 line 3", "repeats idx '1'", "file0 line 2"],
    ),
    (
        "a translation that is shorter",
        "wmt_en_de",
        "train",
        [lines("a", "b", "c"), lines("x")],
        ["file0 has 3 lines, the other 1", "equal numbers of lines"],
    ),
    (
        "a translation that is longer",
        "wmt_en_de",
        "train",
        [lines("a"), lines("x", "y", "z")],
        ["file1 has 3 lines, the other 1"],
    ),
    (
        "one file of a translation",
        "wmt_en_de",
        "train",
        [lines("a")],
        ["source and target files in turn"],
    ),
    (
        "a DPR block without its answer",
        "dpr",
        "train",
        [lines("Ann told Bo that she won.", "she", "Ann,Bo", "", "")],
        ["file0 line 1", "found the block", "correct candidate"],
    ),
    (
        "a DPR answer that is no candidate",
        "dpr",
        "train",
        [lines("Ann told Bo that she won.", "she", "Ann,Bo", "Cy", "")],
        ["file0 line 4", "found the answer 'Cy'", "one of ['Ann', 'Bo']"],
    ),
]


@pytest.mark.parametrize(
    ("task", "split", "files", "parts"),
    [case[1:] for case in REFUSED],
    ids=[case[0] for case in REFUSED],
)
def test_what_does_not_fit_is_refused_with_its_place(task, split, files, parts, tmp_path):
    with pytest.raises(TaskDataError) as caught:
        read(task, split, *files, folder=tmp_path)
    message = str(caught.value)
    for part in parts:
        assert part in message
    assert "allowed: " in message


@pytest.mark.parametrize("task", ["glue_cola", "squad", "cnn_dailymail", "super_glue_cb", "dpr"])
def test_a_missing_file_is_named_with_the_cure(task, tmp_path):
    path = tmp_path / "train.x"
    with pytest.raises(TaskDataError, match="train.x is missing; put the original file there"):
        list(task_named(task).read([path], "train", Counter()))


def test_a_folder_in_place_of_a_file_is_refused(tmp_path):
    with pytest.raises(TaskDataError, match="cannot be read .* it must be a file"):
        list(task_named("glue_cola").read([tmp_path], "train", Counter()))


def test_a_long_value_is_cut_in_the_message(tmp_path):
    with pytest.raises(TaskDataError) as caught:
        read("glue_cola", "train", "x" * 10_000 + "\n", folder=tmp_path)
    assert len(str(caught.value)) < 500


def test_only_a_line_feed_ends_a_row(tmp_path):
    """Text may hold other characters that Unicode counts as line ends."""
    text = "sentence\tlabel\nup\u2028down\x0bon\x85off\x1cend\t1\nlast\t0"
    actual = read("glue_sst2", "train", text, folder=tmp_path)
    assert [example.inputs for example in actual] == [
        "sst2 sentence: up\u2028down\x0bon\x85off\x1cend",
        "sst2 sentence: last",
    ]


def test_several_files_of_a_split_are_read_in_order(tmp_path):
    head = "sentence\tlabel"
    actual = read("glue_sst2", "train", lines(head, "a\t1"), lines(head, "b\t0"), folder=tmp_path)
    assert [(example.inputs[-1], example.idx) for example in actual] == [("a", 0), ("b", 1)]


def test_several_pairs_of_translation_files_are_read_in_order(tmp_path):
    actual = read("wmt_en_ro", "train", "a\n", "x\n", "b\n", "y\n", folder=tmp_path)
    assert [(example.inputs[-1], example.targets) for example in actual] == [("a", "x"), ("b", "y")]


def test_sgm_files_give_their_segments(tmp_path):
    for name, words in (("s.sgm", ("Hello .", "Two")), ("t.sgm", ("Salut .", "Doi"))):
        (tmp_path / name).write_text(
            '<srcset setid="x" srclang="any">\n<doc docid="1">\n'
            + "".join(f'<seg id="{n}">{word}</seg>\n' for n, word in enumerate(words))
            + "</doc>\n</srcset>\n"
        )
    rows = task_named("wmt_en_ro").read([tmp_path / "s.sgm", tmp_path / "t.sgm"], "test", Counter())
    assert [(row["source"], row["target"]) for row in rows] == [
        ("Hello .", "Salut ."),
        ("Two", "Doi"),
    ]


def test_a_broken_sgm_segment_is_refused(tmp_path):
    for name in ("s.sgm", "t.sgm"):
        (tmp_path / name).write_text('<seg id="1">half\n')
    files = [tmp_path / "s.sgm", tmp_path / "t.sgm"]
    with pytest.raises(TaskDataError, match=r"s.sgm line 1: found .*allowed: a complete <seg>"):
        list(task_named("wmt_en_ro").read(files, "test", Counter()))


def test_what_is_left_out_is_counted(tmp_path):
    left_out = Counter()
    path = tmp_path / "q.tsv"
    head = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"
    path.write_text(lines(head, "half a row", "1\t2\t3\ta\tb\t0"))
    assert len(list(task_named("glue_qqp").read([path], "train", left_out))) == 1
    pair = tmp_path / "p"
    pair.write_text(lines("a", ""))
    assert len(list(task_named("wmt_en_de").read([pair, pair], "train", left_out))) == 1
    wsc = tmp_path / "wsc"
    wsc.write_text(records(WSC, changed(WSC, label=False, idx=1)))
    assert len(list(task_named("super_glue_wsc").read([wsc], "train", left_out))) == 1
    assert left_out == {"short_row": 1, "empty_side": 1, "wrong_candidate": 1}


def test_an_article_longer_than_the_csv_modules_limit_is_read(tmp_path):
    before = csv.field_size_limit()
    text = lines("id,article,highlights", f"1,{'a' * 200_000},b")
    (example,) = read("cnn_dailymail", "train", text, folder=tmp_path)
    assert len(example.inputs) == 200_000 + len("summarize: ")
    assert csv.field_size_limit() == before


def test_blank_lines_after_the_last_dpr_block_are_no_block(tmp_path):
    text = lines("Ann told Bo that she won.", "she", "Ann,Bo", "Ann", "", "", "")
    assert len(read("dpr", "train", text, folder=tmp_path)) == 1
    without_the_last = text.rstrip("\n")
    assert len(read("dpr", "train", without_the_last, folder=tmp_path)) == 1


def test_the_lines_of_a_compressed_file_are_those_behind_it(tmp_path):
    whole = records({"header": {"dataset": "x"}}, *(mrqa(qid=str(n)) for n in range(4000)))
    path = tmp_path / "train.jsonl.gz"
    path.write_bytes(gzip.compress(whole.encode()))
    task = task_named("newsqa")
    assert len(list(task.read([path], "train", Counter()))) == 4000
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(TaskDataError, match=r"train.jsonl.gz cannot be read after line \d+ \("):
        list(task.read([path], "train", Counter()))
    path.write_text(whole)
    with pytest.raises(TaskDataError, match=r"after line 0 \(Not a gzipped file.*download"):
        list(task.read([path], "train", Counter()))


def test_the_places_of_an_answer_of_mrqa_are_in_the_order_of_the_text(tmp_path):
    places = [{"text": "C", "char_spans": [[5, 5], [0, 0]]}, {"text": "d", "char_spans": [[2, 3]]}]
    record = mrqa(detected_answers=places) | {"context": "C. d C"}
    (example,) = read("newsqa", "train", records(record), folder=tmp_path)
    padded = "C . d C"
    assert example.segments == ("Q ?", padded)
    assert [padded[first:stop] for first, stop in example.spans] == ["C", "d", "C"]
    assert (example.targets, example.answer) == ("C", ["C"])
