"""Which nodes a run has, which experiments share one, and which nodes each of them reads."""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from typing import Any, NamedTuple

from t5repro.config.dependencies import finetuning_named
from t5repro.config.experiments import VOCABULARY, names_at, settings_by_name
from t5repro.config.groups import finetunings
from t5repro.config.schema import Settings
from t5repro.config.sections.c4 import languages_to_train
from t5repro.config.stage_settings import settings_of_stages, stage_settings
from t5repro.errors import SettingsError
from t5repro.plan.raw import RawFiles
from t5repro.stages import BY_NAME, OF_CORPUS, STAGES, VERSIONED, ancestors

# Without tasks, a run ends with these.
WITHOUT_TASKS = ("data", *OF_CORPUS, "vocab", "pretrain")
# Rules that experiments may have different nodes of. All experiments share the settings of others.
PER_EXPERIMENT = tuple(stage.name for stage in STAGES if stage.per_experiment)


class Key(NamedTuple):
    """A node.

    Attributes:
        rule: name of the rule.
        node: an experiment, the fine-tuning of one of its groups, or a task for the rule `tasks`;
            empty for a rule with one node.
    """

    rule: str
    node: str


class RunNodes:
    """The nodes of a run.

    Args:
        settings: settings of the run.
        as_written: see `RawFiles`.

    Raises:
        SettingsError: the changes of an experiment are invalid.
    """

    def __init__(self, settings: Settings, as_written: Callable[[], Settings]) -> None:
        self.settings = settings
        self.name = settings.run.name
        self.experiments = tuple(experiment.name for experiment in settings.experiments)
        self.raw = RawFiles(settings, as_written)
        self._settings_at = settings_by_name(settings)
        # Fine-tuning -> its experiment and group of tasks; without groups, they have one name.
        self._finetunings = {
            name: (experiment, group)
            for experiment in self.experiments
            for group, name in finetunings(self._settings_at(experiment), experiment).items()
        }
        self._order = tuple(dict.fromkeys([*self.experiments, *self._finetunings]))
        self.nodes_of = cache(self._nodes_of)
        self.upstream = cache(self._upstream)
        self._received = cache(self._received_by_rule)
        self._text = cache(self._received_text)
        self.tasks = sorted(
            {task for name in self.experiments for task in self._settings_at(name).tasks.names}
        )

    # Experiments and their settings

    def settings_at(self, key: Key) -> Settings:
        """Return the settings of a node: of the run, if the rule has nodes of no experiment."""
        return self.settings_of(key.node if BY_NAME[key.rule].per_experiment else "")

    def settings_of(self, name: str) -> Settings:
        """Return the settings of an experiment or a fine-tuning; of the run, if it has no name."""
        return self._settings_at(name) if name else self.settings

    def received(self, key: Key) -> dict[str, Any]:
        """Return the settings that the jobs of a node receive, as plain JSON values."""
        if key.rule not in PER_EXPERIMENT:
            return stage_settings(self.settings, key.rule)
        return self._received(key.node)[key.rule]

    def _received_by_rule(self, name: str) -> dict[str, dict[str, Any]]:
        return settings_of_stages(self._settings_at(name), PER_EXPERIMENT)

    @cached_property
    def clean_parts(self) -> int:
        """Files that a cleaning job divides its pages into.

        Raises:
            SettingsError: the experiments differ in it.
        """
        count = self.settings.c4.clean_parts
        for name in self.experiments:
            if (own_count := self._settings_at(name).c4.clean_parts) != count:
                raise SettingsError(
                    f"c4.clean_parts is {count}, but {own_count} in the experiment {name!r}; it "
                    "must be equal in all: it divides files and changes no page"
                )
        return count

    def reads_corpus(self, experiment: str) -> bool:
        """Return whether an experiment reads the corpus."""
        return self._settings_at(experiment).reads_corpus

    def requires(self, experiment: str, rule: str) -> bool:
        """Return whether an experiment reads what `rule` writes, directly or not."""
        return requires(self._settings_at(experiment), rule)

    def finetunings_of(self, name: str) -> list[str]:
        """Return the fine-tunings of an experiment, one or one for each group; or one itself."""
        if name not in self.experiments:
            return [name]
        return list(finetunings(self._settings_at(name), name).values())

    def other_finetuning(self, name: str, experiment: str) -> str:
        """Return the fine-tuning of another experiment on which a fine-tuning depends."""
        settings = self._settings_at(experiment)
        return finetuning_named(settings, experiment, self._finetunings[name][1])

    def names_of(self, rule: str) -> list[str]:
        """Return the names that may have a node of `rule`: experiments, or their fine-tunings."""
        return names_at(self.settings, rule, self._settings_at)

    # Nodes

    def _nodes_of(self, rule: str) -> dict[str, str]:
        """Return experiment -> its node of `rule`; of a rule per group, fine-tuning -> its node.

        They share a node if their settings of the rule and of all earlier rules are equal; for a
        rule after fine-tuning, the settings of all groups. With `vocab.from_experiment` the rules
        of the vocabulary, and those before them, have the settings of that experiment.
        """
        rules = {rule, *ancestors(rule)}.intersection(PER_EXPERIMENT)
        # A rule after fine-tuning has one node for all groups of an experiment.
        joins_groups = not BY_NAME[rule].per_group and any(
            BY_NAME[name].per_group for name in rules
        )
        own_rules = sorted(set() if rule in VOCABULARY else rules - VOCABULARY)
        vocabulary = {"vocab", *ancestors("vocab")}.intersection(PER_EXPERIMENT)
        vocabulary_rules = sorted(vocabulary if rules & VOCABULARY else ())
        first_names: dict[tuple[str, ...], str] = {}
        nodes = {}
        for name in self.names_of(rule):
            source = self._settings_at(name).vocab.from_experiment or name
            key = (
                *(
                    self._text(finetuning, own)
                    for finetuning in (self.finetunings_of(name) if joins_groups else [name])
                    for own in own_rules
                ),
                *(self._text(source, shared) for shared in vocabulary_rules),
            )
            # An experiment comes after that whose vocabulary it uses, so no node has its name.
            nodes[name] = first_names.setdefault(key, name)
        return nodes

    def _received_text(self, name: str, rule: str) -> str:
        return json.dumps(self._received(name)[rule])

    def node_of(self, rule: str, name: str) -> Key:
        """Return the node of `rule` that an experiment or a fine-tuning uses."""
        if not BY_NAME[rule].per_experiment:
            return Key(rule, "")
        nodes = self.nodes_of(rule)
        return Key(rule, nodes[name] if name in nodes else nodes[self._finetunings[name][0]])

    def distinct(self, rule: str) -> list[Key]:
        """Return the nodes of `rule`, in the order of the experiments."""
        if rule == "tasks":
            return [Key(rule, task) for task in self.tasks]
        if not BY_NAME[rule].per_experiment:
            return [Key(rule, "")]
        return [Key(rule, node) for node in dict.fromkeys(self.nodes_of(rule).values())]

    def required(self, rule: str) -> list[Key]:
        """Return the nodes of `rule` that an experiment reads, directly or not."""
        if not BY_NAME[rule].per_experiment:
            return self.distinct(rule)
        readers = (name for name in self.names_of(rule) if self.requires(name, rule))
        return list(dict.fromkeys(self.node_of(rule, name) for name in readers))

    def roots(self, experiment: str) -> Iterator[Key]:
        """Yield the nodes that a run makes for an experiment, and for the run."""
        settings = self._settings_at(experiment)
        for rule in VERSIONED if self.tasks else WITHOUT_TASKS:
            if BY_NAME[rule].per_group:
                yield from (self.node_of(rule, name) for name in self.finetunings_of(experiment))
            elif rule != "tasks" and requires(settings, rule):
                yield self.node_of(rule, experiment)

    def users(self) -> dict[Key, list[str]]:
        """Return node -> experiments that need it, directly or not, in the order of the run."""
        users: dict[Key, list[str]] = {}
        for experiment in self.experiments:
            visited: dict[Key, None] = {}
            queue = list(self.roots(experiment))
            while queue:
                key = queue.pop()
                if key not in visited:
                    visited[key] = None
                    # The report reads every experiment; one experiment has a report of itself.
                    queue += self.upstream(key) if key.rule != "report" else ()
            for key in visited:
                users.setdefault(key, []).append(experiment)
        return users

    # Edges

    def _upstream(self, key: Key) -> tuple[Key, ...]:
        """Return the nodes that a node reads outputs of, in the order of the stages."""
        if key.rule == "report":  # its lineage page shows every other node
            return tuple(self.in_order(node for node in self.users() if node.rule != "report"))
        settings = self.settings_at(key)
        start_files = {"vocab": settings.vocab.model_file, "pretrain": settings.pretrain.start_from}
        # A given vocabulary or checkpoint is a raw file.
        raw = [Key("data", "")] if start_files.get(key.rule) else []
        reads = [read for rule in BY_NAME[key.rule].upstream for read in self.reads(key, rule)]
        # An edge within a rule, so it is not in the table of stages.
        phase = self.reads(key, "pretrain") if key.rule == "pretrain" else []
        return tuple(dict.fromkeys([*raw, *reads, *phase]))

    def reads(self, key: Key, rule: str) -> list[Key]:
        """Return the nodes of `rule` that a node reads, or those that it reads in their place.

        Args:
            key: the node that reads.
            rule: an earlier rule.
        """
        settings, name = self.settings_at(key), key.node
        if (key.rule, rule) == ("pretrain", "pretrain"):
            experiment = settings.pretrain.from_experiment
            return [self.node_of(rule, experiment)] if experiment else []
        if rule == "tasks":
            return [Key(rule, task) for task in settings.tasks.names]
        if not BY_NAME[rule].per_experiment:
            return [Key(rule, "")]
        if not _needs(key.rule, rule, settings):
            return []
        if (key.rule, rule) == ("finetune", "pretrain") and (
            experiment := settings.finetune.start_from
        ):
            # Weights of another experiment's fine-tuning replace those of pre-training.
            return [self.node_of("finetune", self.other_finetuning(name, experiment))]
        if (key.rule, rule) == ("evaluate_predict", "finetune") and settings.evaluate.ensemble:
            members = settings.evaluate.ensemble
            return [self.node_of(rule, self.other_finetuning(name, member)) for member in members]
        if BY_NAME[rule].per_group and not BY_NAME[key.rule].per_group:
            return [self.node_of(rule, finetuning) for finetuning in self.finetunings_of(name)]
        return [self.node_of(rule, name)]

    def in_order(self, keys: Iterable[Key]) -> list[Key]:
        """Return nodes in the order of the stages, and within a stage of the experiments."""
        stages = {stage.name: number for number, stage in enumerate(STAGES)}
        names = {name: number for number, name in enumerate(self._order)}
        return sorted(keys, key=lambda key: (stages[key.rule], names.get(key.node, -1), key.node))


