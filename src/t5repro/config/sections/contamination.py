"""Settings of the rule `contamination`: evaluated rows in the corpus (`contamination.*`)."""

from typing import Literal

from t5repro.config.field import Section
from t5repro.config.sections.evaluate import EvaluatedSplit
from t5repro.config.sections.tasks import ListedTasks, TaskTexts
from t5repro.config.sections.tokens import TokensSettings

MethodName = Literal["longest", "gpt3", "palm", "palm_any", "llama2", "exact", "near"]


class ContaminationSettings(Section):
    """Evaluated rows in the corpus."""

    methods: list[MethodName] = []
    """Methods that decide which evaluated rows the corpus has (`docs/audit_a_score.md`); the report
    shows the scores with and without these rows. If empty, the corpus is not searched. An
    experiment that reads no corpus has nothing to search.
    """
    other_tasks: bool = True
    """Whether the training rows of the run's other tasks are searched as well."""


class SearchedTasks(ListedTasks, TaskTexts):
    """The part of `tasks` that determines the texts to search."""


class ContaminationStage(Section):
    """Settings of `contamination`."""

    contamination: ContaminationSettings
    tokens: TokensSettings
    tasks: SearchedTasks
    evaluate: EvaluatedSplit
