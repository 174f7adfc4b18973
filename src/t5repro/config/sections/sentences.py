"""Settings of the stage `sentences`, which reads `tokens.*` and the settings of Punkt."""

from t5repro.config.field import Section
from t5repro.config.sections.c4 import PunktSettings
from t5repro.config.sections.tokens import TokensSettings


class SentencesStage(Section):
    """Settings of `sentences`."""

    tokens: TokensSettings
    c4: PunktSettings
