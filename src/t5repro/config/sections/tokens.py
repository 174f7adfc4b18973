"""Settings of the corpus as ids (`tokens.*`) and of the stage `tokens`."""

from t5repro.config.field import Language, Section


class TokensSettings(Section):
    """The corpus as ids."""

    languages: list[Language] = ["en"]
    """Languages of the corpus to pre-train on."""


class TokensStage(Section):
    """Settings of `tokens`."""

    tokens: TokensSettings
