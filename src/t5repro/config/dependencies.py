"""Checks of the experiments that depend on others of their run.

A pre-training may continue that of an earlier experiment (``pretrain.from_experiment``), a
fine-tuning that of one (``finetune.start_from``), or predict with the models of others
(``evaluate.ensemble``). If experiments have groups of tasks, a group depends on the same group of
the other, or on all of an experiment without groups.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from t5repro.config.answered_tasks import check_answered, tasks_with_training_files
from t5repro.config.experiments import SettingsAt, settings_by_name
from t5repro.config.groups import finetunings
from t5repro.config.schema import Settings
from t5repro.config.sections.pretrain import MaskedLM, PretrainSettings
from t5repro.config.stage_settings import settings_of_stages
from t5repro.errors import SettingsError
from t5repro.stages import BY_NAME, STAGES, ancestors


def finetuning_named(settings: Settings, experiment: str, group: str) -> str:
    """Return the fine-tuning of an experiment on which a group of another one depends.

    Args:
        settings: settings of the experiment.
        experiment: its name.
        group: group of the other experiment; "" if it has none.
    """
    names = finetunings(settings, experiment)
    return names[group] if group in names else names[""]


def check_experiments(settings: Settings) -> None:
    """Check the dependencies between the experiments of a run.

    Args:
        settings: settings of the run.

    Raises:
        SettingsError: an experiment is invalid, or depends on one that is unknown, comes later or
            does not fit.
    """
    names = [experiment.name for experiment in settings.experiments]
    settings_at = settings_by_name(settings)
    experiments = {name: settings_at(name) for name in names}
    # Filled in the order of the run file: an experiment depends on earlier ones only.
    parts_of: dict[str, dict[str, Settings]] = {}
    for name, changed in experiments.items():
        try:
            if changed.pretrain.from_experiment:
                _check_phase(name, experiments)
            parts_of[name] = _finetunings_settings(name, settings_at, names)
            for group, part in parts_of[name].items():
                if source := part.finetune.start_from:
                    _check_start(name, group, part, source, parts_of)
                    _check_equal(
                        f"experiment {name!r}: finetune.start_from names {source!r}, with another "
                        "vocabulary",
                        _vocabulary_stages(name, experiments),
                        _vocabulary_stages(source, experiments),
                    )
            if changed.evaluate.ensemble:
                _check_ensemble(name, experiments)
            check_answers(settings, name, tasks_with_training_files)
        # The caller says in which lines of the run file the experiment is.
        except SettingsError as error:
            error.experiment = name
            raise


def check_answers(
    settings: Settings, experiment: str, trained_tasks: Callable[[Settings], Collection[str]]
) -> None:
    """Refuse tasks of an experiment that its network, or a member of its ensemble, cannot answer.

    Args:
        settings: settings of the run.
        experiment: name of the experiment.
        trained_tasks: returns the tasks with training rows of a fine-tuning.

    Raises:
        SettingsError: there is such a task.
    """
    settings_of = settings_by_name(settings)
    changed = settings_of(experiment)
    members = changed.evaluate.ensemble or [experiment]
    for group, name in finetunings(changed, experiment).items():
        finetuned = [
            settings_of(finetuning_named(settings_of(member), member, group)) for member in members
        ]
        check_answered(settings_of(name), [trained_tasks(member) for member in finetuned])


def _finetunings_settings(
    experiment: str, settings_at: SettingsAt, experiments: list[str]
) -> dict[str, Settings]:
    """Return group -> settings of its fine-tuning.

    Raises:
        SettingsError: a fine-tuning has the name of an experiment, or its own number of steps.
    """
    changed = settings_at(experiment)
    parts: dict[str, Settings] = {}
    for group, name in finetunings(changed, experiment).items():
        # Nodes are named by experiment and group: two of one name would share their files.
        if group and name in experiments:
            raise SettingsError(
                f"finetune.groups.{group} of experiment {experiment!r} is called {name!r}, as "
                "another experiment; rename one of the two"
            )
        parts[group] = settings_at(name)
        # The last step of all groups is one, to which their earlier checkpoints are compared.
        if (
            changed.evaluate.checkpoints == "all"
            and parts[group].finetune.steps != changed.finetune.steps
        ):
            raise SettingsError(
                f"finetune.groups.{group} has {parts[group].finetune.steps} steps and experiment "
                f"{experiment!r} {changed.finetune.steps}; with evaluate.checkpoints 'all', "
                "finetune.steps of its groups must be the same"
            )
    return parts


def _check_start(
    name: str,
    group: str,
    settings: Settings,
    source: str,
    parts_of: Mapping[str, Mapping[str, Settings]],
) -> None:
    """Raise SettingsError if a fine-tuning cannot continue another one.

    Args:
        name: experiment of the fine-tuning.
        group: its group of tasks.
        settings: its settings.
        source: experiment to continue.
        parts_of: experiment -> group -> settings, of this experiment and all before it.
    """
    label = f"experiment {name!r}: finetune.start_from"
    earlier = [experiment for experiment in parts_of if experiment != name]
    if source not in earlier:
        raise SettingsError(
            f"{label} is {source!r}; it must be one of the experiments before it: {earlier}"
        )
    parts = parts_of[source]
    # An experiment without groups has seen all tasks, so any group may continue it.
    if group not in parts and "" not in parts:
        raise SettingsError(
            f"{label} is {source!r}, which is fine-tuned in the groups {sorted(parts)}, not on "
            f"{group or 'all tasks'}; start from an experiment without groups or with the same"
        )
    start_settings = parts[group] if group in parts else parts[""]
    # What comes before fine-tuning must be equal: the same vocabulary, ids and network.
    before_finetuning = _stages(ancestors("finetune"))
    _check_equal(
        f"{label} names {source!r}",
        _without_devices(settings_of_stages(settings, before_finetuning)),
        _without_devices(settings_of_stages(start_settings, before_finetuning)),
    )
    # Adapters may be added to a trained network, but not removed from it.
    if start_settings.finetune.width and start_settings.finetune.width != settings.finetune.width:
        raise SettingsError(
            f"{label} is {source!r}, whose network has adapters of width "
            f"{start_settings.finetune.adapter_width}; finetune.method and finetune.adapter_width "
            "of both must be the same"
        )


def _check_phase(name: str, experiments: Mapping[str, Settings]) -> None:
    """Raise SettingsError if a pre-training cannot continue that of an earlier experiment.

    Args:
        name: experiment of the later phase.
        experiments: name -> settings.
    """
    pretrain = experiments[name].pretrain
    earlier = experiments[pretrain.from_experiment].pretrain
    label = f"experiment {name!r}: pretrain.from_experiment names {pretrain.from_experiment!r}"
    parts, earlier_parts = (
        {**_vocabulary_stages(phase, experiments), "model": experiments[phase].model.model_dump()}
        for phase in (name, pretrain.from_experiment)
    )
    _check_equal(label, parts, earlier_parts)
    heads = {classes for classes in map(_pair_classes, (pretrain, earlier)) if classes}
    if len(heads) > 1:
        raise SettingsError(
            f"{label}, whose head of pairs has {_pair_classes(earlier)} classes; that of "
            f"pretrain.masked_lm.pair_task {pretrain.masked_lm.pair_task} has "
            f"{_pair_classes(pretrain)}: both need a task with as many classes, or none"
        )
    if pretrain.optimizer_state == "continue":
        _check_equal(
            f"{label}, whose optimizer it continues unless pretrain.optimizer_state is 'fresh'",
            _slots_follow_from(pretrain),
            _slots_follow_from(earlier),
        )


def _slots_follow_from(pretrain: PretrainSettings) -> dict[str, str]:
    """Return what decides the slots of the optimizer of pre-training, besides the network."""
    masked_lm = pretrain.masked_lm if pretrain.objective == "masked_lm" else MaskedLM()
    heads = {
        "pair_task": masked_lm.pair_classes > 0,
        "boundary_weight": masked_lm.boundary_weight > 0,
    }
    return {
        "pretrain.optimizer": pretrain.optimizer,
        "pretrain.replaced_tokens.task": pretrain.replaced_tokens.task,  # decides heads, too
        **{
            f"the head of pretrain.masked_lm.{name}": "present" if exists else "absent"
            for name, exists in heads.items()
        },
    }


def _pair_classes(pretrain: PretrainSettings) -> int:
    """Return the classes of the head of pairs of a pre-training; 0 without one."""
    return pretrain.masked_lm.pair_classes if pretrain.objective == "masked_lm" else 0


def _check_ensemble(name: str, experiments: Mapping[str, Settings]) -> None:
    label = f"experiment {name!r}: evaluate.ensemble"
    settings = experiments[name]
    for member in settings.evaluate.ensemble:
        if member not in experiments:
            raise SettingsError(
                f"{label} names {member!r}; the experiments are {list(experiments)}"
            )
        member_settings = experiments[member]
        # No chains: members predict with the models of their own fine-tuning.
        if member_settings.evaluate.ensemble:
            raise SettingsError(f"{label} names {member!r}, which is an ensemble itself")
        _check_equal(
            f"{label} names {member!r}",
            _ensemble_parts(name, experiments),
            _ensemble_parts(member, experiments),
        )
        if list(settings.finetune.groups) != list(member_settings.finetune.groups):
            raise SettingsError(
                f"{label} names {member!r}, which has the groups of tasks "
                f"{list(member_settings.finetune.groups)} instead of "
                f"{list(settings.finetune.groups)}; members have the same finetune.groups"
            )
        if settings.finetune.width != member_settings.finetune.width:
            raise SettingsError(
                f"{label} names {member!r}, which has other adapters; finetune.method and "
                "finetune.adapter_width of the ensemble and its members must be the same"
            )


def _ensemble_parts(name: str, experiments: Mapping[str, Settings]) -> dict[str, Any]:
    """Return the settings that the members of an ensemble have in common."""
    settings = experiments[name]
    return {
        "seed": settings.seed,
        **_vocabulary_stages(name, experiments),
        "model": settings.model.model_dump(mode="json"),
    }


def _vocabulary_stages(name: str, experiments: Mapping[str, Settings]) -> dict[str, Any]:
    """Return the settings of the stages that make the vocabulary of an experiment."""
    source = experiments[name].vocab.from_experiment or name
    # A given vocabulary does not depend on the corpus.
    earlier = () if experiments[source].vocab.model_file else ancestors("vocab")
    return settings_of_stages(experiments[source], _stages({"vocab", *earlier}))


def _stages(names: Iterable[str]) -> list[str]:
    """Return those stages that experiments may have nodes of, in the order of a run."""
    required = set(names)
    return [stage.name for stage in STAGES if stage.name in required and stage.per_experiment]


def _without_devices(stages: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of stages without the devices: weights move from one device to another."""
    return {
        stage: {key: value for key, value in values.items() if key != "devices"}
        for stage, values in stages.items()
    }


def _check_equal(label: str, values: Mapping[str, Any], other_values: Mapping[str, Any]) -> None:
    """Raise SettingsError if two experiments differ in settings that must be equal."""
    # The first difference is enough: others often follow from it.
    for key in values:
        if values[key] != other_values[key]:
            # The name of a setting does not contain its stage.
            name = "" if key in BY_NAME else key
            raise SettingsError(
                f"{label}, but {_difference(name, values[key], other_values[key])}; "
                "both must have the same there"
            )


def _difference(name: str, value: Any, other_value: Any) -> str:
    """Return the first setting in which two trees differ, with both values."""
    if isinstance(value, dict) and isinstance(other_value, dict) and set(value) == set(other_value):
        for key in value:
            if value[key] != other_value[key]:
                return _difference(f"{name}.{key}".lstrip("."), value[key], other_value[key])
    return f"{name} is {value!r} and {other_value!r}"
