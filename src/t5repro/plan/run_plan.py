"""`RunPlan`: everything that a run file decides about the jobs of a run."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path

from t5repro.config.load import load_settings
from t5repro.config.origins import Origins
from t5repro.config.schema import Settings
from t5repro.config.task_files import check_listed_files
from t5repro.config.tree import merged
from t5repro.jobs.fields import fields_of
from t5repro.jobs.table import JOBS
from t5repro.plan.commands import param, source_of
from t5repro.plan.inputs import contamination, corpora, crawl_of_shard, inputs, lost, watched
from t5repro.plan.nodes import WITHOUT_TASKS, Key, RunNodes
from t5repro.plan.outputs import EARLIER, names_by_role, names_of_shard, shards_of
from t5repro.plan.paths import by_experiment, log_path, manifests, path, predictions_of
from t5repro.stages import BY_NAME, VERSIONED

SHARD = "{shard}"  # in the patterns of a rule


@dataclass(frozen=True)
class Node:
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
        return Key(self.rule, self.name)

    @property
    def label(self) -> str:
        """Rule and node in words."""
        return f"{self.rule} {self.name}".rstrip()


@dataclass(frozen=True)
class Job:
    """One job of a node.

    Attributes:
        key: the node.
        rule: the rule of the workflow, such as ``tasks_glue_cola`` or ``c4-other`` (`RuleForm`).
        log: its log.
        inputs: role -> files that it reads, without those that stand for its code.
        outputs: role -> files that it writes.
        settings: the settings that it receives, as JSON.
    """

    key: Key
    rule: str
    log: str
    inputs: dict[str, list[str]]
    outputs: dict[str, list[str]]
    settings: str


@dataclass(frozen=True)
class RuleForm:
    """A rule of the workflow for the nodes of a stage that have the same names of files.

    Outputs of a rule cannot depend on a wildcard, so a stage may need several rules: the rule of
    the first node's outputs has the stage's own name, every other is called ``<stage>-<its first
    node>``.

    Attributes:
        name: name of the rule.
        nodes: names of its nodes.
        outputs: role -> patterns of the files; those of earlier steps only if they are needed.
    """

    name: str
    nodes: tuple[str, ...]
    outputs: dict[str, str | list[str]]


class RunPlan:
    """The nodes and jobs of a run.

    Args:
        settings: settings of the run.
        as_written: returns these settings with the withdrawn files that the run file lists. A plan
            without it divides the crawl as if these had never been listed.

    Raises:
        SettingsError: the changes of an experiment are invalid.
    """

    def __init__(
        self, settings: Settings, as_written: Callable[[], Settings] | None = None
    ) -> None:
        self.settings = settings
        self._nodes = RunNodes(settings, as_written or (lambda: settings))
        self.experiments, self.tasks = self._nodes.experiments, self._nodes.tasks
        self.settings_text = cache(self._settings_text)
        self.forms = cache(self._forms)
        self._inputs = cache(partial(inputs, self._nodes))
        self._watched = cache(lambda key: watched(self._inputs(key)))

    @classmethod
    def of_run_file(cls, *run_files: Path) -> "RunPlan":
        """Return the plan of a run file, or of several, merged as Snakemake merges them.

        Raises:
            SettingsError: the file cannot be read, a setting is unknown or invalid, or a file of a
                task is not listed.
        """
        origins = Origins(run_files)
        with origins.located_errors():
            values = merged(origins.values)
            settings = load_settings(values)
            check_listed_files(settings)
            return cls(settings, lambda: load_settings(values, keep_withdrawn=True))

    @cached_property
    def nodes(self) -> list[Node]:
        """The nodes, in the order of the stages."""
        users = self._nodes.users()
        return [
            Node(*key, self._nodes.settings_at(key), self._nodes.upstream(key), tuple(users[key]))
            for key in self._nodes.in_order(users)
        ]

    def nodes_of(self, rule: str) -> dict[str, str]:
        """Return experiment -> its node of `rule`; of a rule per group, fine-tuning -> its node."""
        return self._nodes.nodes_of(rule)

    def node_of(self, rule: str, name: str) -> str:
        """Return the node of `rule` that an experiment or a fine-tuning uses."""
        return self._nodes.node_of(rule, name).node

    def settings_at(self, name: str) -> Settings:
        """Return the settings of an experiment or fine-tuning, which may give a node its name."""
        return self._nodes.settings_of(name)

    def _settings_text(self, rule: str, node: str = "") -> str:
        """Return the settings that a job receives, as JSON."""
        return json.dumps(self._nodes.received(Key(rule, node)), sort_keys=True)

    def inputs(self, rule: str, node: str = "", shard: str = "") -> dict[str, list[str]]:
        """Return role -> files that a job reads.

        Args:
            rule: name of the rule.
            node: name of the node.
            shard: number of a cleaning job.

        Raises:
            SettingsError: a raw file that the settings name is not listed.
        """
        return self._of_job(self._inputs, Key(rule, node), shard)

    def _of_job(
        self, roles: Callable[[Key], dict[str, list[str]]], key: Key, shard: str
    ) -> dict[str, list[str]]:
        # Only cleaning divides a node into jobs, which share all but the crawl.
        crawl = crawl_of_shard(self._nodes, key, int(shard)) if shard else {}
        return {**crawl, **roles(key)}

    def param(self, rule: str, name: str, node: str = "", shard: str = "") -> str | list[str]:
        """Return a parameter of a job's command line, by field of the job."""
        return param(self._nodes, Key(rule, node), name, shard)

    def words(self, rule: str, node: str = "") -> list[str]:
        """Return the command line of a job after ``t5repro stage``, without resources and log."""
        roles = {"input": self.inputs(rule, node), "output": self.outputs(rule, node)}
        words = [rule, "--settings", self.settings_text(rule, node)]
        for field in fields_of(JOBS[rule]):
            source = source_of(rule, field)
            if source == "params":
                value = self.param(rule, field.name, node)
                words += [field.option, *([value] if isinstance(value, str) else value)]
            elif source in roles:
                words += [field.option, *roles[source].get(field.name, [])]
        return words

    def outputs(self, rule: str, node: str = "", shard: str = "") -> dict[str, list[str]]:
        """Return role -> files that a job writes."""
        key = Key(rule, node)
        names = names_of_shard(self._nodes, shard) if shard else names_by_role(self._nodes, key)
        return {
            role: [path(self._nodes, key, n) for n in file_names]
            for role, file_names in names.items()
        }

    def jobs(self, rule: str, node: str = "") -> list[Job]:
        """Return the jobs of a node: one, or one for each shard of cleaning."""
        key = Key(rule, node)
        settings = self._nodes.settings_at(key)
        return [
            Job(
                key,
                self.rule_of(rule, node),
                log_path(self._nodes, key, shard),
                self.inputs(rule, node, shard),
                self.outputs(rule, node, shard),
                self.settings_text(rule, node),
            )
            for shard in (shards_of(settings) if rule == "c4_clean" else [""])
        ]

    def by_experiment(self, rule: str, name: str) -> dict[str, Path]:
        """Return experiment, or fine-tuning, -> file `name` of its node of `rule`."""
        return {user: Path(file) for user, file in by_experiment(self._nodes, rule, name).items()}

    def corpora(self, rule: str) -> dict[str, Path]:
        """Return experiment that reads the corpus -> manifest of its node of `rule`."""
        return {name: Path(file) for name, file in corpora(self._nodes, rule).items()}

    def contamination(self) -> dict[str, Path]:
        """Return experiment with a searched corpus -> the evaluated rows that it has."""
        return {name: Path(file) for name, file in contamination(self._nodes).items()}

    def predictions_of(self, experiment: str) -> list[Path]:
        """Return the predictions of an experiment with its last weights."""
        return [Path(file) for file in predictions_of(self._nodes, experiment)]

    # For the rule files

    def watched(self, rule: str, node: str = "", shard: str = "") -> dict[str, list[str]]:
        """Return role -> inputs that decide whether a job is to run; see `inputs`."""
        return self._of_job(self._watched, Key(rule, node), shard)

    @cached_property
    def lost(self) -> dict[Key, list[str]]:
        """Unfinished node -> absent files that it reads, although their jobs have ended.

        Snakemake does not ask for a file that only a manifest stands for; without this its job
        would not be repeated.
        """
        if not os.path.isdir(path(self._nodes, Key("", ""), "")):
            return {}  # nothing has ended
        files = {
            node.key: lost(self._inputs(node.key))
            for node in self.nodes
            if not all(map(os.path.exists, manifests(self._nodes, node.key)))
        }
        return {key: names for key, names in files.items() if names}

    def rule_of(self, rule: str, node: str) -> str:
        """Return the rule of the workflow that makes a node."""
        if rule == "tasks":
            return stage_name(Key(rule, node))
        return next(form.name for form in self.forms(rule) if node in form.nodes)

    def _forms(self, rule: str, with_earlier: bool = False) -> list[RuleForm]:
        """Return the rules that stand for a stage, one for all nodes with the same files.

        Four fifths of the files of a study are weights and predictions of earlier steps. Snakemake
        would make a pattern and a path of each; their manifest stands for them, unless one is lost.

        Args:
            rule: name of the stage.
            with_earlier: whether to declare these files, too, because a storage has to move them.
        """
        nodes_by_names: dict[str, list[str]] = {}
        for key in self._nodes.distinct(rule):
            # Nodes with equal names of files share a rule: its outputs have a wildcard for the
            # node.
            names = SHARD if rule == "c4_clean" else str(names_by_role(self._nodes, key))
            nodes_by_names.setdefault(names, []).append(key.node)
        forms = []
        for index, nodes in enumerate(nodes_by_names.values()):
            outputs = self.patterns(rule, nodes[0])
            if not (with_earlier or self._has_lost_earlier(rule, nodes)) and EARLIER in outputs:
                outputs[EARLIER] = []
            forms.append(RuleForm(f"{rule}-{nodes[0]}" if index else rule, tuple(nodes), outputs))
        return forms

    def _has_lost_earlier(self, rule: str, nodes: list[str]) -> bool:
        """Return whether a file of an earlier step is absent that a job is going to read."""
        absent = {name for names in self.lost.values() for name in names}
        earlier = (self.outputs(rule, node).get(EARLIER, ()) for node in nodes if absent)
        return any(not absent.isdisjoint(files) for files in earlier)

    def patterns(self, rule: str, node: str = "") -> dict[str, str | list[str]]:
        """Return role -> patterns of the outputs of a rule; of a single file without a list.

        Args:
            rule: name of the rule.
            node: a node with these files; any, if all have the same.
        """
        key = Key(rule, node)
        has_shards = rule == "c4_clean"
        names = (
            names_of_shard(self._nodes, SHARD) if has_shards else names_by_role(self._nodes, key)
        )
        pattern = Key(rule, "{node}" if BY_NAME[rule].per_experiment else node)
        return {
            role: paths[0] if len(paths) == 1 else paths
            for role, files in names.items()
            for paths in [[path(self._nodes, pattern, name) for name in files]]
        }

    @cached_property
    def targets(self) -> dict[str, list[str]]:
        """Stage of DVC -> its manifests, and what it has lost; also a rule, such as ``vocab``."""
        targets: dict[str, list[str]] = {}
        for rule in VERSIONED:
            files_of_nodes = {
                key: [*manifests(self._nodes, key), *self.lost.get(key, ())]
                for key in self._nodes.required(rule)
            }
            for key, files in files_of_nodes.items():
                targets[stage_name(key)] = files
            if BY_NAME[rule].per_experiment:
                targets[rule] = [file for files in files_of_nodes.values() for file in files]
        return targets

    @cached_property
    def manifests(self) -> list[str]:
        """The manifest of every job; a run without tasks ends with pre-training."""
        rules = VERSIONED if self.tasks else WITHOUT_TASKS
        keys = (key for rule in rules for key in self._nodes.required(rule))
        return sorted({file for key in keys for file in manifests(self._nodes, key)})


def stage_name(key: Key) -> str:
    """Return the name of a node's stage in `dvc.yaml`."""
    return f"{key.rule}{'_' if key.rule == 'tasks' else '-'}{key.node}".rstrip("-")
