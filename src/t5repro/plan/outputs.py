"""The files that each rule writes, by role: names below the folder of the node."""

from collections.abc import Callable

from t5repro.artifacts import (
    ANSWERS,
    CONTAMINATION_PAGE,
    CORPUS_PAGE,
    HISTORY,
    LINEAGE_PAGE,
    MANIFEST,
    METRICS,
    OPTIMIZER,
    PIECES,
    REPORT,
    ROWS_IN_CORPUS,
    SAMPLE,
    SCORE_TABLE,
    SCORES,
    VOCABULARY,
    WEIGHTS,
    step_folder,
)
from t5repro.config.schema import Settings
from t5repro.config.sections.c4 import PUNKT_FILES, corpus_files, languages_to_train
from t5repro.config.sections.corpus import row_files
from t5repro.plan.nodes import Key, RunNodes

Names = dict[str, list[str]]  # role -> names
EARLIER = "earlier"  # role of weights and predictions of steps before the last one


def names_by_role(nodes: RunNodes, key: Key) -> Names:
    """Return role -> names of the files that a node writes; the manifest is the last one.

    Raises:
        SettingsError: the experiments divide their cleaned files differently.
    """
    if key.rule == "c4_clean":
        return _jobs_of_cleaning(nodes, key)
    return {**_WRITTEN[key.rule](nodes, key), "manifest": [MANIFEST]}


def names_of(nodes: RunNodes, key: Key) -> list[str]:
    """Return the names of the files that a node writes, without manifests."""
    roles = names_by_role(nodes, key)
    return [name for role, names in roles.items() if role != "manifest" for name in names]


def names_of_shard(nodes: RunNodes, shard: str) -> Names:
    """Return role -> names of the files of one cleaning job, or their patterns."""
    suffixes = _part_suffixes(nodes)
    return {
        "pages": [f"{shard}{suffix}.parquet" for suffix in suffixes],
        "manifest": [f"{shard}.{MANIFEST}"],
    }


def shards_of(settings: Settings) -> list[str]:
    """Return the numbers of the cleaning jobs, as in the names of their files."""
    return [f"{shard:05d}" for shard in range(settings.c4.clean_shards)]


def last_predictions(nodes: RunNodes, finetuning: str) -> list[str]:
    """Return the names of the predictions of a fine-tuning with its last weights."""
    settings = nodes.settings_at(Key("evaluate_predict", finetuning))
    split = settings.evaluate.split
    return [f"{task}.jsonl" for task in settings.tasks.names if split in nodes.raw.splits(task)]


def evaluated_folders(settings: Settings) -> list[str]:
    """Return the folders of the weights that predict: the last ones, and kept ones if evaluated."""
    if settings.evaluate.checkpoints == "last":
        return [""]
    steps = sorted(settings.finetune.kept_steps)[:-1]
    return ["", *(f"{step_folder(step)}/" for step in steps)]


def _jobs_of_cleaning(nodes: RunNodes, key: Key) -> Names:
    names: Names = {"pages": [], "manifest": []}
    for shard in shards_of(nodes.settings_at(key)):
        for role, files in names_of_shard(nodes, shard).items():
            names[role] += files
    return names


def _part_suffixes(nodes: RunNodes) -> list[str]:
    """Return what follows the number of a cleaning job in the names of its files."""
    count = nodes.clean_parts
    return [f"-{number:03d}" for number in range(count)] if count > 1 else [""]


def _punkt(nodes: RunNodes, key: Key) -> Names:
    languages = languages_to_train(nodes.settings_at(key).c4)
    return {"files": [f"{language}/{name}" for language in languages for name in PUNKT_FILES]}


def _rows(nodes: RunNodes, key: Key) -> Names:
    return {"files": row_files(nodes.settings_at(key).corpus)}


def _removals(nodes: RunNodes, key: Key) -> Names:
    """Return the files of `c4_dedup`: one for each file of cleaned pages or rows."""
    (rows,) = (read for rule in ("c4_clean", "corpus") for read in nodes.reads(key, rule))
    return {"files": names_of(nodes, rows)}


def _corpus(nodes: RunNodes, key: Key) -> Names:
    return {"files": corpus_files(nodes.settings_at(key).c4)}


def _training(nodes: RunNodes, key: Key) -> Names:
    steps = getattr(nodes.settings_at(key), key.rule).kept_steps
    kept_weights = [f"{step_folder(step)}/{WEIGHTS}" for step in steps]
    return {"files": [WEIGHTS, OPTIMIZER], EARLIER: kept_weights, "history": [HISTORY]}


def _examples(nodes: RunNodes, key: Key) -> Names:
    return {"examples": [f"{split}.jsonl" for split in nodes.raw.splits(key.node)]}


def _predictions(nodes: RunNodes, key: Key) -> Names:
    names = last_predictions(nodes, key.node)
    folders = evaluated_folders(nodes.settings_at(key))[1:]
    return {"files": names, EARLIER: [f"{folder}{name}" for folder in folders for name in names]}


def _report(nodes: RunNodes, key: Key) -> Names:
    return {
        "html": [REPORT],
        "trace": [LINEAGE_PAGE],
        "corpus_page": [CORPUS_PAGE],
        "contamination_page": [CONTAMINATION_PAGE] if nodes.required("contamination") else [],
        "answers": [f"{ANSWERS}/{task}.html" for task in answered_tasks(nodes)],
        "csv": [SCORE_TABLE],
        "metrics": [f"{name}{METRICS}" for name in nodes.experiments],
    }


def answered_tasks(nodes: RunNodes) -> list[str]:
    """Return the tasks that an experiment predicts, in the order of the experiments."""
    names = (
        name.removesuffix(".jsonl")
        for experiment in nodes.experiments
        for finetuning in nodes.finetunings_of(experiment)
        for name in last_predictions(nodes, finetuning)
    )
    return list(dict.fromkeys(names))


def _always(**names: str) -> Callable[[RunNodes, Key], Names]:
    """Return a function for files that every node of a rule has."""
    return lambda nodes, key: {role: [name] for role, name in names.items()}


_WRITTEN: dict[str, Callable[[RunNodes, Key], Names]] = {
    "data": _always(),
    "c4_punkt": _punkt,
    "corpus": _rows,
    "c4_dedup": _removals,
    "c4": _corpus,
    "vocab_sample": _always(sample=SAMPLE),
    "vocab": _always(model=VOCABULARY, pieces=PIECES),
    "tokens": _always(
        train_ids="train.ids",
        train_offsets="train.offsets",
        validation_ids="validation.ids",
        validation_offsets="validation.offsets",
    ),
    "sentences": _always(
        train="train.sentences", validation="validation.sentences", word_starts="word_starts"
    ),
    "pretrain": _training,
    "tasks": _examples,
    "finetune": _training,
    "evaluate_predict": _predictions,
    "evaluate_score": _always(scores=SCORES),
    "contamination": _always(found=ROWS_IN_CORPUS),
    "report": _report,
}
