"""The table of tasks: one row per downstream task of the paper (section 2.4), and of some others.

A row describes a task. The functions that read its files, write its texts and read its answers are
in `tasks/`, with the words of its labels and the metrics that compute its scores. Validation of
settings, raw files, mixtures, estimates, report and leaderboards read the table; a task of a run
file is a row too (`config.known_tasks`).

To add a task: a row here, in `TASKS`, and its functions in a module of `tasks/`.

Fine-tuning and prediction do not reach this module: a new row would rerun all of them. What they
look up by name is in `task_groups`.
"""

from dataclasses import replace
from functools import partial

from t5repro.task_facts import SPLITS, Files, SplitName, Submission, TaskFacts

BENCHMARK_TITLES = {"glue": "GLUE", "super_glue": "SuperGLUE"}
BINARY = (0, 1)  # a leaderboard's labels

_glue = partial(TaskFacts, heading=BENCHMARK_TITLES["glue"], benchmark="glue")
_super_glue = partial(TaskFacts, heading=BENCHMARK_TITLES["super_glue"], benchmark="super_glue")
_translation = partial(TaskFacts, heading="Translation", answer="text")


def _tsv(folder: str) -> Files:
    return {
        "train": (f"glue/{folder}/train.tsv",),
        "validation": (f"glue/{folder}/dev.tsv",),
        "test": (f"glue/{folder}/test.tsv",),
    }


def _jsonl(folder: str) -> Files:
    return {
        "train": (f"superglue/{folder}/train.jsonl",),
        "validation": (f"superglue/{folder}/val.jsonl",),
        "test": (f"superglue/{folder}/test.jsonl",),
    }


def _pairs(code: str) -> Files:
    return {
        split: (f"wmt/en-{code}/{split}.en", f"wmt/en-{code}/{split}.{code}") for split in SPLITS
    }


def _choice(name: str, title: str, options: int, rows: int, **files: str) -> TaskFacts:
    paths: Files = {split: (f"{name}/{files[split]}",) for split in SPLITS if split in files}
    return TaskFacts(name, title, paths, "Multiple choice", "choice", options, rows)


def _race(name: str, title: str, rows: int, *splits: SplitName) -> TaskFacts:
    # One archive of 28,000 articles is a raw file, whose members the task reads.
    task = _choice(name, title, 4, rows)
    return replace(task, files=dict.fromkeys(splits, ("race/RACE.tar.gz",)))


def _inference(name: str, title: str, rows: int, file: str) -> TaskFacts:
    names = zip(SPLITS, ("train", "dev", "test"), strict=True)
    files: Files = {split: (f"{name}/{file.format(part)}",) for split, part in names}
    return TaskFacts(name, title, files, "Inference", validation_rows=rows)


def _mrqa(name: str, title: str, file: str, rows: int) -> TaskFacts:
    files: Files = {
        "train": (f"mrqa/train/{file}.jsonl.gz",),
        "validation": (f"mrqa/dev/{file}.jsonl.gz",),
    }
    heading = "Question answering (MRQA)"
    return TaskFacts(name, title, heading=heading, files=files, answer="span", validation_rows=rows)


