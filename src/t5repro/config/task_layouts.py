"""The original files of each task, in the layout of their download, by split.

Paths are below `tasks.folder`. To add a task, add its files here and its value in `tasks/`.
"""

from t5repro.config.sections.tasks import SplitName

SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")


def _glue(folder: str) -> dict[str, tuple[str, ...]]:
    return {
        "train": (f"glue/{folder}/train.tsv",),
        "validation": (f"glue/{folder}/dev.tsv",),
        "test": (f"glue/{folder}/test.tsv",),
    }


def _super_glue(folder: str) -> dict[str, tuple[str, ...]]:
    return {
        "train": (f"superglue/{folder}/train.jsonl",),
        "validation": (f"superglue/{folder}/val.jsonl",),
        "test": (f"superglue/{folder}/test.jsonl",),
    }


def _translation(target: str) -> dict[str, tuple[str, ...]]:
    return {
        split: (f"wmt/en-{target}/{split}.en", f"wmt/en-{target}/{split}.{target}")
        for split in SPLITS
    }


TASK_FILES: dict[str, dict[str, tuple[str, ...]]] = {
    "glue_cola": _glue("CoLA"),
    "glue_sst2": _glue("SST-2"),
    "glue_mrpc": {
        "train": ("glue/MRPC/msr_paraphrase_train.txt",),
        "validation": ("glue/MRPC/msr_paraphrase_test.txt",),
    },
    "glue_stsb": _glue("STS-B"),
    "glue_qqp": _glue("QQP"),
    "glue_mnli": {"train": ("glue/MNLI/train.tsv",)},
    "glue_mnli_matched": {
        "validation": ("glue/MNLI/dev_matched.tsv",),
        "test": ("glue/MNLI/test_matched.tsv",),
    },
    "glue_mnli_mismatched": {
        "validation": ("glue/MNLI/dev_mismatched.tsv",),
        "test": ("glue/MNLI/test_mismatched.tsv",),
    },
    "glue_qnli": _glue("QNLI"),
    "glue_rte": _glue("RTE"),
    "glue_wnli": {  # never trained on: its training rows mislead (paper appendix B)
        "validation": ("glue/WNLI/dev.tsv",),
        "test": ("glue/WNLI/test.tsv",),
    },
    "glue_ax": {"test": ("glue/AX/diagnostic-full.tsv",)},
    "super_glue_boolq": _super_glue("BoolQ"),
    "super_glue_cb": _super_glue("CB"),
    "super_glue_copa": _super_glue("COPA"),
    "super_glue_multirc": _super_glue("MultiRC"),
    "super_glue_record": _super_glue("ReCoRD"),
    "super_glue_rte": _super_glue("RTE"),
    "super_glue_wic": _super_glue("WiC"),
    "super_glue_wsc": _super_glue("WSC"),
    "super_glue_axb": {"test": ("superglue/AX-b/AX-b.jsonl",)},
    "super_glue_axg": {"test": ("superglue/AX-g/AX-g.jsonl",)},
    "dpr": {"train": ("dpr/train.c.txt",), "validation": ("dpr/test.c.txt",)},
    "squad": {"train": ("squad/train-v1.1.json",), "validation": ("squad/dev-v1.1.json",)},
    "cnn_dailymail": {split: (f"cnn_dailymail/{split}.csv",) for split in SPLITS},
    "wmt_en_de": _translation("de"),
    "wmt_en_fr": _translation("fr"),
    "wmt_en_ro": _translation("ro"),
}
