"""The loss of every experiment on held-out text: per target token, per character, per operation.

The validation split of the corpus is one text for all experiments that share corpus and vocabulary.
Nats per character compare vocabularies, too; the operations of training compare models of different
size.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from t5repro.config.experiments import pretraining_flops, settings_of_experiment
from t5repro.config.flops import step_flops
from t5repro.config.schema import Settings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.errors import ArtifactError
from t5repro.files import read_json
from t5repro.report.experiments import Experiment
from t5repro.report.links import manifest_of
from t5repro.report.loss_curves import PETA, read_history
from t5repro.report.titles import UNDEFINED, format_mean

ACCURACY = ".accuracy"  # ends the name of a column of accuracies
PERPLEXITY = "masked_pieces.perplexity"
PAIRS = "pairs"  # in manifests; on the page the pair task itself


@dataclass(frozen=True)
class HeldOutRow:
    """The loss of an experiment on held-out text after its last step, as text.

    Attributes:
        experiment: its name.
        style: number of its colour.
        objective: objective and mask, on which the loss depends.
        loss: nats per target token; of several seeds the mean, with its standard deviation.
        perplexity: exponential of the mean.
        per_character: the mean in nats per character of the held-out text.
        operations: floating-point operations of the training, in multiples of 10^15.
        figures: column of a published table, such as ``sentence_order.accuracy`` -> its figure
            after each seed's training, accuracies in percent; of a network that predicts parts of a
            row (`MaskedLoss.accuracy_names`).
    """

    experiment: str
    style: int
    objective: str
    loss: str
    perplexity: str
    per_character: str
    operations: str
    figures: Mapping[str, Sequence[float]]

    @property
    def accuracies(self) -> dict[str, str]:
        """Return kind of prediction -> share of right ones, in percent, as text."""
        return {
            column.removesuffix(ACCURACY): format_mean(shares, digits=1)
            for column, shares in self.figures.items()
            if column.endswith(ACCURACY)
        }


def held_out_rows(
    settings: Settings,
    experiments: Sequence[Experiment],
    histories: Mapping[str, Path],
    corpora: Mapping[str, Path],
    tokens: Mapping[str, Path],
) -> list[HeldOutRow]:
    """Return a row for each experiment with a measured loss on held-out text.

    Args:
        settings: settings of the run.
        experiments: the experiments of the page.
        histories: arm -> ``history.csv`` of its pre-training.
        corpora: arm -> manifest of its corpus.
        tokens: arm -> manifest of its ids.

    Raises:
        ArtifactError: a file is missing or malformed.
    """
    rows = []
    for experiment in experiments:
        measured = {arm: read_history(histories[arm], "validation_loss") for arm in experiment.arms}
        losses = [points[-1][1] for points in measured.values() if points]
        if not losses:
            continue
        arm = experiment.arms[0]
        resolved = settings_of_experiment(settings, arm)
        mean = statistics.fmean(losses)
        density = tokens_per_character(corpora[arm], tokens[arm]) if arm in tokens else None
        rows.append(
            HeldOutRow(
                experiment=experiment.name,
                style=experiment.style,
                objective=_objective(resolved.pretrain),
                loss=format_mean(losses, digits=3),
                perplexity=f"{math.exp(mean):,.1f}",
                per_character=UNDEFINED if density is None else f"{mean * density:.3f}",
                operations=f"{pretraining_flops(settings, arm) / PETA:,.3g}",
                figures=_figures(
                    losses, [histories[arm] for arm in experiment.arms], resolved.pretrain
                ),
            )
        )
    return rows


def _figures(
    losses: Sequence[float], histories: Iterable[Path], pretrain: PretrainSettings
) -> dict[str, Sequence[float]]:
    """Return column of a published table -> figure of each training on held-out text.

    Args:
        losses: the last ones there, in nats per target token.
        histories: of the trainings of an experiment, next to their manifests.
        pretrain: their settings.

    Raises:
        ArtifactError: a manifest is missing.
    """
    figures: dict[str, Sequence[float]] = {}
    for history in histories:
        counters = read_json(manifest_of(history)).get("counters", {})
        for kind, share in counters.get("final_validation_accuracies", {}).items():
            name = pretrain.masked_lm.pair_task if kind == PAIRS else kind
            column = f"{name}{ACCURACY}"
            figures[column] = [*figures.get(column, ()), 100 * share]
    if pretrain.objective == "masked_lm":
        figures[PERPLEXITY] = [math.exp(loss) for loss in losses]
    return figures


def _objective(pretrain: PretrainSettings) -> str:
    """Return objective and mask in words."""
    if pretrain.objective == "permutation_lm":
        return pretrain.objective
    is_masked_lm = pretrain.objective == "masked_lm"
    mask = pretrain.masked_lm.unit if is_masked_lm else pretrain.noise_mask
    return f"{pretrain.objective} {mask}"


def tokens_per_character(corpus: Path, tokens: Path) -> float | None:
    """Return the tokens of a character of the validation split; None for a split without text.

    Args:
        corpus: manifest of the rule `c4`, which counts the characters.
        tokens: manifest of the rule `tokens`, which counts the tokens.

    Raises:
        ArtifactError: a manifest is missing or lacks a counter.
    """
    try:
        counted = read_json(tokens)["counters"]["validation"]["languages"]
        languages = read_json(corpus)["counters"]["languages"]
        characters = sum(languages[name]["validation_characters"] for name in counted)
        number = sum(entry["tokens"] for entry in counted.values())
    except (KeyError, TypeError) as error:
        raise ArtifactError(
            f"{corpus} and {tokens} do not count the validation split ({error}); rerun their stages"
        ) from error
    return number / characters if characters else None


def operations_of_step(settings: Settings) -> int:
    """Return the floating-point operations of one step of pre-training (`step_flops`)."""
    return step_flops(
        settings.model, settings.pretrain, embedding_rows=settings.vocab.embedding_rows
    )
