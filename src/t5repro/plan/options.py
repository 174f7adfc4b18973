"""The words of a job's command line that are not files of a role, by field of the job."""

from collections.abc import Callable, Mapping

from t5repro.artifacts import ANSWERS, HISTORY, METRICS, SCORES, VOCABULARY
from t5repro.config.sections.c4 import languages_to_train
from t5repro.plan.inputs import bad_word_lists, contamination, corpora, first_pages, selections
from t5repro.plan.nodes import Key, RunNodes
from t5repro.plan.outputs import answered_tasks
from t5repro.plan.paths import by_experiment, path, predictions_of

Option = Callable[[RunNodes, Key], "str | list[str]"]


def _pairs(values: Mapping[str, str | list[str]]) -> list[str]:
    """Return arguments NAME=FILE."""
    return [
        f"{name}={file}"
        for name, files in values.items()
        for file in ([files] if isinstance(files, str) else files)
    ]


def _bad_words(nodes: RunNodes, key: Key) -> list[str]:
    return _pairs(bad_word_lists(nodes, key))


def _punkt(nodes: RunNodes, key: Key) -> list[str]:
    """Return LANGUAGE=FOLDER of the Punkt parameters, provided and trained."""
    c4 = nodes.settings_at(key).c4
    folders = {language: nodes.raw.path(name) for language, name in c4.punkt_parameters.items()}
    for read in nodes.reads(key, "c4_punkt"):
        folders |= {language: path(nodes, read, language) for language in languages_to_train(c4)}
    return _pairs(dict(sorted(folders.items())))


def _select(nodes: RunNodes, key: Key) -> list[str]:
    return _pairs(selections(nodes, key))


def _decisions(nodes: RunNodes, key: Key) -> str:
    """Return the folder of the decisions on repeats."""
    (read,) = nodes.reads(key, "c4_dedup")
    return path(nodes, read, "")


def _start(nodes: RunNodes, key: Key) -> list[str]:
    folder = nodes.settings_at(key).pretrain.start_from
    return [nodes.raw.path(folder)] if folder else []


def _kept_steps(nodes: RunNodes, key: Key) -> list[str]:
    """Return the kept checkpoints to evaluate, of all groups of tasks."""
    if nodes.settings_at(key).evaluate.checkpoints == "last":
        return []
    finetunings = (Key("finetune", name) for name in nodes.finetunings_of(key.node))
    steps = {
        step
        for finetuning in finetunings
        for step in nodes.settings_at(finetuning).finetune.kept_steps
    }
    return [str(step) for step in sorted(steps)]


_TEXT: dict[str, Option] = {"bad_words": _bad_words, "punkt": _punkt}
OPTIONS: dict[str, dict[str, Option]] = {
    "c4_clean": {**_TEXT, "select": _select},
    "corpus": {**_TEXT, "root": lambda nodes, key: nodes.settings.data.folder},
    "c4": {**_TEXT, "decisions": _decisions},
    "sentences": {"punkt": _punkt},
    "pretrain": {"start_from": _start},
    "tasks": {
        "task": lambda nodes, key: key.node,
        "files": lambda nodes, key: _pairs(nodes.raw.splits(key.node)),
    },
    "evaluate_predict": {"kept_steps": _kept_steps},
    "evaluate_score": {
        "kept_steps": _kept_steps,
        "predictions": lambda nodes, key: predictions_of(nodes, key.node),
    },
    "report": {
        "scores": lambda nodes, key: _pairs(by_experiment(nodes, "evaluate_score", SCORES)),
        "pretrain_history": lambda nodes, key: _pairs(by_experiment(nodes, "pretrain", HISTORY)),
        "finetune_history": lambda nodes, key: _pairs(by_experiment(nodes, "finetune", HISTORY)),
        "corpus": lambda nodes, key: _pairs(corpora(nodes, "c4")),
        "tokens": lambda nodes, key: _pairs(corpora(nodes, "tokens")),
        "predictions": lambda nodes, key: _pairs(
            {name: predictions_of(nodes, name) for name in nodes.experiments}
        ),
        "contamination": lambda nodes, key: _pairs(contamination(nodes)),
        "pages": lambda nodes, key: _pairs(first_pages(nodes)),
        "vocabularies": lambda nodes, key: _pairs(by_experiment(nodes, "vocab", VOCABULARY)),
        "answers": lambda nodes, key: _pairs(
            {task: path(nodes, key, f"{ANSWERS}/{task}.html") for task in answered_tasks(nodes)}
        ),
        "metrics": lambda nodes, key: _pairs(
            {name: path(nodes, key, f"{name}{METRICS}") for name in nodes.experiments}
        ),
    },
}
