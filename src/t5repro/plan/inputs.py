"""The files that each rule reads, by role.

Code is not among them: a file of its own stands for it (`lineage.sources`).
"""

import os
from collections.abc import Callable, Iterable

from t5repro.artifacts import (
    HISTORY,
    MANIFEST,
    OPTIMIZER,
    PIECES,
    ROWS_IN_CORPUS,
    SAMPLE,
    SCORES,
    VOCABULARY,
    WEIGHTS,
)
from t5repro.config.corpus_files import CorpusFile
from t5repro.config.sections.c4 import PUNKT_FILES, C4Settings
from t5repro.config.task_files import start_files, tokenizer_files, vocabulary_files
from t5repro.config.withdrawn import PAGES
from t5repro.plan.nodes import Key, RunNodes
from t5repro.plan.outputs import evaluated_folders
from t5repro.plan.paths import LOGS, by_experiment, files, manifests, path, predictions_of
from t5repro.stages import VERSIONED

Role = Callable[[RunNodes, Key], Iterable[str]]


def inputs(nodes: RunNodes, key: Key) -> dict[str, list[str]]:
    """Return role -> paths of the files that the jobs of a node read, except `crawl_of_shard`.

    Raises:
        SettingsError: a raw file that the settings name is not listed.
    """
    return {role: list(paths(nodes, key)) for role, paths in _READ[key.rule].items()}


def crawl_of_shard(nodes: RunNodes, key: Key, shard: int) -> dict[str, list[str]]:
    """Return the roles of the crawl for a cleaning job, which reads its part of it.

    Raises:
        SettingsError: see `RawFiles.crawl_of_shard`.
    """
    c4 = nodes.settings_at(key).c4
    wet = _crawl(c4, nodes.raw.crawl_of_shard(c4, shard))
    return {**wet, "wat": nodes.raw.wat_of_shard(c4, shard)}


