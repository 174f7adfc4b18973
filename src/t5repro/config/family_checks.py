"""Checks of settings that depend on the family of the network (`config/families.py`).

A family states what its pre-training, its answers and its rows need; the checks read that and no
architecture. `schema.py` calls `check_family` for the settings of a run and of each experiment.
"""

import unicodedata
from typing import TYPE_CHECKING

from t5repro.config.families import ARCHITECTURES, Family
from t5repro.config.known_tasks import known_tasks
from t5repro.config.sections.model import tuned_family
from t5repro.config.sections.vocab import SPECIAL_PIECES
from t5repro.task_facts import AnswerKind

if TYPE_CHECKING:
    from t5repro.config.schema import Settings

FULL_WIDTH_TILDE = "\uff5e"


def check_family(settings: "Settings") -> None:
    """Raise ValueError if the settings of a training do not fit the family of the network."""
    _check_objective(settings)
    _check_labels(settings)
    _check_windows(settings)
    _check_positions(settings)
    _check_memory(settings)


def _check_objective(settings: "Settings") -> None:
    """Raise ValueError if the network cannot be pre-trained on the objective."""
    model, objective = settings.model, settings.pretrain.objective
    if objective == "lm" and model.family.needs_inputs:
        raise ValueError(
            f"pretrain.objective lm has no inputs, which model.architecture "
            f"{model.architecture} needs; use prefix_lm, or a language model"
        )
    only = model.family.objective
    owners: dict[str, list[str]] = {}
    for name, family in ARCHITECTURES.items():
        if family.objective:
            owners.setdefault(family.objective, []).append(name)
    if objective != only and (only or objective in owners):
        names = only or objective
        raise ValueError(
            f"pretrain.objective is {objective} and model.architecture "
            f"{model.architecture}; {names} is the objective of {' and '.join(owners[names])}, and "
            "of no other"
        )
    masked_lm = settings.pretrain.masked_lm
    if model.family.has_generator and (
        (masked_lm.pair_task, masked_lm.boundary_weight, masked_lm.mask_special_pieces)
        != ("none", 0, False)
    ):
        raise ValueError(
            f"pretrain.masked_lm has pair_task {masked_lm.pair_task}, boundary_weight "
            f"{masked_lm.boundary_weight} and mask_special_pieces {masked_lm.mask_special_pieces}, "
            f"but model.architecture {model.architecture} replaces pieces of the text only; set "
            "them to none, 0 and false, or use systems/electra"
        )


def _check_labels(settings: "Settings") -> None:
    """Raise ValueError if a network of labels is to be trained like one that writes text."""
    model, pretrain, finetune = settings.model, settings.pretrain, settings.finetune
    if finetune.lm_weight and finetune.answers == "text":
        raise ValueError(
            f"finetune.lm_weight is {finetune.lm_weight}, which counts next to the loss of labels; "
            "set it to 0, or finetune.answers to labels"
        )
    if finetune.answers == "labels" and not (model.family.writes_text and model.family.classifier):
        raise ValueError(
            f"finetune.answers is labels and model.architecture {model.architecture}; a linear "
            "layer on the last position belongs to language_model (an encoder has one of its own)"
        )
    family = tuned_family(model, finetune)
    if family.writes_text:
        _check_written_labels(settings)
        return
    which = family.title
    # A family that never writes text has the losses of several heads in pre-training too.
    sections = {} if model.family.writes_text else {"pretrain": pretrain}
    for name, training in {**sections, "finetune": finetune}.items():
        if training.loss_normaliser != "target_tokens":
            raise ValueError(
                f"{name}.loss_normaliser is {training.loss_normaliser}, but losses of {which} "
                "are means of its predictions; set it to target_tokens"
            )
    if finetune.optimizer_state != "fresh" or finetune.corpus_examples:
        raise ValueError(
            f"finetune.optimizer_state is {finetune.optimizer_state} and finetune.corpus_examples "
            f"{finetune.corpus_examples}, but the heads of {which} are new in fine-tuning; "
            "set them to fresh and 0"
        )
    of_pieces: tuple[AnswerKind, ...] = () if family.has_span_head else ("span", "tags")
    if text_tasks := _tasks_answered_by(settings, "text", *of_pieces):
        raise ValueError(
            f"tasks.names contains {text_tasks}, whose answers are texts, but {which} predicts "
            f"only {_answer_kinds(family)}; leave them out, or set tasks.names in the change of "
            "the experiment (WNLI and WSC have labels with tasks.text.winograd: labels)"
        )
    if settings.tasks.names and not settings.tasks.segments:
        raise ValueError(
            f"tasks.segments is false, but {which} reads the fields of a task as segments; set it "
            "to true for the whole run"
        )
    unused_rows = settings.vocab.embedding_rows - settings.vocab.total_ids
    if unused_rows < len(SPECIAL_PIECES):
        raise ValueError(
            f"vocab.vocab_size and vocab.extra_ids leave {unused_rows} rows of the embedding "
            f"unused, but {which} needs {len(SPECIAL_PIECES)} for its special pieces; make one "
            "of the two larger or smaller"
        )


