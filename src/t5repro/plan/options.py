"""The words of a job's command line that depend on the settings of its node."""

from collections.abc import Callable, Iterable, Mapping

from t5repro.artifacts import ANSWERS, HISTORY, METRICS, SCORES, VOCABULARY
from t5repro.config.sections.c4 import languages_to_train
from t5repro.plan.inputs import bad_word_lists, corpora, first_pages, inputs, selections
from t5repro.plan.nodes import Key, RunNodes
from t5repro.plan.outputs import answered_tasks
from t5repro.plan.paths import by_experiment, path, predictions_of

Option = Callable[[RunNodes, Key], "str | list[str]"]


def option(nodes: RunNodes, key: Key, name: str) -> str | list[str]:
    """Return words of the command line of a job.

    Args:
        nodes: the nodes of the run.
        key: the node of the job.
        name: name of the parameter in the rule file.
    """
    return _OPTIONS[key.rule][name](nodes, key)


def _pairs(values: Mapping[str, str | list[str]]) -> list[str]:
    """Return arguments NAME=FILE."""
    return [
        f"{name}={file}"
        for name, files in values.items()
        for file in ([files] if isinstance(files, str) else files)
    ]


def _if_any(name: str, words: Iterable[str]) -> list[str]:
    """Return an option with its words; nothing if there are none."""
    arguments = list(words)
    return [name, *arguments] if arguments else []


def _wet(nodes: RunNodes, key: Key) -> str:
    return "--paths" if nodes.settings_at(key).c4.crawl_paths else "--wet"


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
    return [word for kind, name in selections(nodes, key).items() for word in (f"--{kind}", name)]


def _decisions(nodes: RunNodes, key: Key) -> str:
    """Return the folder of the decisions on repeats."""
    (read,) = nodes.reads(key, "c4_dedup")
    return path(nodes, read, "")


def _vocabulary(nodes: RunNodes, key: Key) -> str:
    return "--model-file" if nodes.settings_at(key).vocab.model_file else "--sample"


def _start(nodes: RunNodes, key: Key) -> list[str]:
    folder = nodes.settings_at(key).pretrain.start_from
    return ["--start-from", nodes.raw.path(folder)] if folder else []


def _corpus(nodes: RunNodes, key: Key) -> list[str]:
    read = inputs(nodes, key)
    return [*_if_any("--tokens", read["tokens"]), *_if_any("--sentences", read["sentences"])]


def _tokens(nodes: RunNodes, key: Key) -> list[str]:
    return _if_any("--tokens", inputs(nodes, key)["tokens"])


def _steps(nodes: RunNodes, key: Key) -> list[str]:
    """Return the option with the kept checkpoints to evaluate, of all groups of tasks."""
    if nodes.settings_at(key).evaluate.checkpoints == "last":
        return []
    finetunings = (Key("finetune", name) for name in nodes.finetunings_of(key.node))
    steps = {
        step
        for finetuning in finetunings
        for step in nodes.settings_at(finetuning).finetune.kept_steps
    }
    return ["--kept-steps", *map(str, sorted(steps))]


_TEXT: dict[str, Option] = {"bad_words": _bad_words, "punkt": _punkt}
_OPTIONS: dict[str, dict[str, Option]] = {
    "c4_punkt": {"wet": _wet},
    "c4_clean": {"wet": _wet, **_TEXT, "select": _select},
    "corpus": _TEXT,
    "c4": {**_TEXT, "decisions": _decisions},
    "sentences": {"punkt": _punkt},
    "vocab": {"option": _vocabulary},
    "pretrain": {"start": _start, "corpus": _corpus},
    "tasks": {"files": lambda nodes, key: _pairs(nodes.raw.splits(key.node))},
    "finetune": {"tokens": _tokens},
    "evaluate_predict": {"steps": _steps},
    "evaluate_score": {
        "steps": _steps,
        "predictions": lambda nodes, key: predictions_of(nodes, key.node),
    },
    "report": {
        "scores": lambda nodes, key: _pairs(by_experiment(nodes, "evaluate_score", SCORES)),
        "pretrain": lambda nodes, key: _pairs(by_experiment(nodes, "pretrain", HISTORY)),
        "finetune": lambda nodes, key: _pairs(by_experiment(nodes, "finetune", HISTORY)),
        "corpus": lambda nodes, key: _if_any("--corpus", _pairs(corpora(nodes, "c4"))),
        "tokens": lambda nodes, key: _if_any("--tokens", _pairs(corpora(nodes, "tokens"))),
        "metrics": lambda nodes, key: _pairs(
            {name: path(nodes, key, f"{name}{METRICS}") for name in nodes.experiments}
        ),
        "predictions": lambda nodes, key: _pairs(
            {name: predictions_of(nodes, name) for name in nodes.experiments}
        ),
        "answers": lambda nodes, key: _pairs(
            {task: path(nodes, key, f"{ANSWERS}/{task}.html") for task in answered_tasks(nodes)}
        ),
        "pages": lambda nodes, key: _pairs(first_pages(nodes)),
        "vocabularies": lambda nodes, key: _pairs(by_experiment(nodes, "vocab", VOCABULARY)),
    },
}
