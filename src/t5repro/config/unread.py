"""Refuse stated settings that nothing reads, such as a mask for an objective without one.

`READ_WITH` says with which values of other settings a setting is read. A setting of the run file
may serve some experiments only, so it is refused if none reads it; a setting of an experiment or of
a group of tasks, if that one does not. A default value may be stated anywhere: it resets another.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from t5repro.config.experiments import settings_by_name, value_of
from t5repro.config.families import ARCHITECTURES
from t5repro.config.groups import finetunings
from t5repro.config.schema import Settings
from t5repro.config.tree import leaves_of, nested
from t5repro.errors import Keys, SettingsError


class Condition(NamedTuple):
    """The values of a setting with which another one is read.

    Attributes:
        setting: dotted name.
        values: the values; if empty, all but the default.
        alternative: another setting with which it is read as well; empty for none.
    """

    setting: str
    values: tuple[str, ...] = ()
    alternative: str = ""


def _architectures(attribute: str) -> Condition:
    """Return the condition that the family of the network has an attribute."""
    names = [name for name, family in ARCHITECTURES.items() if getattr(family, attribute)]
    return Condition("model.architecture", tuple(names))


_OBJECTIVE = "pretrain.objective"
_MASKED_LM = Condition(_OBJECTIVE, ("masked_lm",))
_NOISE_MASK = Condition(_OBJECTIVE, ("replace_spans", "drop_tokens", "mass_style", "bert_style"))
_SHORT_ROWS = Condition("pretrain.masked_lm.rows", ("segment_pair", "electra_segments"))
_TEXTS = (_architectures("writes_text"), Condition("finetune.answers", ("text",)))
_OF_LABELS = tuple(
    name for name, family in ARCHITECTURES.items() if not family.writes_text or family.classifier
)
_FALLING = ("cosine", "linear", "bert_linear")
_WARMING = ("inverse_square_root", *_FALLING)

# Setting, or section -> conditions, all of which have to be met.
READ_WITH: dict[str, tuple[Condition, ...]] = {
    "pretrain.masked_lm": (_MASKED_LM,),
    "pretrain.masked_lm.short_row_share": (_SHORT_ROWS,),
    **{
        f"pretrain.masked_lm.shuffle_{name}": (Condition("pretrain.masked_lm.shuffle_share"),)
        for name in ("of", "unit", "identity")
    },
    "pretrain.replaced_tokens": (_architectures("has_generator"),),
    "pretrain.permutation_lm": (Condition(_OBJECTIVE, ("permutation_lm",)),),
    "pretrain.noise_mask": (_NOISE_MASK,),
    "pretrain.noise_density": (
        Condition(_OBJECTIVE, (*_NOISE_MASK.values, "prefix_lm", "masked_lm")),
    ),
    "pretrain.mean_noise_span_length": (
        _NOISE_MASK,
        Condition("pretrain.noise_mask", ("random_spans",)),
    ),
    "pretrain.final_sentinel": (Condition(_OBJECTIVE, ("replace_spans",)),),
    "pretrain.optimizer_state": (
        Condition("pretrain.from_experiment", alternative="pretrain.start_from"),
    ),
    "pretrain.concatenate_documents": (
        Condition(
            _OBJECTIVE,
            (*_NOISE_MASK.values, "deshuffling", "prefix_lm", "lm", "mixture_of_denoisers"),
        ),
    ),
    **{
        f"{stage}.learning_rate.{name}": (Condition(f"{stage}.learning_rate.schedule", schedules),)
        for stage in ("pretrain", "finetune")
        for name, schedules in (
            ("warmup_steps", _WARMING),
            ("warmup_start", ("cosine",)),
            ("final_factor", _FALLING),
        )
    },
    "finetune.adapter_width": (Condition("finetune.method", ("adapters",)),),
    "finetune.adapter_norms": (Condition("finetune.method", ("adapters",)),),
    "finetune.unfreezing_episodes": (Condition("finetune.method", ("gradual_unfreezing",)),),
    "finetune.layer_decay_on": (Condition("finetune.layer_decay"),),
    "finetune.mixture_limit": (Condition("finetune.mixture", ("proportional",)),),
    "finetune.mixture_temperature": (Condition("finetune.mixture", ("proportional",)),),
    "finetune.turn_dropout": (Condition("finetune.pair_head", ("san",)),),
    "finetune.corpus_rate": (Condition("finetune.corpus_examples"),),
    "evaluate.beam_tasks": _TEXTS,
    "evaluate.beam_width": (Condition("evaluate.beam_tasks"),),
    "evaluate.length_penalty": (Condition("evaluate.beam_tasks"),),
    "evaluate.answer_length": (_architectures("has_span_head"),),
    "evaluate.span_candidates": (_architectures("has_span_head"),),
    "evaluate.null_threshold": (_architectures("has_span_head"),),
    "tasks.windows": (_architectures("has_span_head"),),
    "tasks.options_first": (Condition("model.architecture", _OF_LABELS),),
    "model.initializer_range": (Condition("model.initializer", ("normal", "truncated_normal")),),
}


def check_stated(settings: Settings, stated: Mapping[str, Any]) -> None:
    """Refuse settings that are stated and not read.

    Args:
        settings: settings of the run.
        stated: nested settings of its run file and command line.

    Raises:
        SettingsError: nothing reads one of them.
    """
    settings_of = settings_by_name(settings)
    parts: list[Settings] = []
    for experiment in settings.experiments:
        changed = settings_of(experiment.name)
        experiments = finetunings(changed, experiment.name)
        own = {group: settings_of(node) for group, node in experiments.items()}
        try:
            _refuse_unread(nested(experiment.change), list(own.values()))
            for group, values in changed.finetune.groups.items():
                keys = ("finetune", "groups", group)
                _refuse_unread(nested(values), [own[group]], keys)
        except SettingsError as error:
            error.experiment = experiment.name
            raise
        parts += own.values()
    _refuse_unread(stated, parts)


def _refuse_unread(stated: Mapping[str, Any], parts: Sequence[Settings], keys: Keys = ()) -> None:
    """Raise SettingsError if no fine-tuning of `parts`, nor a stage before it, reads a setting."""
    for path, value in leaves_of(stated):
        name = ".".join(map(str, path))
        # The first part that reads it ends the search: a run may have hundreds.
        if not parts or not all(reason_unread(name, part) for part in parts):
            continue
        if value != _default(name):
            raise SettingsError(
                f"{name} is {value!r}, which {reason_unread(name, parts[0])}; leave it out, or "
                "state it only where it is read",
                keys=(*keys, *path),
            )


def reason_unread(name: str, settings: Settings) -> str:
    """Return why a setting is not read, by its dotted name; empty if it is."""
    section, _, field = name.partition(".")
    model = settings.model
    if section == "model" and field in model.unused:
        return f"a network of model.architecture {model.architecture} does not have"
    for prefix, conditions in READ_WITH.items():
        if name != prefix and not name.startswith(f"{prefix}."):
            continue
        for setting, values, alternative in conditions:
            value = value_of(settings, setting)
            if values and value not in values:
                return f"is read only with {setting} {' or '.join(values)}, not {value}"
            if not values and all(_is_default(name, settings) for name in {setting, alternative}):
                either = f" or {alternative}" if alternative else ""
                return f"is not read with {setting}{either} {value!r}"
    return ""


def _is_default(name: str, settings: Settings) -> bool:
    """Return whether a setting has its default value; also without a name."""
    return not name or bool(value_of(settings, name) == _default(name))


@cache
def _default(name: str) -> Any:
    """Return the default of a setting; a run of many experiments asks for few of them often."""
    return value_of(Settings(), name)