def _answer_kinds(family: Family) -> str:
    """Return the kinds of answers of a family that writes no text, for a message."""
    kinds = "labels, numbers{} choices{}"
    more = (",", ", spans and tags") if family.has_span_head else (" and", "")
    return kinds.format(*more)


def _check_written_labels(settings: "Settings") -> None:
    """Raise ValueError if SentencePiece changes a label, which then no answer would equal.

    Whether the vocabulary has its characters is known when there is one, in fine-tuning.
    """
    for task in settings.tasks.names:
        for label in settings.tasks.own[task].answer_words if task in settings.tasks.own else ():
            written = _as_sentencepiece_writes(label, is_trained=not settings.vocab.model_file)
            if written != label:
                raise ValueError(
                    f"tasks.own.{task}.labels contains {label!r}, which the vocabulary turns into "
                    f"{written!r}, so that no answer is equal to it; write {written!r}, and the "
                    "value of the column in label_values"
                )


def _as_sentencepiece_writes(label: str, *, is_trained: bool) -> str:
    """Return a label as it comes back from a vocabulary, which the run trains or is given."""
    if not is_trained:  # by rules of its own, but spaces are those of any SentencePiece model
        return " ".join(filter(None, label.split(" ")))
    # SentencePiece's default, nmt_nfkc, keeps the full-width tilde.
    parts = (unicodedata.normalize("NFKC", part) for part in label.split(FULL_WIDTH_TILDE))
    return " ".join(FULL_WIDTH_TILDE.join(parts).split())


def _tasks_answered_by(settings: "Settings", *kinds: AnswerKind) -> list[str]:
    """Return the tasks of the run with one of these kinds of answers; unknown names have none."""
    tasks = known_tasks(settings.tasks)
    return [name for name in settings.tasks.names if name in tasks and tasks[name].answer in kinds]


def _check_windows(settings: "Settings") -> None:
    """Raise ValueError if a question about a text can fill a row of an encoder only."""
    model, tasks = settings.model, settings.tasks
    span_tasks = _tasks_answered_by(settings, "span")
    if not model.family.has_span_head or not span_tasks:
        return
    question = tasks.windows.question_length + model.pair_separators + 2
    for key, length in (
        ("finetune.inputs_length", settings.finetune.inputs_length),
        ("evaluate.inputs_length", settings.evaluate.inputs_length),
    ):
        if length <= question:
            raise ValueError(
                f"{key} is {length}, of which a question of {span_tasks[0]} with its special "
                f"pieces can take {question}; raise it, or lower tasks.windows.question_length"
            )


def _check_positions(settings: "Settings") -> None:
    """Raise ValueError if a row is longer than the table of learned positions."""
    model, evaluate = settings.model, settings.evaluate
    if model.positions != "learned":
        return
    pretrain, finetune = settings.pretrain, settings.finetune
    family = tuned_family(model, finetune)
    rows = {}
    if pretrain.steps:  # else the weights are taken as they are
        rows["pretrain"] = (pretrain.packed_inputs_length, pretrain.targets_length)
    if family.writes_text:
        # A decoder-only network reads 0 before the inputs.
        start = int(family.joined)
        rows["finetune"] = (finetune.packed_inputs_length, finetune.targets_length)
        rows["evaluate"] = (start + evaluate.inputs_length, evaluate.max_decode_length)
    else:
        rows |= {"finetune": (finetune.inputs_length, 0), "evaluate": (evaluate.inputs_length, 0)}
    for name, (inputs, targets) in rows.items():
        length = family.longest(inputs, targets)
        if length > model.max_positions:
            raise ValueError(
                f"model.max_positions is {model.max_positions}, but rows of {name} have "
                f"{length} positions; make them shorter, or increase model.max_positions"
            )


def _check_memory(settings: "Settings") -> None:
    """Raise ValueError if parts of a batch would have to share the memory of row slots."""
    model, pretrain = settings.model, settings.pretrain
    if not model.family.has_memory:
        return
    if pretrain.micro_batches > 1:
        raise ValueError(
            f"pretrain.micro_batches is {pretrain.micro_batches}, but the memory of "
            f"{model.family.title} belongs to all rows of a batch; set it to 1, and lower "
            "pretrain.batch_size to save memory"
        )
