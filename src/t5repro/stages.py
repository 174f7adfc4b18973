"""The table of stages: one row per rule of the workflow.

A rule of `workflow/rules`, its command, its folder in ``results/<run>/``, its manifest and its
row have the same name. Settings, nodes, code files, DVC's stages, tolerances, impact and the
command line are derived from the table. A test compares `upstream` with the graph that Snakemake
builds.

To add a stage: a rule file, an entry module with one public function, a settings class in
`config/sections`, and a row.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """A rule of the workflow.

    Attributes:
        name: name of the rule, its command, its folder and its manifest.
        module: entry module in `t5repro`. The definitions that it reaches are the rule's code.
        settings: class of the settings that its jobs receive, in `t5repro.config`.
        upstream: rules that write the inputs of its jobs.
        produces: noun for its outputs in messages.
        on_device: whether its jobs compute on the device of training. Their bytes are reproducible
            on a CPU; other devices agree within a tolerance.
        versioned: whether DVC versions its outputs. Rules that fetch raw files or only check have
            no versioned outputs.
        per_experiment: whether experiments with different settings have different nodes. If false,
            a run has one node.
        per_group: whether an experiment has a node for each of its groups of tasks.
    """

    name: str
    module: str
    settings: str
    upstream: tuple[str, ...] = ()
    produces: str = ""
    on_device: bool = False
    versioned: bool = True
    per_experiment: bool = True
    per_group: bool = False


STAGES = (
    Stage(
        "data_fetch",
        module="data.fetch",
        settings="sections.data.DataStage",
        produces="raw files",
        versioned=False,
        per_experiment=False,
    ),
    Stage(
        "data",
        module="data.check",
        settings="sections.data.DataStage",
        produces="raw files",
        per_experiment=False,
    ),
    Stage(
        "preflight",
        module="train.preflight",
        settings="sections.pretrain.PretrainStage",
        produces="a check",
        versioned=False,
    ),
    Stage(
        "c4_punkt",
        module="c4.punkt",
        settings="sections.c4.PunktStage",
        upstream=("data",),
        produces="Punkt parameters",
    ),
    Stage(
        "c4_clean",
        module="c4.clean",
        settings="sections.c4.CleanStage",
        upstream=("data", "c4_punkt"),
        produces="cleaned pages",
    ),
    Stage(
        "corpus",
        module="c4.own_text.read",
        settings="sections.corpus.CorpusStage",
        upstream=("data",),
        produces="rows of own text",
    ),
    Stage(
        "c4_dedup",
        module="c4.deduplicate",
        settings="sections.c4.DedupStage",
        upstream=("c4_clean", "corpus"),
        produces="decisions on repeats",
    ),
    Stage(
        "c4",
        module="c4.write",
        settings="sections.c4.C4Stage",
        upstream=("data", "c4_punkt", "c4_clean", "corpus", "c4_dedup"),
        produces="corpus",
    ),
    Stage(
        "vocab_sample",
        module="vocab.sample",
        settings="sections.vocab.VocabSampleStage",
        upstream=("c4",),
        produces="vocabulary",
    ),
    Stage(
        "vocab",
        module="vocab.train",
        settings="sections.vocab.VocabStage",
        upstream=("vocab_sample",),
        produces="vocabulary",
    ),
    Stage(
        "tokens",
        module="vocab.encode",
        settings="sections.tokens.TokensStage",
        upstream=("c4", "vocab"),
        produces="tokens",
    ),
    Stage(
        "sentences",
        module="c4.sentence_starts",
        settings="sections.sentences.SentencesStage",
        upstream=("data", "c4_punkt", "c4", "vocab", "tokens"),
        produces="sentences",
    ),
    Stage(
        "pretrain",
        module="train.pretrain",
        settings="sections.pretrain.PretrainStage",
        upstream=("tokens", "sentences"),
        produces="weights",
        on_device=True,
    ),
    Stage(
        "tasks",
        module="tasks.build",
        settings="sections.tasks.TasksStage",
        upstream=("data",),
        produces="examples",
        per_experiment=False,
    ),
    Stage(
        "finetune",
        module="train.finetune",
        settings="sections.finetune.FinetuneStage",
        upstream=("pretrain", "tasks", "vocab", "tokens"),
        produces="weights",
        on_device=True,
        per_group=True,
    ),
    Stage(
        "evaluate_predict",
        module="evaluate.predict",
        settings="sections.evaluate.PredictStage",
        upstream=("finetune", "tasks", "vocab"),
        produces="predictions",
        on_device=True,
        per_group=True,
    ),
    Stage(
        "evaluate_score",
        module="evaluate.score",
        settings="sections.score.ScoreStage",
        upstream=("evaluate_predict", "tasks"),
        produces="scores",
    ),
    Stage(
        "contamination",
        module="contamination.rows_in_corpus",
        settings="sections.contamination.ContaminationStage",
        upstream=("c4", "vocab", "tokens", "tasks"),
        produces="evaluated rows in the corpus",
    ),
    Stage(
        "report",
        module="report.page",
        settings="schema.ReportStage",
        upstream=(
            "evaluate_score",
            "contamination",
            "evaluate_predict",
            "pretrain",
            "finetune",
            "vocab",
            "tokens",
            "c4",
        ),
        produces="report",
        per_experiment=False,
    ),
)
BY_NAME = {stage.name: stage for stage in STAGES}
# The stages that only the corpus needs: without one, a run has none of them.
OF_CORPUS = (
    "c4_punkt",
    "c4_clean",
    "corpus",
    "c4_dedup",
    "c4",
    "vocab_sample",
    "tokens",
    "sentences",
)
VERSIONED = tuple(stage.name for stage in STAGES if stage.versioned)


def ancestors(name: str) -> Iterator[str]:
    """Yield every stage on which `name` depends, directly or indirectly, once."""
    visited: set[str] = set()
    queue = list(BY_NAME[name].upstream)
    while queue:
        stage = queue.pop()
        if stage not in visited:
            visited.add(stage)
            yield stage
            queue.extend(BY_NAME[stage].upstream)


def depends_on_device(name: str) -> bool:
    """Return whether the outputs of a stage depend on the device of training."""
    return BY_NAME[name].on_device or any(BY_NAME[stage].on_device for stage in ancestors(name))


def stage_of_rule(rule: str) -> Stage | None:
    """Return the stage of a rule; None if it has none.

    It is `tasks` for `tasks_glue_cola`, and `c4` for `c4-other`, the rule of a node that has other
    files than the first one.
    """
    name = rule.partition("-")[0]
    if name in BY_NAME:
        return BY_NAME[name]
    return BY_NAME["tasks"] if name.startswith("tasks_") else None
