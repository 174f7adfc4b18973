"""Settings of the experiments of a run.

An experiment has one fine-tuning, or one for each of its groups of tasks (`groups`). A fine-tuning
depends on others if it continues one of them (``finetune.start_from``) or is an ensemble of them
(``evaluate.ensemble``). An experiment may use the vocabulary of an earlier one
(``vocab.from_experiment``), and continue its pre-training (``pretrain.from_experiment``).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from t5repro.config.flops import step_flops
from t5repro.config.groups import check_group, drop_other_tasks, finetunings
from t5repro.config.layers import apply_layers, validated
from t5repro.config.own_text import check_same_text, names_own_text
from t5repro.config.schema import Experiment, Settings, check_experiment_names
from t5repro.config.tree import lookup, nested
from t5repro.errors import SettingsError
from t5repro.stages import BY_NAME

SettingsAt = Callable[[str], Settings]

# Settings that all experiments of a run share:
SHARED = (
    "run",
    "data",
    "experiments",
    "tasks.folder",
    "tasks.files",
    "tasks.text",
    "tasks.own",
    "tasks.segments",
    "c4.engine",
    "c4.spark",
)
EARLIER_PRETRAINING = "pretrain.from_experiment"
# Settings that name a training to continue, of an experiment or of a group of its tasks:
CONTINUED = re.compile(
    rf"{re.escape(EARLIER_PRETRAINING)}|(finetune\.groups\.[^.]+\.)?finetune\.start_from"
)
VOCABULARY = frozenset({"vocab_sample", "vocab"})  # rules with nodes of other experiments


def with_experiment_per_seed(settings: Settings) -> Settings:
    """Return settings in which one experiment stands for each seed of an experiment.

    They are ordinary experiments: each has its own nodes and shares those that no seed affects.

    Raises:
        SettingsError: one of them has the name of another experiment.
    """
    seeds_of = {experiment.name: experiment.seeds for experiment in settings.experiments}
    experiments = [
        single for each in settings.experiments for single in _one_per_seed(each, seeds_of)
    ]
    try:
        check_experiment_names(experiments)
    except ValueError as error:
        raise SettingsError(str(error), keys=("experiments",)) from error
    return settings.model_copy(update={"experiments": experiments})


def _one_per_seed(
    experiment: Experiment, seeds_of: Mapping[str, Sequence[int]]
) -> list[Experiment]:
    """Return the experiment, or one experiment for each of its seeds.

    Args:
        experiment: the experiment.
        seeds_of: experiment -> its seeds.
    """
    return [
        experiment.model_copy(
            update={
                "name": _name_of_seed(experiment.name, seed, experiment.seeds),
                "change": {**_change_of_seed(experiment, seed, seeds_of), "seed": seed},
                "seeds": [],
            }
        )
        for seed in experiment.seeds
    ] or [experiment]


def _name_of_seed(experiment: str, seed: int, seeds: Sequence[int]) -> str:
    """Return the name of the experiment that stands for a seed."""
    return experiment if seed == seeds[0] else f"{experiment}_seed_{seed}"


def _change_of_seed(
    experiment: Experiment, seed: int, seeds_of: Mapping[str, Sequence[int]]
) -> dict[str, Any]:
    """Return the changes of an experiment, in which each seed continues trainings of its own seed.

    It continues the first seed of an experiment that does not have its own.
    """
    names = {
        source: _name_of_seed(source, seed, seeds)
        for source, seeds in seeds_of.items()
        if seed in seeds
    }
    return continuing(experiment.change, names)


def continuing(
    change: Mapping[str, Any], names: Mapping[str, str], path: str = ""
) -> dict[str, Any]:
    """Return changes, written as the user did, that continue experiments of other names.

    Args:
        change: settings, of which keys are dotted or nested.
        names: experiment -> the one to continue in its place.
        path: dotted name of the section that `change` is of, and a dot.
    """

    def value_at(name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return continuing(value, names, f"{name}.")
        is_start = isinstance(value, str) and CONTINUED.fullmatch(name)
        return names.get(value, value) if is_start else value

    return {key: value_at(f"{path}{key}", value) for key, value in change.items()}


def own_text_experiments(settings: Settings) -> list[str]:
    """Return the experiments that have own text while the run reads the crawl."""
    return [
        experiment.name
        for experiment in settings.experiments
        if names_own_text(_change_of(experiment), settings.corpus)
    ]


def _change_of(experiment: Experiment) -> dict[str, Any]:
    """Return the nested changes of an experiment."""
    try:
        return nested(experiment.change)
    except SettingsError as error:
        error.experiment = experiment.name
        raise


def settings_of_experiment(settings: Settings, name: str) -> Settings:
    """Return the settings of the run with the changes of one experiment, or of one fine-tuning.

    Args:
        settings: settings of the run.
        name: name of an experiment, or of the fine-tuning of one of its groups (`finetunings`).

    Raises:
        SettingsError: the experiment is unknown, or its changes are unknown or invalid.
    """
    return settings_by_name(settings)(name)


def settings_by_name(settings: Settings) -> SettingsAt:
    """Return `settings_of_experiment` of a run as a function that computes each name once.

    All callers with one object of settings share it: to validate every experiment again takes
    most of the planning of a large run.
    """
    return _settings_by_name(_Identity(settings))


class _Identity:
    """A value that is equal to itself only, as a key of a cache; settings cannot be hashed."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.settings is other.settings

    def __hash__(self) -> int:
        return id(self.settings)


