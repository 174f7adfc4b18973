"""How weights were trained, as far as the configuration of another library states it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from t5repro.model.labels import NO_COLUMNS, LabelColumns


@dataclass(frozen=True)
class TrainedAs:
    """The training of some weights.

    Attributes:
        dropout_rate: of all layers.
        classifier_dropout: before the head of labels; if absent, `dropout_rate`.
        columns: of the head of labels.
    """

    dropout_rate: float = 0.1
    classifier_dropout: float | None = None
    columns: LabelColumns = NO_COLUMNS

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any], columns: LabelColumns) -> "TrainedAs":
        """Return the training with the settings of a manifest of `pretrain` or `finetune`."""
        training = settings.get("finetune") or settings.get("pretrain") or {}
        return cls(
            training.get("dropout_rate", cls.dropout_rate),
            training.get("classifier_dropout"),
            columns,
        )

    @property
    def head_dropout(self) -> float:
        """Share of features dropped before the head of labels."""
        rate = self.classifier_dropout
        return self.dropout_rate if rate is None else rate

    def label_names(self, count: int) -> list[str]:
        """Return a name for each of the columns of the head.

        The labels of one task are its words; of several, ``task: word``. A number or the score of
        an option has the name of its task, and a label that no training row has its index.

        Args:
            count: number of columns, for weights without names.
        """
        names: list[str] = []
        answers = self.columns.answers
        for task, answer in answers.items():
            if answer.kind not in ("label", "tags"):
                names += [task] * answer.columns
                continue
            words = [word or f"LABEL_{index}" for index, word in enumerate(answer.words)]
            names += words if len(answers) == 1 else [f"{task}: {word}" for word in words]
        return names or [f"LABEL_{index}" for index in range(count)]


UNKNOWN = TrainedAs()
