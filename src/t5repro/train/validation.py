"""The loss and the accuracies on held-out text, which tell learning from memorising."""

from collections.abc import Iterable
from typing import Any

from keras import ops

from t5repro.engines.engine import engine


class Validation:
    """Measures the loss of a model in training on the same batches every time.

    Args:
        batches: features and targets, as for training; kept in memory after the first reading.
        every_steps: interval, a multiple of the history's; steps.
    """

    def __init__(self, batches: Iterable[Any], *, every_steps: int) -> None:
        self.every_steps = every_steps
        self._batches: Iterable[Any] = batches
        self._sums: Any = None

    def loss(self, model: Any) -> float:
        """Return the mean cross-entropy of a target id in nats, without dropout and z-loss.

        Unlike the training loss it does not depend on the padding of a batch, so models with
        other batches or `loss_normaliser` compare.
        """
        if self._sums is None:
            self._sums = engine().compiled_sums(model, sums)
            self._batches = list(self._batches)
        summed, tokens = 0.0, 0
        for batch in self._batches:
            batch_sum, batch_tokens = self._sums(batch)
            summed += float(batch_sum)
            tokens += int(batch_tokens)
        return summed / tokens

    def accuracies(self, model: Any) -> dict[str, float]:
        """Return the share of right predictions by name, of networks that predict parts of a row.

        Of an encoder these are masked pieces, and pairs: next sentence or sentence order.
        """
        names = model.objective.accuracy_names(model.network)
        if not names:
            return {}
        counted = engine().compiled_sums(model, right_answers)
        self._batches = list(self._batches)
        totals = [0] * (2 * len(names))
        for batch in self._batches:
            totals = [total + int(n) for total, n in zip(totals, counted(batch), strict=True)]
        pairs = zip(totals[::2], totals[1::2], strict=True)
        return {name: right / answers for name, (right, answers) in zip(names, pairs, strict=True)}


def right_answers(model: Any, features: Any, targets: Any) -> tuple[Any, ...]:
    """Return the right and all predictions of the rows of one replica, see `Loss`."""
    answers: tuple[Any, ...] = model.objective.right_answers(model.network, features, targets)
    return answers


def sums(model: Any, features: Any, targets: Any) -> tuple[Any, Any]:
    """Return the summed cross-entropy of the rows of one replica, and their target ids."""
    loss = model.objective
    losses = loss.target_losses(model.network, features, targets, z_loss=0.0, training=False)
    return ops.sum(losses), loss.count(targets)