def watched(roles: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the inputs of a job without the files that its manifests list.

    Snakemake asks about every input of every job several times, and a manifest changes with the
    files that it lists. The job itself compares them with their hashes.
    """
    return {role: files for role, files in roles.items() if not _is_attested(role, roles)}


def lost(roles: dict[str, list[str]]) -> list[str]:
    """Return the files of a job that are absent, but not all of the manifests that list them."""
    return [
        file
        for role, files in roles.items()
        if _is_attested(role, roles) and any(map(os.path.exists, _attesting(role, roles)))
        for file in files
        if not os.path.exists(file)
    ]


def _is_attested(role: str, roles: dict[str, list[str]]) -> bool:
    return bool(_attesting(role, roles))


def _attesting(role: str, roles: dict[str, list[str]]) -> list[str]:
    return [manifest for name in ATTESTED_BY.get(role, ()) for manifest in roles.get(name, ())]


def earlier_manifests(nodes: RunNodes) -> list[str]:
    """Return the manifests of all jobs except the report, sorted."""
    keys = (key for rule in VERSIONED if rule != "report" for key in nodes.required(rule))
    return sorted({manifest for key in keys for manifest in manifests(nodes, key)})


def corpora(nodes: RunNodes, rule: str) -> dict[str, str]:
    """Return experiment that reads the corpus -> manifest of its node of `rule`."""
    paths = by_experiment(nodes, rule, MANIFEST)
    return {name: manifest for name, manifest in paths.items() if nodes.reads_corpus(name)}


def contamination(nodes: RunNodes) -> dict[str, str]:
    """Return experiment with a searched corpus -> the evaluated rows that it has."""
    paths = by_experiment(nodes, "contamination", ROWS_IN_CORPUS)
    return {name: path for name, path in paths.items() if nodes.requires(name, "contamination")}


def first_pages(nodes: RunNodes) -> dict[str, list[str]]:
    """Return experiment that reads the corpus -> the first file of each language.

    The corpus page shows their first pages; it reads no other file of the corpus. Files are ordered
    by a hash of the URL, so the first one is a fair sample of pages.
    """
    return {name: _first_files(nodes, nodes.node_of("c4", name)) for name in corpora(nodes, "c4")}


def _first_files(nodes: RunNodes, key: Key) -> list[str]:
    c4 = nodes.settings_at(key).c4
    first = (CorpusFile(language, "train", 0, c4.output_shards) for language in c4.languages)
    return [path(nodes, key, file.name) for file in first]


# Factories of roles


def _manifests_of(*rules: str) -> Role:
    """Return the manifests of the nodes of rules that a node reads."""
    return lambda nodes, key: (
        name for rule in rules for read in nodes.reads(key, rule) for name in manifests(nodes, read)
    )


def _files_of(*rules: str) -> Role:
    """Return all files of the nodes of rules that a node reads."""
    return lambda nodes, key: (
        name for rule in rules for read in nodes.reads(key, rule) for name in files(nodes, read)
    )


def _file_named(rule: str, *names: str) -> Role:
    """Return files of the nodes of a rule that a node reads."""
    return lambda nodes, key: (
        path(nodes, read, name) for read in nodes.reads(key, rule) for name in names
    )


def _examples(split_of: Callable[[RunNodes, Key], str]) -> dict[str, Role]:
    """Return the roles of the examples of every task of a node, and of their manifests."""

    def tasks(nodes: RunNodes, key: Key) -> list[Key]:
        split = split_of(nodes, key)
        return [read for read in nodes.reads(key, "tasks") if split in nodes.raw.splits(read.node)]

    return {
        "files": lambda nodes, key: (
            path(nodes, task, f"{split_of(nodes, key)}.jsonl") for task in tasks(nodes, key)
        ),
        "manifests": lambda nodes, key: (path(nodes, task, MANIFEST) for task in tasks(nodes, key)),
    }


def _of_every_experiment(rule: str, name: str) -> Role:
    """Return a file of the node of every experiment."""
    return lambda nodes, key: by_experiment(nodes, rule, name).values()


# Raw files


def _crawl(c4: C4Settings, files: list[str]) -> dict[str, list[str]]:
    """Return the roles of the crawl: WET files, or the list of their paths."""
    return {"wet": [], "path_list": files} if c4.crawl_paths else {"wet": files, "path_list": []}


def _crawl_sample(role: str) -> Role:
    """Return the files of a role of the crawl for the training of Punkt."""

    def files_of_role(nodes: RunNodes, key: Key) -> list[str]:
        c4 = nodes.settings_at(key).c4
        return _crawl(c4, nodes.raw.crawl_sample(c4))[role]

    return files_of_role


def _bad_words(nodes: RunNodes, key: Key) -> Iterable[str]:
    return bad_word_lists(nodes, key).values()


def bad_word_lists(nodes: RunNodes, key: Key) -> dict[str, str]:
    """Return language -> list of bad words."""
    lists = nodes.settings_at(key).c4.bad_word_lists
    return {
        language: nodes.raw.listed_path(lists[language], f"c4.bad_word_lists.{language}")
        for language in sorted(lists)
    }


def _punkt(nodes: RunNodes, key: Key) -> list[str]:
    """Return the provided Punkt parameters and the trained ones."""
    provided = [
        nodes.raw.listed_path(f"{folder}/{name}", f"c4.punkt_parameters.{language}")
        for language, folder in sorted(nodes.settings_at(key).c4.punkt_parameters.items())
        for name in PUNKT_FILES
    ]
    trained = nodes.reads(key, "c4_punkt")
    return [*provided, *(name for read in trained for name in files(nodes, read))]


def selections(nodes: RunNodes, key: Key) -> dict[str, str]:
    """Return ``domains`` and ``urls`` -> list of the pages to select."""
    select = nodes.settings_at(key).c4.select
    return {
        kind: nodes.raw.listed_path(name, f"c4.select.{kind}")
        for kind, name in (("domains", select.domains), ("urls", select.urls))
        if name
    }


def _vocabulary_file(nodes: RunNodes, key: Key) -> Iterable[str]:
    """Return the raw file of a vocabulary that is used unchanged."""
    return nodes.raw.paths(vocabulary_files(nodes.settings_at(key)))


def _tokenizer(nodes: RunNodes, key: Key) -> Iterable[str]:
    """Return the listed raw files that state further tokens of such a vocabulary."""
    return nodes.raw.paths(tokenizer_files(nodes.settings_at(key)))


def _preflight(nodes: RunNodes, key: Key) -> list[str]:
    """Return the report of a step that fits, if a slice is set."""
    report = f"{LOGS}/{nodes.name}/preflight/{key.node}.json"
    return [report] if nodes.settings_at(key).devices.slice else []


def _trained(nodes: RunNodes, key: Key) -> list[str]:
    """Return the weights that predict: the last ones, and kept ones that are evaluated."""
    folders = evaluated_folders(nodes.settings_at(key))
    models = nodes.reads(key, "finetune")
    return [path(nodes, read, f"{folder}{WEIGHTS}") for read in models for folder in folders]


_TRAIN = _examples(lambda nodes, key: "train")
_EVALUATED = _examples(lambda nodes, key: nodes.settings_at(key).evaluate.split)
# Predicted from during the training; no task has a split without a name.
_SAMPLED = _examples(
    lambda nodes, key: "validation" if nodes.settings.run.samples.every_steps else ""
)
_DATA: dict[str, Role] = {"data": _manifests_of("data")}
_WITHDRAWN: dict[str, Role] = {"withdrawn": lambda nodes, key: [PAGES.as_posix()]}
_CLEANED: dict[str, Role] = {"cleaned": _files_of("c4_clean", "corpus")}
_CLEANED_MANIFESTS: dict[str, Role] = {"cleaned_manifests": _manifests_of("c4_clean", "corpus")}
_CORPUS: dict[str, Role] = {"corpus": _manifests_of("c4"), "pages": _files_of("c4")}
_IDS: dict[str, Role] = {"tokens": _manifests_of("tokens"), "ids": _files_of("tokens")}
_VOCABULARY: dict[str, Role] = {"vocabulary": _file_named("vocab", VOCABULARY)}
_VOCABULARY_MANIFEST: dict[str, Role] = {"vocabulary_manifest": _manifests_of("vocab")}
_PUNKT: dict[str, Role] = {"punkt_manifest": _manifests_of("c4_punkt"), "punkt": _punkt}
_TEXT: dict[str, Role] = {"bad_words": _bad_words, **_PUNKT}

# Role -> roles of the manifests that list its files. No command line has them as {input.<role>}.
ATTESTED_BY: dict[str, tuple[str, ...]] = {
    "raw": ("data",),
    "bad_words": ("data",),
    "select": ("data",),
    "punkt": ("data", "punkt_manifest"),
    "removals": ("decisions",),
    "pages": ("corpus",),
    "ids": ("tokens",),
    "sentence_files": ("sentences",),
    "trained": ("weights",),
    "predictions": ("predicted", "manifests"),
    "scores": ("manifests",),
    "contamination": ("manifests",),
    "pretrain_history": ("manifests",),
    "finetune_history": ("manifests",),
    "vocabularies": ("manifests",),
    "pieces": ("manifests",),
}

_READ: dict[str, dict[str, Role]] = {
    "data": {"raw": lambda nodes, key: nodes.raw.paths(nodes.raw.names)},
    "preflight": {},
    "c4_punkt": {
        # Two roles for one list of files: a streamed crawl has a list of paths in place of files.
        "wet": _crawl_sample("wet"),
        "path_list": _crawl_sample("path_list"),
        "wat": lambda nodes, key: nodes.raw.wat_of_sample(nodes.settings_at(key).c4),
        **_WITHDRAWN,
        **_DATA,
    },
    "c4_clean": {
        **_TEXT,
        **_WITHDRAWN,
        "select": lambda nodes, key: selections(nodes, key).values(),
        **_DATA,
    },
    "corpus": {
        "files": lambda nodes, key: nodes.raw.own_text(nodes.settings_at(key))[0],
        "validation_files": lambda nodes, key: nodes.raw.own_text(nodes.settings_at(key))[1],
        **_TEXT,
        **_WITHDRAWN,
        **_DATA,
    },
    # Of a run on own text `corpus` stands in for `c4_clean`: the role is the same.
    "c4_dedup": {**_CLEANED, **_CLEANED_MANIFESTS},
    "c4": {
        **_CLEANED,
        # A manifest next to its files: the job reads the manifest, Snakemake watches the files.
        "decisions": _manifests_of("c4_dedup"),
        "removals": _files_of("c4_dedup"),
        **_CLEANED_MANIFESTS,
        **_TEXT,
        **_DATA,
    },
    "vocab_sample": _CORPUS,
    "vocab": {
        "sample": _file_named("vocab_sample", SAMPLE),
        # Either the sample or a published model is present; the other role is empty.
        "model_file": _vocabulary_file,
        "tokenizer": _tokenizer,
        "manifest": _manifests_of("vocab_sample"),
    },
    "tokens": {**_CORPUS, **_VOCABULARY, **_VOCABULARY_MANIFEST},
    "sentences": {**_CORPUS, **_IDS, **_VOCABULARY, **_VOCABULARY_MANIFEST, **_PUNKT, **_DATA},
    "pretrain": {
        **_IDS,
        "sentences": _manifests_of("sentences"),
        "sentence_files": _files_of("sentences"),
        # Not read by the training: it only orders the check before it.
        "preflight": _preflight,
        "start": lambda nodes, key: nodes.raw.paths(start_files(nodes.settings_at(key))),
        "weights": _manifests_of("pretrain"),
        "trained": _file_named("pretrain", WEIGHTS, OPTIMIZER),
    },
    "tasks": {
        "raw": lambda nodes, key: (
            name for names in nodes.raw.splits(key.node).values() for name in names
        ),
        **_DATA,
    },
    "finetune": {
        "weights": _manifests_of("pretrain"),
        "trained": _file_named("pretrain", WEIGHTS, OPTIMIZER),
        **_IDS,
        "examples": _TRAIN["files"],
        # Empty by default, so predictions during the training add no edge to the graph.
        "sample_examples": _SAMPLED["files"],
        **_VOCABULARY,
        "example_manifests": _TRAIN["manifests"],
        "sample_manifests": _SAMPLED["manifests"],
        **_VOCABULARY_MANIFEST,
    },
    "evaluate_predict": {
        "weights": _manifests_of("finetune"),
        "trained": _trained,
        "examples": _EVALUATED["files"],
        **_VOCABULARY,
        "example_manifests": _EVALUATED["manifests"],
        **_VOCABULARY_MANIFEST,
    },
    "evaluate_score": {
        "predicted": _manifests_of("evaluate_predict"),
        "predictions": _files_of("evaluate_predict"),
        # For the trivial answers: the most frequent label is that of the training rows.
        "train": _TRAIN["files"],
        "train_manifests": _TRAIN["manifests"],
    },
    "contamination": {
        **_CORPUS,
        **_IDS,
        **_VOCABULARY,
        "examples": _EVALUATED["files"],
        "train": _TRAIN["files"],
        "example_manifests": _EVALUATED["manifests"],
        "train_manifests": _TRAIN["manifests"],
        **_VOCABULARY_MANIFEST,
    },
    "report": {
        "scores": _of_every_experiment("evaluate_score", SCORES),
        "predicted": _of_every_experiment("evaluate_score", MANIFEST),
        "predictions": lambda nodes, key: sorted(
            {name for arm in nodes.experiments for name in predictions_of(nodes, arm)}
        ),
        "pretrain_history": _of_every_experiment("pretrain", HISTORY),
        "finetune_history": _of_every_experiment("finetune", HISTORY),
        "corpus": lambda nodes, key: corpora(nodes, "c4").values(),
        "tokens": lambda nodes, key: corpora(nodes, "tokens").values(),
        "contamination": lambda nodes, key: contamination(nodes).values(),
        "pages": lambda nodes, key: sorted(
            {name for names in first_pages(nodes).values() for name in names}
        ),
        "vocabularies": _of_every_experiment("vocab", VOCABULARY),
        "pieces": _of_every_experiment("vocab", PIECES),
        # For the lineage page, which shows every job of the run.
        "manifests": lambda nodes, key: earlier_manifests(nodes),
    },
}
