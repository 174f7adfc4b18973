"""The averages of GLUE and SuperGLUE in the paper's tables.

A benchmark's score is the mean over its tasks; a task with several scores enters with their mean.
WNLI, the diagnostic sets and DPR do not enter.
"""

from collections.abc import Mapping

Column = tuple[str, str]  # task, score

BENCHMARKS: dict[str, tuple[tuple[Column, ...], ...]] = {
    "glue": (
        (("glue_cola", "matthews_corrcoef"),),
        (("glue_sst2", "accuracy"),),
        (("glue_mrpc", "f1"), ("glue_mrpc", "accuracy")),
        (("glue_stsb", "pearson_corrcoef"), ("glue_stsb", "spearman_corrcoef")),
        (("glue_qqp", "f1"), ("glue_qqp", "accuracy")),
        (("glue_mnli_matched", "accuracy"), ("glue_mnli_mismatched", "accuracy")),
        (("glue_qnli", "accuracy"),),
        (("glue_rte", "accuracy"),),
    ),
    "super_glue": (
        (("super_glue_boolq", "accuracy"),),
        (("super_glue_cb", "mean_3class_f1"), ("super_glue_cb", "accuracy")),
        (("super_glue_copa", "accuracy"),),
        (("super_glue_multirc", "f1"), ("super_glue_multirc", "exact_match")),
        (("super_glue_record", "f1"), ("super_glue_record", "em")),
        (("super_glue_rte", "accuracy"),),
        (("super_glue_wic", "accuracy"),),
        (("super_glue_wsc", "accuracy"),),
    ),
}


def benchmark_averages(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float | None]:
    """Return the average of each benchmark; None if one of its scores is missing.

    Args:
        scores: task -> score -> percentage.

    Source: released code, `compute_avg_glue`.
    """
    return {name: _average(groups, scores) for name, groups in BENCHMARKS.items()}


def _average(
    groups: tuple[tuple[Column, ...], ...], scores: Mapping[str, Mapping[str, float]]
) -> float | None:
    means: list[float] = []
    for group in groups:
        values = [scores.get(task, {}).get(column) for task, column in group]
        present = [value for value in values if value is not None]
        if len(present) < len(group):
            return None
        means.append(sum(present) / len(present))
    return sum(means) / len(means)
