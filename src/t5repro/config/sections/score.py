"""Settings of the stage `evaluate_score`: the tasks, which read the predictions."""

from t5repro.config.field import Section
from t5repro.config.sections.tasks import TaskTexts


class ScoreStage(Section):
    """Settings of `evaluate_score`."""

    tasks: TaskTexts = TaskTexts()