@lru_cache(maxsize=8)
def _settings_by_name(identity: _Identity) -> SettingsAt:
    settings = identity.settings

    @cache
    def settings_at(name: str) -> Settings:
        experiment = _experiment_of(settings, name)
        try:
            if name == experiment:
                return _changed_settings(settings, experiment)
            changed = settings_at(experiment)
            groups = {node: group for group, node in finetunings(changed, experiment).items()}
            if name not in groups:
                raise SettingsError(f"experiment {experiment!r} has no fine-tuning {name!r}")
            source = changed.pretrain.from_experiment
            flops = pretraining_flops(settings, source) if source else 0
            return _settings_of_group(changed, groups[name], flops)
        except SettingsError as error:
            error.experiment = experiment
            raise

    return settings_at


def _experiment_of(settings: Settings, name: str) -> str:
    """Return the experiment with this name, or with a fine-tuning of this name.

    Raises:
        SettingsError: there is none.
    """
    names = [experiment.name for experiment in settings.experiments]
    if name in names:
        return name
    # The longest: `a_b_c` is rather the group `c` of `a_b` than the group `b_c` of `a`.
    starts = sorted((candidate for candidate in names if name.startswith(f"{candidate}_")), key=len)
    if not starts:
        raise SettingsError(f"no experiment {name!r}; the run has {sorted(names)}")
    return starts[-1]


def _changed_settings(settings: Settings, name: str) -> Settings:
    experiments = {experiment.name: experiment for experiment in settings.experiments}
    change = _change_of(experiments[name])
    check_same_text(name, change, settings.corpus)
    tree, unchanged = _tree_of(settings, change)
    apply_layers(tree, change)
    if source := lookup(tree, "vocab", "from_experiment"):
        tree["vocab"] = _vocabulary_settings(settings, name, source, change)
    earlier_flops = 0
    if source := lookup(tree, *EARLIER_PRETRAINING.split(".")):
        _check_earlier(settings, name, EARLIER_PRETRAINING, source)
        earlier_flops = pretraining_flops(settings, source)
    changed = validated(
        tree, label=f"experiment {name!r}: ", unchecked=change, earlier_flops=earlier_flops
    )
    changed = changed.model_copy(update=unchanged)
    for shared_name in SHARED:
        if value_of(changed, shared_name) != value_of(settings, shared_name):
            raise SettingsError(
                f"experiment {name!r} changes {shared_name}; all experiments of a run share "
                f"{list(SHARED)}",
                keys=tuple(shared_name.split(".")),
            )
    return changed