GLUE_COLA = _glue(
    "glue_cola",
    "CoLA",
    files=_tsv("CoLA"),
    validation_rows=1_043,
    scores=("matthews_corrcoef",),
    submission=Submission("CoLA.tsv", 1_063, BINARY),
)
GLUE_SST2 = _glue(
    "glue_sst2",
    "SST-2",
    files=_tsv("SST-2"),
    validation_rows=872,
    scores=("accuracy",),
    submission=Submission("SST-2.tsv", 1_821, BINARY),
)
GLUE_MRPC = _glue(
    "glue_mrpc",
    "MRPC",
    files={
        "train": ("glue/MRPC/msr_paraphrase_train.txt",),
        "validation": ("glue/MRPC/msr_paraphrase_test.txt",),
    },
    validation_rows=1_725,  # the test file of the original corpus, which has labels
    scores=("f1", "accuracy"),
    submission=Submission("MRPC.tsv", 1_725, BINARY),
)
GLUE_STSB = _glue(
    "glue_stsb",
    "STS-B",
    files=_tsv("STS-B"),
    answer="number",
    validation_rows=1_500,
    scores=("pearson_corrcoef", "spearman_corrcoef"),
    submission=Submission("STS-B.tsv", 1_379),
    bounds=(0.0, 5.0),
)
GLUE_QQP = _glue(
    "glue_qqp",
    "QQP",
    files=_tsv("QQP"),
    validation_rows=40_430,
    scores=("f1", "accuracy"),
    submission=Submission("QQP.tsv", 390_965, BINARY),
)
GLUE_MNLI = _glue(
    "glue_mnli", "MNLI", files={"train": ("glue/MNLI/train.tsv",)}, validation_rows=9_815
)
GLUE_MNLI_MATCHED = _glue(
    "glue_mnli_matched",
    "MNLI matched",
    files={"validation": ("glue/MNLI/dev_matched.tsv",), "test": ("glue/MNLI/test_matched.tsv",)},
    validation_rows=9_815,
    scores=("accuracy",),
    submission=Submission("MNLI-m.tsv", 9_796),
)
GLUE_MNLI_MISMATCHED = _glue(
    "glue_mnli_mismatched",
    "MNLI mismatched",
    files={
        "validation": ("glue/MNLI/dev_mismatched.tsv",),
        "test": ("glue/MNLI/test_mismatched.tsv",),
    },
    validation_rows=9_832,
    scores=("accuracy",),
    submission=Submission("MNLI-mm.tsv", 9_847),
)
GLUE_QNLI = _glue(
    "glue_qnli",
    "QNLI",
    files=_tsv("QNLI"),
    validation_rows=5_463,
    scores=("accuracy",),
    submission=Submission("QNLI.tsv", 5_463),
)
GLUE_RTE = _glue(
    "glue_rte",
    "RTE",
    files=_tsv("RTE"),
    validation_rows=277,
    scores=("accuracy",),
    submission=Submission("RTE.tsv", 3_000),
)
GLUE_WNLI = _glue(
    "glue_wnli",
    "WNLI",
    # Never trained on: its training rows mislead (paper appendix B).
    files={"validation": ("glue/WNLI/dev.tsv",), "test": ("glue/WNLI/test.tsv",)},
    answer="text",
    validation_rows=71,
    submission=Submission("WNLI.tsv", 146, BINARY, majority=0),
)
GLUE_AX = _glue(
    "glue_ax",
    "AX",
    files={"test": ("glue/AX/diagnostic-full.tsv",)},
    submission=Submission("AX.tsv", 1_104),
)
SUPER_GLUE_BOOLQ = _super_glue(
    "super_glue_boolq",
    "BoolQ",
    files=_jsonl("BoolQ"),
    validation_rows=3_270,
    scores=("accuracy",),
    submission=Submission("BoolQ.jsonl", 3_245, ("false", "true")),
)
SUPER_GLUE_CB = _super_glue(
    "super_glue_cb",
    "CB",
    files=_jsonl("CB"),
    validation_rows=56,
    scores=("mean_3class_f1", "accuracy"),
    submission=Submission("CB.jsonl", 250),
)
SUPER_GLUE_COPA = _super_glue(
    "super_glue_copa",
    "COPA",
    files=_jsonl("COPA"),
    answer="choice",
    options=2,
    validation_rows=100,
    scores=("accuracy",),
    submission=Submission("COPA.jsonl", 500, BINARY),
)
SUPER_GLUE_MULTIRC = _super_glue(
    "super_glue_multirc",
    "MultiRC",
    files=_jsonl("MultiRC"),
    validation_rows=4_848,
    scores=("f1", "exact_match"),
    submission=Submission("MultiRC.jsonl", 9_693, BINARY),
)
SUPER_GLUE_RECORD = _super_glue(
    "super_glue_record",
    "ReCoRD",
    files=_jsonl("ReCoRD"),
    answer="text",
    validation_rows=10_000,
    scores=("f1", "em"),
    submission=Submission("ReCoRD.jsonl", 10_000),
)
SUPER_GLUE_RTE = _super_glue(
    "super_glue_rte",
    "RTE",
    files=_jsonl("RTE"),
    validation_rows=277,
    scores=("accuracy",),
    submission=Submission("RTE.jsonl", 3_000),
)
SUPER_GLUE_WIC = _super_glue(
    "super_glue_wic",
    "WiC",
    files=_jsonl("WiC"),
    validation_rows=638,
    scores=("accuracy",),
    submission=Submission("WiC.jsonl", 1_400, ("false", "true")),
)
SUPER_GLUE_WSC = _super_glue(
    "super_glue_wsc",
    "WSC",
    files=_jsonl("WSC"),
    answer="text",
    validation_rows=104,
    scores=("accuracy",),
    submission=Submission("WSC.jsonl", 146, ("False", "True")),
)
SUPER_GLUE_AXB = _super_glue(
    "super_glue_axb",
    "AX-b",
    files={"test": ("superglue/AX-b/AX-b.jsonl",)},
    submission=Submission("AX-b.jsonl", 1_104),
)
SUPER_GLUE_AXG = _super_glue(
    "super_glue_axg",
    "AX-g",
    files={"test": ("superglue/AX-g/AX-g.jsonl",)},
    submission=Submission("AX-g.jsonl", 356),
)
DPR = TaskFacts(
    "dpr",
    "DPR",
    files={"train": ("dpr/train.c.txt",), "validation": ("dpr/test.c.txt",)},
    answer="text",
)
# Tasks of other papers than T5's, with the numbers of rows that they state.
RACE = _race("race", "RACE", 4_887, *SPLITS)
RACE_MIDDLE = _race("race_middle", "RACE middle", 1_436, "validation", "test")
RACE_HIGH = _race("race_high", "RACE high", 3_451, "validation", "test")
SWAG = _choice("swag", "SWAG", 4, 20_006, train="train.csv", validation="val.csv", test="test.csv")
# The stories of its training set have no endings to choose from: networks of labels are trained on
# those of its validation set of 2016, and scored on those of its test set (Radford et al., 2018).
STORY_CLOZE = _choice(
    "story_cloze", "Story Cloze", 2, 1_871, train="val.csv", validation="test.csv"
)
SNLI = _inference("snli", "SNLI", 9_842, "snli_1.0/snli_1.0_{}.jsonl")
SCITAIL = _inference("scitail", "SciTail", 1_304, "snli_format/scitail_1.0_{}.txt")
SQUAD = TaskFacts(
    "squad",
    "SQuAD",
    heading="Question answering",
    files={"train": ("squad/train-v1.1.json",), "validation": ("squad/dev-v1.1.json",)},
    answer="span",
    validation_rows=10_570,
)
SQUAD_2 = TaskFacts(
    "squad_2",
    "SQuAD 2.0",
    heading=SQUAD.heading,
    files={"train": ("squad/train-v2.0.json",), "validation": ("squad/dev-v2.0.json",)},
    answer="span",
    validation_rows=11_873,  # 5,928 with an answer; 130,319 rows of training, 86,821 with one
)
# Rows of training: 74,160, 61,688, 117,384, 72,928 and 104,071 (README of the shared task).
NEWSQA = _mrqa("newsqa", "NewsQA", "NewsQA", 4_212)
TRIVIAQA = _mrqa("triviaqa", "TriviaQA", "TriviaQA-web", 7_785)
SEARCHQA = _mrqa("searchqa", "SearchQA", "SearchQA", 16_980)
HOTPOTQA = _mrqa("hotpotqa", "HotpotQA", "HotpotQA", 5_901)  # of the file; its README has 5,904
NATURALQUESTIONS = _mrqa("naturalquestions", "Natural Questions", "NaturalQuestionsShort", 12_836)
CONLL_2003 = TaskFacts(
    "conll_2003",
    "CoNLL-2003",
    heading="Named entities",
    files={
        "train": ("conll2003/eng.train",),
        "validation": ("conll2003/eng.testa",),
        "test": ("conll2003/eng.testb",),
    },
    answer="tags",
    validation_rows=3_250,  # sentences; 14,041 of training and 3,453 of the test set
)
CNN_DAILYMAIL = TaskFacts(
    "cnn_dailymail",
    "CNN/Daily Mail",
    heading="Summarisation",
    files={split: (f"cnn_dailymail/{split}.csv",) for split in SPLITS},
    answer="text",
    validation_rows=13_368,
)
WMT_EN_DE = _translation("wmt_en_de", "English → German", files=_pairs("de"), validation_rows=3_000)
WMT_EN_FR = _translation("wmt_en_fr", "English → French", files=_pairs("fr"), validation_rows=3_000)
WMT_EN_RO = _translation(
    "wmt_en_ro", "English → Romanian", files=_pairs("ro"), validation_rows=1_999
)

