"""Groups of tasks by name, which fine-tuning and prediction look up.

They are not columns of the table of tasks and do not reach it, so a new row reruns neither; most
new tasks are in no group.
"""

# Tasks on the similarity of two texts, which have no order (Radford et al., 2018, section 3.3).
SIMILARITY_TASKS = frozenset({"glue_mrpc", "glue_stsb", "glue_qqp"})

# The ones that ELECTRA trains on in both orders (`double_unordered` of its code).
DOUBLED_TASKS = ("glue_mrpc", "glue_stsb")

# Tasks without training rows -> tasks with the same labels. The first one that a network was
# fine-tuned on answers them.
ANSWERED_AS: dict[str, tuple[str, ...]] = {
    "glue_mnli_matched": ("glue_mnli",),
    "glue_mnli_mismatched": ("glue_mnli",),
    "glue_ax": ("glue_mnli",),
    "super_glue_axb": ("super_glue_rte", "glue_rte"),
    "super_glue_axg": ("super_glue_rte", "glue_rte"),
    "race_middle": ("race",),
    "race_high": ("race",),
}

# The groups of the released mixtures, and the training rows that the released code counts; of WSC
# only those with a correct candidate, and None where it counts those of the files. A new task is in
# no released mixture. Source: released code, `t5.data.mixtures` and `t5.data.glue_utils`.
RELEASED_GROUPS: dict[str, dict[str, int | None]] = {
    "glue": {
        "glue_cola": 8_551,
        "glue_sst2": 67_349,
        "glue_mrpc": 3_668,
        "glue_qqp": 363_849,
        "glue_stsb": 5_749,
        "glue_mnli": 392_702,
        "glue_qnli": 104_743,
        "glue_rte": 2_490,
    },
    "super_glue": {
        "dpr": 1_322,
        "super_glue_wsc": 259,
        "super_glue_boolq": 9_427,
        "super_glue_cb": 250,
        "super_glue_copa": 400,
        "super_glue_multirc": 27_243,
        "super_glue_record": 138_854,
        "super_glue_rte": 2_490,
        "super_glue_wic": 5_428,
    },
    "cnn_dailymail": {"cnn_dailymail": None},
    "squad": {"squad": None},
    "wmt_en_de": {"wmt_en_de": None},
    "wmt_en_fr": {"wmt_en_fr": None},
    "wmt_en_ro": {"wmt_en_ro": None},
}

# The tasks of a run that names none.
DEFAULT_TASKS = (
    *("glue_cola", "glue_sst2", "glue_mrpc", "glue_stsb", "glue_rte"),
    *("super_glue_boolq", "super_glue_copa", "squad", "cnn_dailymail"),
    *("wmt_en_de", "wmt_en_fr", "wmt_en_ro"),
)
