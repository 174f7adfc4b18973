"""The model of either stage and a batch of padding, for the cost of a step without its data."""

from typing import Any

from t5repro.config.known_tasks import known_tasks
from t5repro.config.sections.finetune import FinetuneStage
from t5repro.config.sections.model import tuned_family
from t5repro.config.sections.pretrain import PretrainStage
from t5repro.config.sections.tasks import TaskTexts
from t5repro.inputs.batches import Batch
from t5repro.model.labels import NO_COLUMNS, LabelColumns, TaskAnswer
from t5repro.systems.finetuning import finetuning_of
from t5repro.systems.pretraining import pretraining_of
from t5repro.task_facts import TaskFacts
from t5repro.task_table import BY_NAME, facts_of
from t5repro.train.compiled_model import compiled_model
from t5repro.train.step import TrainedModel


def fresh_model(
    settings: PretrainStage | FinetuneStage,
    *,
    seed: int,
    columns: LabelColumns | None = None,
    rows: int = 0,
) -> TrainedModel:
    """Return the freshly initialised model of a stage.

    Args:
        settings: of the stage.
        seed: of the initial weights and the dropout noise.
        columns: of the head of a network that writes no text; if absent, `example_columns`.
        rows: of a batch, for which a memory is made; if 0, as many as in the settings.
    """
    if isinstance(settings, PretrainStage):
        if rows:
            pretrain = settings.pretrain.model_copy(update={"batch_size": rows})
            settings = settings.model_copy(update={"pretrain": pretrain})
        system: Any = pretraining_of(settings.model)
        return compiled_model(system, settings, settings.pretrain, seed=seed)
    finetune = settings.finetune
    return compiled_model(
        finetuning_of(settings.model, finetune),
        settings,
        finetune,
        seed=seed,
        columns=example_columns(settings) if columns is None else columns,
        layer_decay=finetune.layer_decay,
        decays_gradients=finetune.layer_decay_on == "gradient",
    )


def padding_batch(settings: PretrainStage | FinetuneStage, rows: int) -> Batch:
    """Return a batch of padding with the shapes of a step."""
    if isinstance(settings, PretrainStage):
        return pretraining_of(settings.model).padding(settings, rows, NO_COLUMNS)
    system = finetuning_of(settings.model, settings.finetune)
    return system.padding(settings, rows, example_columns(settings))


def example_columns(settings: FinetuneStage) -> LabelColumns:
    """Return the columns of the tasks that a network is fine-tuned on; none if it writes text.

    Their kinds are the kinds of the tasks, their words are placeholders. The settings of a job have
    only the names of own tasks, which then count as labels of one text; `FinetuneStep` has all.
    """
    family = tuned_family(settings.model, settings.finetune)
    if family.writes_text:
        return NO_COLUMNS
    finetune = settings.finetune
    reverses = finetune.pair_order == "reversed"
    known = known_tasks(settings.tasks) if isinstance(settings.tasks, TaskTexts) else BY_NAME
    answers = {
        task: _answer(known.get(task) or facts_of(task), spans=family.has_span_head)
        for task in settings.tasks.names
    }
    return LabelColumns(
        {
            task: answer.as_trained(finetune.pair_head, reverses=reverses)
            for task, answer in answers.items()
        }
    )


def _answer(facts: TaskFacts, *, spans: bool) -> TaskAnswer:
    if facts.answer == "span" and spans:
        return TaskAnswer("span")
    if facts.answer == "tags" and spans:
        return TaskAnswer("tags", ("O", "B-", "I-"))
    if facts.answer == "number":
        return TaskAnswer("number")
    if facts.answer == "choice":
        return TaskAnswer("choice", tuple(map(str, range(facts.options))))
    return TaskAnswer("label", ("no", "yes"))
