"""The state of each published row: its experiment, and how it differs from the paper's.

`t5repro paper rows` prints the list; `docs/paper_rows.md` shows the rows of T5's paper and
`docs/system_rows.md` the rows of the other systems. To add a row of T5, add it to `ARMS`, and to
`DIFFERENCES` if it is not the paper's configuration. A row of a system says in
`published/system_tables.json` which configuration reproduces it, or why none can.

Source: Raffel et al., arXiv 1910.10683, tables 1 to 16.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from t5repro.config.system_rows import settings_of_configuration
from t5repro.published.tables import system_tables_content
from t5repro.report.published_scores import TASK_BY_TASK
from t5repro.report.titles import AVERAGE
from t5repro.task_table import BENCHMARK_TITLES, BY_NAME

PAIR_TASKS = ("next_sentence", "sentence_order")
# Columns that pre-training fills, on held-out text.
MEASURED_IN_PRETRAINING = ("masked_pieces", *PAIR_TASKS)
EXACT = "exact"
IMPOSSIBLE = "cannot be had: "
FINAL_MODELS = "final_models.yaml: "  # arms of this run file; others are of paper_rows.yaml
BASELINE = "baseline"
REPETITIONS = "baseline, again_2 to again_10"

# Table -> row -> arms that reproduce it; empty if none can.
ARMS: Mapping[int, Mapping[str, str]] = {
    1: {
        "Baseline average": REPETITIONS,
        "Baseline standard deviation": REPETITIONS,
        "No pre-training": "no_pretraining",
    },
    2: {
        "Encoder-decoder, denoising": BASELINE,
        "Enc-dec shared, denoising": "shared",
        "Enc-dec 6 layers, denoising": "six_layers",
        "Language model, denoising": "language_model",
        "Prefix LM, denoising": "prefix_lm",
        "Encoder-decoder, LM": "encoder_decoder_lm",
        "Enc-dec shared, LM": "shared_lm",
        "Enc-dec 6 layers, LM": "six_layers_lm",
        "Language model, LM": "language_model_lm",
        "Prefix LM, LM": "prefix_lm_lm",
    },
    4: {
        "Prefix language modeling": "prefix_language_modeling",
        "BERT-style": "bert_style",
        "Deshuffling": "deshuffling",
    },
    5: {
        "BERT-style": "bert_style",
        "MASS-style": "mass_style",
        "Replace corrupted spans": BASELINE,
        "Drop corrupted tokens": "drop_tokens",
    },
    6: {"10%": "rate_10", "15%": BASELINE, "25%": "rate_25", "50%": "rate_50"},
    7: {
        "Baseline (i.i.d.)": BASELINE,
        "2": "span_2",
        "3": "span_3",
        "5": "span_5",
        "10": "span_10",
    },
    8: {
        "C4 (745GB)": BASELINE,
        "C4, unfiltered (6.1TB)": "c4_unfiltered",
        "RealNews-like (35GB)": "realnews_like",
        "WebText-like (17GB)": "webtext_like",
        "Wikipedia (16GB)": "wikipedia",
        "Wikipedia + TBC (20GB)": "wikipedia_books",
    },
    9: {
        "Full data set": BASELINE,
        "2^29 (64 repeats)": "repeat_29",
        "2^27 (256)": "repeat_27",
        "2^25 (1,024)": "repeat_25",
        "2^23 (4,096)": "repeat_23",
    },
    10: {
        "All parameters": BASELINE,
        "Adapter d=32": "adapters_32",
        "Adapter d=128": "adapters_128",
        "Adapter d=512": "adapters_512",
        "Adapter d=2048": "adapters_2048",
        "Gradual unfreezing": "gradual_unfreezing",
    },
    11: {
        "Baseline (pre-train/fine-tune)": BASELINE,
        "Equal": "multi_equal",
        "Proportional K=2^16": "multi_k16",
        "K=2^17": "multi_k17",
        "K=2^18": "multi_k18",
        "K=2^19": "multi_k19",
        "K=2^20": "multi_k20",
        "K=2^21": "multi_k21",
        "Temperature T=2": "multi_t2",
        "T=4": "multi_t4",
        "T=8": "multi_t8",
    },
    12: {
        "Unsupervised pre-training + fine-tuning": BASELINE,
        "Multi-task training": "multi_k19",
        "Multi-task pre-training + fine-tuning": "multi_pretrained, multi_then",
        "Leave-one-out multi-task training": "without_…, leave_one_out",
        "Supervised multi-task pre-training": "supervised, supervised_then",
    },
    13: {
        "Baseline": BASELINE,
        "1x size, 4x steps": "steps_4x",
        "1x size, 4x batch": "batch_4x",
        "2x size, 2x steps": "size_2x_steps_2x",
        "4x size, 1x steps": "size_4x",
        "4x ensembled": "ensemble",
        "4x ensembled, fine-tune only": "ensemble_finetune_only",
    },
    14: {
        "Previous best": "",
        "T5-Small": f"{FINAL_MODELS}t5_small, t5_small_tasks",
        "T5-Base": f"{FINAL_MODELS}t5_base, t5_base_tasks",
        "T5-Large": f"{FINAL_MODELS}t5_large, t5_large_tasks",
        "T5-3B": f"{FINAL_MODELS}t5_3b, t5_3b_tasks",
        "T5-11B": f"{FINAL_MODELS}t5_11b, t5_11b_tasks",
    },
    15: {
        "Baseline": BASELINE,
        "Baseline-1T": "baseline_1t",
        "T5-Base": f"{FINAL_MODELS}t5_base, t5_base_tasks",
    },
    16: {
        "Baseline average": REPETITIONS,
        "Baseline standard deviation": REPETITIONS,
        "No pre-training": "no_pretraining",
    },
}
_PREFIX_LM = (
    "tables 2 and 4 print 79.56 and 80.69 for GLUE of what is one configuration as far as known"
)
_OF_2023 = "the dump of November 2023 for that of 2019, which is no longer distributed"

# (table, row) -> state, if it is not `EXACT` alone.
DIFFERENCES: Mapping[tuple[int, str], str] = {
    (2, "Encoder-decoder, LM"): f"{EXACT}; {_PREFIX_LM}",
    (4, "Prefix language modeling"): f"{EXACT}; {_PREFIX_LM}",
    (8, "Wikipedia (16GB)"): f"stand-in: {_OF_2023}",
    (8, "Wikipedia + TBC (20GB)"): (
        f"stand-in: {_OF_2023}; BookCorpusOpen for the Toronto Books Corpus, which cannot be had"
    ),
    (14, "Previous best"): "cannot be had: published scores of other models",
}
OTHERS_OF_TASK_BY_TASK = (
    "cannot be had: no source was found from which every printed number could be read; ours, of "
    "every task, are in scores.csv"
)


@dataclass(frozen=True)
class RowState:
    """The state of one printed row.

    Attributes:
        table: number of the table of T5's paper, or paper and table of a system before T5.
        row: its name there.
        arm: experiments that reproduce it, of `configs/paper_rows.yaml` or another run file; of a
            system's row one of `configs/system_rows.yaml`.
        state: ``exact``, ``stand-in: what`` or ``cannot be had: why``, with a remark after a
            semicolon. It covers the settings: pre-training, groups of fine-tuning, changes of
            the row.
    """

    table: int | str
    row: str
    arm: str
    state: str


def row_states() -> Iterator[RowState]:
    """Yield the state of each row of T5's paper, in the order of the tables."""
    for table, rows in ARMS.items():
        for row, arm in rows.items():
            yield RowState(table, row, arm, DIFFERENCES.get((table, row), EXACT))
    yield RowState(TASK_BY_TASK, "each other row", "", OTHERS_OF_TASK_BY_TASK)


