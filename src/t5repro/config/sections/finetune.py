"""Settings of fine-tuning (`finetune.*`) and of the stage `finetune`."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from t5repro.config.field import ExperimentOrNone, Name, Section
from t5repro.config.sections.devices import DevicesSettings
from t5repro.config.sections.model import AddedLayers, ModelSettings, tuned_family
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.config.sections.tasks import TaskNames, TasksSettings
from t5repro.config.sections.training import LearningRate, TrainingSettings
from t5repro.config.sections.vocab import VocabSettings

Weight = Annotated[float, Field(gt=0)]


class FinetuneSettings(TrainingSettings, AddedLayers):
    """Multi-task fine-tuning (paper sections 3.1.2 and 3.5.2)."""

    steps: int = Field(262_144, ge=0)
    """Optimizer steps."""
    learning_rate: LearningRate = LearningRate(schedule="constant", factor=0.001)
    """Learning rate."""
    adapter_norms: Literal["all", "own"] = "all"
    """Trainable norms of the method `adapters`: all as in the paper's text, or only those inside
    the adapters as in the released code (D-046).
    """
    layer_decay: float = Field(1.0, gt=0, le=1)
    """Factor of the learning rate from a layer to the one below it, as in ELECTRA: heads have the
    rate itself, the top block has its square as factor. 1 means one rate for all weights.
    """
    layer_decay_on: Literal["rate", "gradient"] = "rate"
    """What `layer_decay` lowers: the rate, or as in XLNet the clipped gradients of the blocks below
    the top one, which Adam nearly cancels.
    """
    unfreezing_episodes: int = Field(0, ge=0)
    """Episodes of gradual unfreezing. 0 means the number of blocks of a stack."""
    start_from: ExperimentOrNone = ""
    """Earlier experiment of the run: its fine-tuned weights are the initial weights. If empty,
    they are the pre-trained ones.
    """
    mixture: Literal["proportional", "equal"] = "proportional"
    """Mixing rates: proportional to the number of examples of a task, or equal."""
    mixture_limit: int = Field(524_288, ge=1)
    """Artificial limit K on the number of examples of a task; examples."""
    mixture_temperature: float = Field(1.0, gt=0)
    """Temperature T: limited rates are raised to the power 1/T."""
    mixture_examples: Literal["rows", "released"] = "rows"
    """Number of examples of a task: the rows of its files, or the constant of the released GLUE and
    SuperGLUE mixtures, if there is one (D-040).
    """
    corpus_examples: float = Field(0, ge=0)
    """Number of examples of the corpus in the mixture; examples. Its rows have the objective of
    `pretrain`. 0 means that only tasks are drawn.
    """
    corpus_rate: Literal["limited", "stated"] = "limited"
    """Rate of the corpus: `corpus_examples` with K and T applied (`limited`), or `corpus_examples`
    itself (`stated`), as in the released `en_mix` and `all_mix`.
    """
    lm_weight: float = Field(0, ge=0)
    """Weight of the loss of the language model on the rows of tasks, next to the loss of labels
    (`answers`). GPT has 0.5.
    """
    classifier_dropout: float | None = Field(None, ge=0, lt=1)
    """Probability of dropout before the layer of labels, and before the pooler with
    `model.pooler_dropout`. If absent, `finetune.dropout_rate`.
    """
    number_scale: float = Field(1.0, gt=0)
    """Number that a network of labels is trained on the numbers of tasks divided by, and that its
    predictions are multiplied with: 5 in ELECTRA, whose only such task is STS-B.
    """
    doubled_tasks: tuple[Name, ...] = ()
    """Tasks with two segments of which a network of labels reads each training row in both orders,
    as two rows: MRPC and STS-B in ELECTRA.
    """
    task_dropout: dict[Name, Annotated[float, Field(ge=0, lt=1)]] = {}
    """Task -> probability of dropout before its labels, number or options, in place of
    `classifier_dropout`; of an encoder only. MT-DNN has 0.05 for CoLA.
    """
    pair_head: Literal["pooled", "san"] = "pooled"
    """Head of the tasks with labels of two texts: a linear layer on the pooled first position, or
    a stochastic answer network, as in MT-DNN; of an encoder only, with two token types.
    """
    turn_dropout: float = Field(0.1, ge=0, lt=1)
    """Share of the turns of a stochastic answer network that training leaves out."""
    pair_order: Literal["given", "reversed"] = "given"
    """Order of two texts in a row of a network of labels: as the task gives them, such as premise
    and hypothesis, or the second one first, as in MT-DNN. Predictions have that of training.
    """
    long_rows: Literal["cut", "drop"] = "cut"
    """Training examples longer than a row of a network of labels: cut, or left out, as in MT-DNN.
    Predictions cut them.
    """
    batches: Literal["rows", "tasks"] = "rows"
    """Examples of a batch of a network of labels: drawn row by row from all tasks, or those of one
    task, as in MT-DNN: blocks of its examples, each once an epoch, in an order over all tasks.
    """
    mixture_weights: dict[Name, Weight] = {}
    """Task -> number of examples that replaces its own, before K and T are applied."""

    @model_validator(mode="after")
    def _episodes_have_steps(self) -> "FinetuneSettings":
        if self.method == "gradual_unfreezing" and self.steps < self.unfreezing_episodes:
            raise ValueError(
                f"unfreezing_episodes {self.unfreezing_episodes} is more than the steps "
                f"{self.steps}; an episode has at least one step"
            )
        return self


class GroupedFinetuneSettings(FinetuneSettings):
    """Fine-tuning of an experiment: all tasks together, or in groups."""

    groups: dict[Name, dict[str, Any]] = {}
    """Groups of tasks that are fine-tuned separately from the same pre-trained weights: name ->
    dotted settings of the group (`use`, `tasks.names`, `finetune.*`, `evaluate.*`). If empty, all
    tasks are fine-tuned together (`docs/fine_tuning.md`).
    """


def check_finetuning(
    finetune: FinetuneSettings,
    pretrain: PretrainSettings,
    model: ModelSettings,
    tasks: TasksSettings,
) -> None:
    """Raise ValueError if a fine-tuning does not fit its pre-training, network or tasks."""
    if finetune.optimizer_state == "continue" and finetune.optimizer != pretrain.optimizer:
        raise ValueError(
            f"finetune.optimizer is {finetune.optimizer} and pretrain.optimizer "
            f"{pretrain.optimizer}, which have different states; set "
            "finetune.optimizer_state to 'fresh', or both optimizers alike"
        )
    if finetune.layer_decay != 1 and model.block_groups:
        raise ValueError(
            f"finetune.layer_decay is {finetune.layer_decay}, but blocks that share "
            "weights (model.block_groups) have no layer of their own; set it to 1"
        )
    for setting in ("mixture_weights", "task_dropout"):
        if unknown := sorted(set(getattr(finetune, setting)) - set(tasks.names)):
            raise ValueError(
                f"finetune.{setting} names {unknown}, which are not in tasks.names; "
                f"allowed: {sorted(tasks.names)}"
            )
    _check_labels(finetune, model)


OF_LABELS: dict[str, object] = {
    "pair_order": "given",
    "long_rows": "cut",
    "batches": "rows",
    "number_scale": 1.0,
    "doubled_tasks": (),
}
OF_ENCODERS: dict[str, object] = {"pair_head": "pooled", "task_dropout": {}}


def _check_labels(finetune: FinetuneSettings, model: ModelSettings) -> None:
    """Raise ValueError if a network lacks what settings of networks of labels change."""
    has_labels = not tuned_family(model, finetune).writes_text
    for defaults, exists, networks in (
        (OF_LABELS, has_labels, "networks of labels (model.architecture encoder, or answers)"),
        (OF_ENCODERS, model.family.has_span_head, "encoders (model.architecture encoder)"),
    ):
        for setting, default in defaults.items():
            value = getattr(finetune, setting)
            if value != default and not exists:
                raise ValueError(
                    f"finetune.{setting} is {value!r}, which only {networks} have; set it to "
                    f"{default!r}"
                )
    if finetune.pair_head == "san" and model.token_types < 2:
        raise ValueError(
            f"finetune.pair_head is san and model.token_types {model.token_types}, but it tells "
            "the two texts of a row apart by their types; set pair_head to pooled, or use a "
            "network with two token types, such as systems/bert"
        )


class FinetuneStage(Section):
    """Settings of `finetune`."""

    seed: int
    vocab: VocabSettings
    model: ModelSettings
    tasks: TaskNames
    pretrain: PretrainSettings = PretrainSettings()
    finetune: FinetuneSettings
    devices: DevicesSettings


class FinetuneStep(FinetuneStage):
    """Settings for the cost of a step of `finetune`: with the options of own tasks, too."""

    tasks: TasksSettings
