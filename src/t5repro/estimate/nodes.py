"""The nodes of a run before it runs: their experiments, settings and upstream nodes.

The only module of the package that knows how experiments become nodes. It follows the rule files:
the roots of an experiment are its node of every rule, `upstream` the nodes that these read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from t5repro.config.dependencies import finetuning_named
from t5repro.config.experiments import nodes_by_experiment, settings_by_name
from t5repro.config.groups import finetunings
from t5repro.config.schema import Settings
from t5repro.stages import BY_NAME, OF_CORPUS, STAGES

Key = tuple[str, str]  # rule and node
NOT_PLANNED = ("data_fetch", "preflight")  # a transfer and a check, no nodes of the run


@dataclass(frozen=True)
class PlannedNode:
    """A node that the run will have.

    Attributes:
        rule: name of the rule.
        name: name of the node: an experiment, the fine-tuning of one of its groups, a task for the
            rule `tasks`, or empty.
        settings: settings of the experiment or fine-tuning that gives the node its name.
        upstream: nodes that its jobs read.
        experiments: experiments that need it, directly or not, in the order of the run file.
    """

    rule: str
    name: str
    settings: Settings
    upstream: tuple[Key, ...]
    experiments: tuple[str, ...]

    @property
    def key(self) -> Key:
        """Rule and node."""
        return self.rule, self.name

    @property
    def label(self) -> str:
        """Rule and node in words."""
        return f"{self.rule} {self.name}".rstrip()


def plan_nodes(settings: Settings) -> list[PlannedNode]:
    """Return the nodes of a run, in the order of the stages.

    Args:
        settings: settings of the run.

    Raises:
        SettingsError: the changes of an experiment are invalid.
    """
    plan = _Plan(settings)
    users: dict[Key, list[str]] = {}
    for experiment in plan.experiments:
        for key in plan.closure(plan.roots(experiment)):
            users.setdefault(key, []).append(experiment)
    order = {stage.name: number for number, stage in enumerate(STAGES)}
    keys = sorted(users, key=lambda key: (order[key[0]], plan.position(key[1]), key[1]))
    return [
        PlannedNode(
            rule=rule,
            name=name,
            settings=plan.settings_at(name),
            upstream=tuple(plan.upstream((rule, name))),
            experiments=tuple(users[rule, name]),
        )
        for rule, name in keys
    ]


class _Plan:
    """Roots and edges of the nodes of a run."""

    def __init__(self, settings: Settings) -> None:
        self.experiments = [experiment.name for experiment in settings.experiments]
        at = settings_by_name(settings)
        # Fine-tuning -> its experiment and group; without groups, they have one name.
        self._parts = {
            name: (experiment, group)
            for experiment in self.experiments
            for group, name in finetunings(at(experiment), experiment).items()
        }
        names = {*self.experiments, *self._parts}
        # Nodes without an experiment have the settings of the run.
        self.settings_at: Callable[[str], Settings] = lambda name: (
            at(name) if name in names else settings
        )
        self.nodes_of: Callable[[str], dict[str, str]] = cache(
            lambda rule: nodes_by_experiment(settings, rule, at)
        )
        self._has_tasks = any(at(name).tasks.names for name in self.experiments)
        self._order = [*dict.fromkeys([*self.experiments, *self._parts])]

    def position(self, name: str) -> int:
        """Return the position of an experiment or fine-tuning; -1 for other names."""
        return self._order.index(name) if name in self._order else -1

    def finetunings_of(self, experiment: str) -> list[str]:
        """Return the fine-tunings of an experiment: one, or one for each group of tasks."""
        return list(finetunings(self.settings_at(experiment), experiment).values())

    def node_of(self, rule: str, name: str) -> str:
        """Return the node of `rule` that an experiment or a fine-tuning uses."""
        nodes = self.nodes_of(rule)
        return nodes[name] if name in nodes else nodes[self._parts[name][0]]

    def other_finetuning(self, name: str, experiment: str) -> str:
        """Return the fine-tuning of another experiment that a fine-tuning reads."""
        return finetuning_named(self.settings_at(experiment), experiment, self._parts[name][1])

    def roots(self, experiment: str) -> Iterator[Key]:
        """Yield the nodes that a run makes for an experiment."""
        without_tasks = (*OF_CORPUS, "vocab", "pretrain")
        for stage in STAGES:
            if stage.name in NOT_PLANNED or stage.name == "tasks":
                continue
            if not stage.per_experiment:
                if self._has_tasks or stage.name == "data":
                    yield stage.name, ""
            elif (self._has_tasks or stage.name in without_tasks) and _requires(
                self.settings_at(experiment), stage.name
            ):
                for name in self.finetunings_of(experiment) if stage.per_group else [experiment]:
                    yield stage.name, self.node_of(stage.name, name)

    def closure(self, roots: Iterator[Key]) -> list[Key]:
        """Return nodes and all that they read, directly or not, each once."""
        visited: dict[Key, None] = {}
        queue = list(roots)
        while queue:
            key = queue.pop()
            if key not in visited:
                visited[key] = None
                queue += self.upstream(key)
        return list(visited)

    def upstream(self, key: Key) -> list[Key]:
        """Return the nodes that a node reads."""
        rule, name = key
        settings = self.settings_at(name)
        if rule == "report":  # reads every experiment; an experiment alone has a report of itself
            return []
        reads = (
            read for other in BY_NAME[rule].upstream for read in self._reads(rule, other, name)
        )
        # Without a corpus, a node reads the raw files in place of each earlier rule.
        return list(dict.fromkeys(read for read in reads if _requires(settings, read[0])))

    def _reads(self, rule: str, other: str, name: str) -> Iterator[Key]:
        """Yield the nodes of the rule `other` that a node of `rule` reads."""
        settings = self.settings_at(name)
        if other == "tasks":
            yield from (("tasks", task) for task in settings.tasks.names)
        elif not BY_NAME[other].per_experiment:
            yield other, ""
        elif _reads_raw_files(rule, settings):
            yield "data", ""
        elif rule == "finetune" and other == "tokens" and not settings.finetune.corpus_examples:
            return
        elif rule == "finetune" and other == "pretrain" and settings.finetune.start_from:
            start = self.other_finetuning(name, settings.finetune.start_from)
            yield rule, self.node_of(rule, start)
        elif rule == "evaluate_predict" and other == "finetune" and settings.evaluate.ensemble:
            for member in settings.evaluate.ensemble:
                yield other, self.node_of(other, self.other_finetuning(name, member))
        elif BY_NAME[other].per_group and not BY_NAME[rule].per_group:
            for part in self.finetunings_of(name):
                yield other, self.node_of(other, part)
        else:
            yield other, self.node_of(other, name)


def _reads_raw_files(rule: str, settings: Settings) -> bool:
    """Return whether a node uses a given vocabulary, or given weights unchanged."""
    if rule == "vocab":
        return bool(settings.vocab.model_file)
    return rule == "pretrain" and not settings.pretrain.reads_corpus


def _requires(settings: Settings, rule: str) -> bool:
    """Return whether an experiment with these settings reads the outputs of `rule`."""
    if rule in OF_CORPUS and not settings.reads_corpus:
        return False
    if rule == "sentences" and settings.pretrain.objective != "masked_lm":
        return False
    if rule == "sentences" and not settings.pretrain.reads_sentences:
        return False
    of_crawl = {"c4_punkt": True, "c4_clean": True, "corpus": False}.get(rule)
    return of_crawl is None or of_crawl is not bool(settings.corpus.files)
