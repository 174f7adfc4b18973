"""The numbers that docs/desk_study.md says of the systems before T5."""

import itertools
import math
from collections.abc import Iterable
from statistics import fmean, stdev

from rate_search import (
    FINETUNING_RATES,
    PRETRAINED_AS,
    SYSTEM_NAMES,
    best_rate,
    has_ended,
    losses_of_search,
    trainings_of_search,
)
from study_results import (
    ARCHITECTURES,
    QQP,
    QQP_F1,
    SEARCH,
    SST2,
    SYSTEMS,
    difference,
    exceeds,
    held_out,
    held_out_losses,
    history,
    manifest,
    nodes,
    rows_of,
    scores_by_experiment,
    settings_of,
    student_margin,
)

from desk_page.text import extremes, interval
from t5repro.report.titles import format_mean

GUESSES = "electra"  # with every rate of fine-tuning
CLIFF = 0.3  # a rise of the loss at twice the best rate, beyond which the page names it; nats


def system_table() -> list[list[str]]:
    """Return of each system its size, the targets that it saw, its loss and its scores."""
    rows = []
    for name in SYSTEM_NAMES:
        job = PRETRAINED_AS.get(name, name)
        parameters = manifest(SYSTEMS, "pretrain", job)["counters"]["parameters"]
        targets = sum(int(row["tokens"]) for row in history(SYSTEMS, "pretrain", job))
        scores = [scores_by_experiment(SYSTEMS)[name, key] for key in (SST2, QQP, QQP_F1)]
        cells = [format_mean(held_out(SYSTEMS, job), digits=3)]
        cells += [format_mean(values, digits=2) for values in scores]
        rows.append([f"`{name}`", f"{parameters:,}", f"{targets / 1e6:.2f}", *cells])
    return rows


def systems() -> list[str]:
    scores = scores_by_experiment(SYSTEMS)
    trivial = {f"{row.task}.{row.metric}": row.baseline or 0 for row in rows_of(SYSTEMS)}
    learnt: dict[str, dict[str, float]] = {key: {} for key in (SST2, QQP, QQP_F1)}
    for key, name in itertools.product(learnt, SYSTEM_NAMES):
        gain = fmean(scores[name, key]) - trivial[key]
        if gain > student_margin(scores[name, key]):
            learnt[key][name] = gain
    assert set(SYSTEM_NAMES) - set(learnt[SST2]) == {"bert", GUESSES}
    assert set(learnt[QQP]) == set(learnt[SST2])
    assert not learnt[QQP_F1]
    for name, number in (("bert", 1), (GUESSES, 3)):
        assert scores[name, SST2].count(trivial[SST2]) == number
    told_apart = {key: better_and_worse(key, learnt[key]) for key in (SST2, QQP)}
    pairs = [pair for found in told_apart.values() for pair in found]
    others = [pair for pair in pairs if pair[1] not in {"spanbert", "mt_dnn"}]
    assert others == [("roberta", "t5"), ("gpt", "roberta")]
    assert "xlnet" not in {worse for _, worse in pairs}
    xlnet = [held_out(SYSTEMS, "xlnet", index) for index in (0, -1)]
    electra = [manifest(SYSTEMS, "pretrain", node)["counters"] for node in nodes(GUESSES)]
    right = (100 * one["final_validation_accuracies"]["replaced_pieces"] for one in electra)
    unmasked = (100 * (1 - one["masked_tokens"] / one["input_tokens"]) for one in electra)
    answers = " and ".join(f"{trivial[key]:.2f}" for key in (QQP, QQP_F1))
    return [
        f"ten systems with {settings_of(SYSTEMS).pretrain.flops:.2e} FLOP".replace("e+", "e"),
        f"have {trivial[SST2]:.2f} in SST-2, {answers} in QQP",
        f"{extremes(learnt[SST2].values(), 1)} points in SST-2 and "
        f"{extremes(learnt[QQP].values(), 1)} in QQP",
        f"Of the {math.comb(len(learnt[SST2]), 2)} pairs of these eight "
        f"{len(told_apart[SST2])} differ beyond the spread in SST-2 and {len(told_apart[QQP])} in",
        f"RoBERTa is {interval(difference(SYSTEMS, SST2, 'roberta', 't5'))} points above T5",
        f"from {extremes(xlnet[0], 2)} to {extremes(xlnet[1], 2)} nats, and no",
        f"right for {extremes(right, 1)} % of held-out pieces, and {extremes(unmasked, 1)} % of",
        *searched_rates(),
    ]


def better_and_worse(key: str, names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pairs of systems whose scores differ beyond the spread, the better one first."""
    pairs = itertools.permutations(names, 2)
    return [pair for pair in pairs if exceeds(difference(SYSTEMS, key, *pair))]


def searched_rates() -> list[str]:
    pretraining, finetuning = losses_of_search("pretrain"), losses_of_search("finetune")
    assert all(has_ended(tried) for tried in pretraining.values())
    assert all(has_ended(tried) == (name != GUESSES) for name, tried in finetuning.items())
    half, best, double = (pretraining["t5"][rate] for rate in (0.1, 0.2, 0.4))
    spread = stdev(held_out(ARCHITECTURES, "baseline"))
    assert best < half < best + 2 * spread
    twice = {name: tried[2 * best_rate(tried)] for name, tried in pretraining.items()}
    stuck = [name for name, loss in twice.items() if loss - min(pretraining[name].values()) > CLIFF]
    assert stuck == ["bert", "roberta", "spanbert", "structbert", "electra", "gpt"]
    jobs = trainings_of_search("pretrain")["xlnet"].values()
    xlnet = list(zip(*(held_out_losses(SEARCH, job) for job in jobs), strict=True))
    losses = finetuning["t5"]
    used = settings_of(ARCHITECTURES).finetune.learning_rate.factor
    assert best_rate(losses) == 2 * used
    guess = math.log(2)
    at_guess = {name for name, tried in finetuning.items() if abs(tried[max(tried)] - guess) < 0.01}
    assert at_guess == {"bert", "albert", "spanbert", "mt_dnn", "structbert", "electra"}
    assert all(-0.01 < loss - guess < 0.02 for loss in finetuning[GUESSES].values())
    rates = [f"{losses[rate]:.3f} at {rate:g}" for rate in (0.02, 0.01, 0.04)]
    return [
        f"by {half - best:.3f} and {double - best:.3f}",
        f"three seeds of T5 differ by {spread:.3f}",
        f"ends at {extremes((twice[name] for name in stuck[:-1]), 2)} nats",
        f"GPT's loss rises from {min(pretraining['gpt'].values()):.2f} to {twice['gpt']:.2f}",
        f"from {extremes(xlnet[0], 2)} to {extremes(xlnet[-1], 2)} nats",
        f"{rates[0]}, {rates[1]} and {rates[2]}",
        f"of this page use {used:g}",
        f"guess has {guess:.2f}",
        f"no rate**: {extremes(finetuning[GUESSES].values(), 2)} nats",
        " | ".join(f"{rate:g}" for rate in FINETUNING_RATES),
    ]
