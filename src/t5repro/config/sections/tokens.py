"""Settings of the tokenized corpus (`tokens.*`) and of the stage `tokens`."""

from t5repro.config.field import Section
from t5repro.config.languages import Language


class TokensSettings(Section):
    """The tokenized corpus."""

    languages: list[Language] = ["en"]
    """Languages of the corpus for pre-training."""


class TokensStage(Section):
    """Settings of `tokens`."""

    tokens: TokensSettings