def _tree_of(
    settings: Settings, change: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return plain values of all sections but the large ones that stay, and these sections.

    To validate lists of raw files and experiments again for each experiment takes longest.
    """
    unchanged = {"run", "data", "experiments"} - change.keys()
    tree = settings.model_dump(mode="json", exclude=unchanged)
    return tree, {section: getattr(settings, section) for section in unchanged}


def pretraining_phases(settings: Settings, name: str) -> list[str]:
    """Return the experiments whose pre-trainings continue each other, the first one first.

    Args:
        settings: settings of the run.
        name: the experiment of the last phase.
    """
    names = [name]
    while source := settings_of_experiment(settings, names[0]).pretrain.from_experiment:
        names.insert(0, source)
    return names


def pretraining_flops(settings: Settings, name: str) -> int:
    """Return the floating-point operations of all phases of an experiment's pre-training."""
    return sum(
        phase.pretrain.steps
        * step_flops(phase.model, phase.pretrain, embedding_rows=phase.vocab.embedding_rows)
        for phase in map(settings_by_name(settings), pretraining_phases(settings, name))
    )


def _settings_of_group(settings: Settings, group: str, earlier_flops: float) -> Settings:
    """Return the settings of the fine-tuning of one group.

    Args:
        settings: settings of the experiment.
        group: name of the group; empty for an experiment without groups.
        earlier_flops: see `validated`.

    Raises:
        SettingsError: the group changes a setting that it may not change, or to an invalid value.
    """
    if not group:
        return settings
    change = nested(settings.finetune.groups[group])
    try:
        check_group(group, change)
        tree, unchanged = _tree_of(settings, change)
        tree["finetune"]["groups"] = {}
        apply_layers(tree, change)
        drop_other_tasks(tree, change)
        changed = validated(
            tree, label=f"finetune.groups.{group}: ", unchecked={}, earlier_flops=earlier_flops
        )
    except SettingsError as error:
        error.keys = ("finetune", "groups", group, *error.keys)
        raise
    return changed.model_copy(update=unchanged)


def _vocabulary_settings(
    settings: Settings, name: str, source: str, change: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the section `vocab` of an experiment that uses the vocabulary of another one."""
    _check_earlier(settings, name, "vocab.from_experiment", source)
    label = f"experiment {name!r}: vocab.from_experiment is {source!r}"
    if ignored := sorted(set(change.get("vocab", {})) - {"from_experiment"}):
        raise SettingsError(
            f"{label}, so all of its vocab settings are those of {source!r}, but it changes "
            f"{[f'vocab.{key}' for key in ignored]}; remove these changes, or vocab.from_experiment"
        )
    vocab = _changed_settings(settings, source).vocab
    if vocab.from_experiment:
        raise SettingsError(
            f"{label}, whose vocabulary is that of {vocab.from_experiment!r}; name that experiment"
        )
    return {**vocab.model_dump(mode="json"), "from_experiment": source}


def _check_earlier(settings: Settings, name: str, setting: str, source: str) -> None:
    """Raise SettingsError if an experiment refers to one that is not before it."""
    names = [experiment.name for experiment in settings.experiments]
    earlier = names[: names.index(name)]
    if source not in earlier:
        raise SettingsError(
            f"experiment {name!r}: {setting} is {source!r}; it must be one of the experiments "
            f"before it: {earlier}"
        )


def value_of(settings: Settings, name: str) -> Any:
    """Return the value of a setting by its dotted name."""
    value: Any = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value


def names_at(settings: Settings, rule: str, settings_at: SettingsAt | None = None) -> list[str]:
    """Return the names that may have a node of `rule`: experiments, or their fine-tunings.

    Args:
        settings: settings of the run.
        rule: name of the rule.
        settings_at: returns the settings of an experiment, for a caller that has this function.
    """
    experiments = [experiment.name for experiment in settings.experiments]
    if not BY_NAME[rule].per_group:
        return experiments
    settings_of = settings_at or settings_by_name(settings)
    return [
        name
        for experiment in experiments
        for name in finetunings(settings_of(experiment), experiment).values()
    ]