def requires(settings: Settings, rule: str) -> bool:
    """Return whether an experiment with these settings reads what `rule` writes, directly or not.

    One with given weights and vocabulary reads no corpus, one with own text no crawl.
    """
    if rule in OF_CORPUS and not settings.reads_corpus:
        return False
    if rule == "contamination":
        return settings.reads_corpus and bool(settings.contamination.methods)
    if rule == "sentences":
        return settings.pretrain.reads_sentences
    if rule in ("c4_punkt", "c4_clean", "corpus"):
        return bool(settings.corpus.files) == (rule == "corpus")
    return True


def _needs(reader: str, rule: str, settings: Settings) -> bool:
    """Return whether a job of the rule `reader`, if there is one, reads what `rule` writes."""
    if rule in ("c4_clean", "corpus"):
        return bool(settings.corpus.files) == (rule == "corpus")
    needs = {
        "c4_punkt": bool(languages_to_train(settings.c4)),
        "vocab_sample": not settings.vocab.model_file,
        "sentences": settings.pretrain.reads_sentences,
    }
    if rule == "tokens":
        needs[rule] = {
            "pretrain": settings.pretrain.reads_corpus,
            "finetune": settings.finetune.corpus_examples > 0,
        }.get(reader, True)
    return needs.get(rule, True)