def system_row_states() -> Iterator[RowState]:
    """Yield the state of each row of the systems before T5, in the order of the tables."""
    for table in system_tables_content()["tables"]:
        for row in table["rows"]:
            state = system_state(table, row)
            arm = "" if state.startswith(IMPOSSIBLE) else row["configuration"]
            yield RowState(table["id"], row["name"], arm, state)


def system_state(table: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return the state of a row of `system_tables.json`.

    Args:
        table: its table.
        row: the row.
    """
    content = system_tables_content()
    if "cannot" in row:
        return f"{IMPOSSIBLE}{content['reasons'][row['cannot']]}"
    tasks = list(dict.fromkeys(column.partition(".")[0] for column in table["columns"]))
    if AVERAGE in tasks:  # of the columns of the table
        tasks.remove(AVERAGE)
    known = {*BY_NAME, *BENCHMARK_TITLES, *MEASURED_IN_PRETRAINING}
    missing = [task for task in tasks if task not in known]
    titles = ", ".join(content["titles"][task] for task in missing)
    if missing and missing == tasks:
        return f"{IMPOSSIBLE}columns not implemented: {titles}"
    stand_ins = content["configurations"][row["configuration"]]["stand_in"]
    texts = [content["stand_ins"][key] for key in stand_ins]
    state = f"stand-in: {', '.join(texts)}" if texts else EXACT
    if missing:
        state += f"; columns not implemented: {titles}"
    if pair_tasks := [task for task in tasks if task in PAIR_TASKS]:
        trained = settings_of_configuration(row["configuration"]).get(
            "pretrain.masked_lm.pair_task"
        )
        titles = ", ".join(content["titles"][task] for task in pair_tasks if task != trained)
        state += f"; columns of a task on pairs that it is not trained on: {titles}"
    return state


def row_states_text(states: Iterable[RowState]) -> str:
    """Return states as a table of Markdown."""
    lines = ["| table | row | experiments | state |", "|---|---|---|---|"]
    lines += [f"| {state.table} | {state.row} | {state.arm} | {state.state} |" for state in states]
    return "\n".join(lines)
