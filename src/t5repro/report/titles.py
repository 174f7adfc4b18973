"""Titles of tasks and metrics, and the format of numbers, the same on page and terminal."""

AVERAGE = "average"
UNDEFINED = "–"
BENCHMARKS = {"glue": "GLUE", "super_glue": "SuperGLUE"}

TASK_TITLES = {
    "glue_cola": "CoLA",
    "glue_sst2": "SST-2",
    "glue_mrpc": "MRPC",
    "glue_stsb": "STS-B",
    "glue_qqp": "QQP",
    "glue_mnli": "MNLI",
    "glue_mnli_matched": "MNLI matched",
    "glue_mnli_mismatched": "MNLI mismatched",
    "glue_qnli": "QNLI",
    "glue_rte": "RTE",
    "glue_wnli": "WNLI",
    "glue_ax": "AX",
    "super_glue_boolq": "BoolQ",
    "super_glue_cb": "CB",
    "super_glue_copa": "COPA",
    "super_glue_multirc": "MultiRC",
    "super_glue_record": "ReCoRD",
    "super_glue_rte": "RTE",
    "super_glue_wic": "WiC",
    "super_glue_wsc": "WSC",
    "super_glue_axb": "AX-b",
    "super_glue_axg": "AX-g",
    "dpr": "DPR",
    "squad": "SQuAD",
    "cnn_dailymail": "CNN/Daily Mail",
    "wmt_en_de": "English → German",
    "wmt_en_fr": "English → French",
    "wmt_en_ro": "English → Romanian",
}

METRIC_TITLES = {
    "accuracy": "accuracy",
    "matthews_corrcoef": "Matthews",
    "f1": "F1",
    "mean_3class_f1": "mean F1",
    "pearson_corrcoef": "Pearson",
    "spearman_corrcoef": "Spearman",
    "em": "exact match",
    "exact_match": "exact match",
    "bleu": "BLEU",
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeLsum": "ROUGE-L",
    AVERAGE: "average",
}

GROUPS = (  # prefix of a task's name -> its heading
    ("glue_", "GLUE"),
    ("super_glue_", "SuperGLUE"),
    ("squad", "Question answering"),
    ("cnn_dailymail", "Summarisation"),
    ("wmt_", "Translation"),
)
OTHER_GROUP = "Other tasks"
AVERAGES_GROUP = "Benchmark averages"


def task_title(task: str) -> str:
    """Return the title of a task or a benchmark."""
    return (TASK_TITLES | BENCHMARKS).get(task, task)


def metric_title(metric: str) -> str:
    """Return the title of a metric."""
    return METRIC_TITLES.get(metric, metric)


def task_group(task: str) -> str:
    """Return the heading of a task."""
    return next((title for prefix, title in GROUPS if task.startswith(prefix)), OTHER_GROUP)


def format_score(value: float | None) -> str:
    """Return a score with two decimals, or a dash if it is undefined."""
    return UNDEFINED if value is None else f"{value:.2f}".replace("-", "−")


def format_sd(value: float | None) -> str:
    """Return a standard deviation as the suffix of a mean; empty if there is none."""
    return "" if value is None else f" ±{value:.2f}"


def format_difference(value: float) -> str:
    """Return a difference with its sign and two decimals."""
    text = f"{value:+.2f}".replace("-", "−")
    return "±0.00" if text[1:] == "0.00" else text  # neither +0.00 nor −0.00