# Lists, leaderboards and averages have this order.
TASKS: tuple[TaskFacts, ...] = (
    GLUE_COLA,
    GLUE_SST2,
    GLUE_MRPC,
    GLUE_STSB,
    GLUE_QQP,
    GLUE_MNLI,
    GLUE_MNLI_MATCHED,
    GLUE_MNLI_MISMATCHED,
    GLUE_QNLI,
    GLUE_RTE,
    GLUE_WNLI,
    GLUE_AX,
    SUPER_GLUE_BOOLQ,
    SUPER_GLUE_CB,
    SUPER_GLUE_COPA,
    SUPER_GLUE_MULTIRC,
    SUPER_GLUE_RECORD,
    SUPER_GLUE_RTE,
    SUPER_GLUE_WIC,
    SUPER_GLUE_WSC,
    SUPER_GLUE_AXB,
    SUPER_GLUE_AXG,
    DPR,
    RACE,
    RACE_MIDDLE,
    RACE_HIGH,
    SWAG,
    STORY_CLOZE,
    SNLI,
    SCITAIL,
    SQUAD,
    SQUAD_2,
    NEWSQA,
    TRIVIAQA,
    SEARCHQA,
    HOTPOTQA,
    NATURALQUESTIONS,
    CONLL_2003,
    CNN_DAILYMAIL,
    WMT_EN_DE,
    WMT_EN_FR,
    WMT_EN_RO,
)
BY_NAME: dict[str, TaskFacts] = {task.name: task for task in TASKS}

# The rows of Winograd schemas with `tasks.text.winograd: labels`, which trains on WNLI.
WINOGRAD_LABELS: dict[str, TaskFacts] = {
    "glue_wnli": replace(GLUE_WNLI, answer="label", files=_tsv("WNLI")),
    "super_glue_wsc": replace(SUPER_GLUE_WSC, answer="label"),
}


def facts_of(name: str) -> TaskFacts:
    """Return the row of a task; of a task of a run file, one with its name and no other fact."""
    return BY_NAME.get(name) or TaskFacts(name, title=name)
