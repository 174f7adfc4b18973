"""The numbers that docs/desk_study.md says of tables of the paper, and of later recipes.

Two numbers of nanoT5 are typed in.
"""

import itertools
from statistics import fmean

from study_results import (
    ADAPTERS,
    ARCHITECTURES,
    EN_DE,
    GLUE,
    MIXING,
    MODELING,
    OBJECTIVES,
    QQP,
    RECIPES,
    REPEATS,
    SCALING,
    SST2,
    STUDY,
    difference,
    exceeds,
    experiment_settings,
    glue_average,
    held_out,
    is_told_apart,
    is_within,
    last_losses,
    manifest,
    mean_of,
    negative,
    nodes,
    paper,
    parameters_of,
    rows_of,
    rows_of_the_paper,
    score_gaps,
    scores_by_experiment,
    settings_of,
    shown_scores,
    student_margin,
)

from desk_page.claims import gain_of_bert_style, tokens_read
from desk_page.score_tables import (
    METHODS,
    MIXTURE,
    WIDTHS,
    modeling_gaps,
    order_table,
    recipe_gaps,
    unique_tokens,
)
from desk_page.text import extremes, interval, signed_interval
from t5repro.config.flops import step_flops
from t5repro.config.load import load_settings
from t5repro.report.order_statistics import welch


def objectives() -> list[str]:
    in_paper = {name: paper(row, 4, EN_DE) for name, row in rows_of_the_paper(OBJECTIVES).items()}
    prefix, bert, deshuffling = in_paper
    assert is_told_apart(in_paper[bert], in_paper[deshuffling], EN_DE)
    assert not is_told_apart(in_paper[bert], in_paper[prefix], EN_DE)
    leads = [difference(OBJECTIVES, EN_DE, bert, other) for other in (deshuffling, prefix)]
    assert all(exceeds(lead) for lead in leads)
    sst2 = sorted(scores_by_experiment(OBJECTIVES)[bert, SST2])
    bleu = {name: f"{mean_of(OBJECTIVES, name, EN_DE):.1f}" for name in in_paper}
    spans, none = (mean_of(STUDY, name, EN_DE) for name in ("baseline", "no_pretraining"))
    others = [f"{mean_of(OBJECTIVES, name, SST2):.0f}" for name in (prefix, deshuffling)]
    return [
        f"by {interval(leads[0])} BLEU; the paper has {in_paper[bert]} against "
        f"{in_paper[deshuffling]}",
        f"by {interval(leads[1])} BLEU",
        f"({in_paper[bert]} against {in_paper[prefix]})",
        f"at {sst2[1]:.0f} and {sst2[2]:.0f} %, and in one training at {sst2[0]:.0f}, near",
        f"have {others[0]} and {others[1]} %",
        f"has {bleu[bert]} BLEU, {interval(gain_of_bert_style())} more than the {none:.1f}",
        f"deshuffling it has {bleu[deshuffling]}",
        f"spans {spans:.1f}",
        f"has {bleu[prefix]}.",
        f"{extremes(held_out(OBJECTIVES, prefix), 2)} nats a target token for prefix",
        f"{extremes(held_out(OBJECTIVES, bert), 2)} for BERT-style",
        f"{extremes(held_out(OBJECTIVES, deshuffling), 2)} for deshuffling",
    ]


def architectures() -> list[str]:
    """The architectures of table 2."""
    rows = rows_of_the_paper(ARCHITECTURES)
    first, shared, half, language_model, prefix = rows
    losses = {name: held_out(ARCHITECTURES, name) for name in rows}
    gaps = {name: welch(losses[name], losses[first]) for name in losses if name != first}
    assert min(gap.value for gap in gaps.values()) > 0
    assert {name for name, gap in gaps.items() if exceeds(gap)} == {shared, half}
    assert all(is_within(gap) for name, gap in gaps.items() if name not in {shared, half})
    sst2 = {name: scores_by_experiment(ARCHITECTURES)[name, SST2] for name in rows}
    others = [score for name in sst2 if name != shared for score in sst2[name]]
    lead = difference(ARCHITECTURES, SST2, first, shared)
    assert exceeds(lead)
    in_paper = {name: paper(row, 2, GLUE) for name, row in rows.items()}
    assert sorted(in_paper, key=in_paper.__getitem__, reverse=True)[:2] == [first, shared]
    assert not is_told_apart(in_paper[first], in_paper[shared], GLUE)
    assert min(in_paper, key=in_paper.__getitem__) == language_model
    averages = {name: glue_average(ARCHITECTURES, name) for name in rows}
    leads = [welch(averages[name], averages[shared]) for name in (half, language_model, prefix)]
    assert all(exceeds(gap) for gap in leads)
    for one, other in itertools.combinations([name for name in rows if name != shared], 2):
        assert is_within(welch(averages[one], averages[other])), (one, other)
    at_1000 = {key: difference(SCALING, key, "steps_1000", "no_pretraining") for key in (SST2, QQP)}
    assert all(is_within(gap) for gap in at_1000.values())
    lost = difference(SCALING, EN_DE, "no_pretraining", "steps_1000")
    assert exceeds(lost)
    behind = [difference(ARCHITECTURES, key, first, language_model) for key in (SST2, EN_DE)]
    assert all(is_within(gap) for gap in behind)
    pretrain = settings_of(ARCHITECTURES).pretrain
    assert experiment_settings(ARCHITECTURES, half).model.num_encoder_layers == 1
    return [
        f"pre-trained for {pretrain.steps:,} steps",
        f"has 6 of {load_settings({}).model.num_encoder_layers}",
        f"At {pretrain.steps:,} steps no gain from pre-training is detected in SST-2 "
        f"({interval(at_1000[SST2])}) and QQP ({interval(negative(at_1000[QQP]))} lower)",
        f"English–German is {interval(lost)} BLEU lower",
        f"is {interval(gaps[shared], 3)} nats a target token",
        f"{interval(gaps[half], 3)} below that with half",
        f"at {extremes(sst2[shared], 1)} % with them, at {extremes(others, 1)} % with",
        f"{min(gap.value for gap in leads):.1f} to {max(gap.value for gap in leads):.1f} points",
        f"{interval(lead)} points below the encoder–decoder;",
        f"{interval(behind[0])} points below the encoder–decoder in SST-2, {interval(behind[1])} "
        "BLEU",
        f"in GLUE {in_paper[language_model]:.2f} against {in_paper[first]:.2f}",
    ]


def assert_none_contradicts(study: str, number: int) -> None:
    for row in order_table(study, number):
        assert " 0 contradict" in row[3]


def modeling() -> list[str]:
    """The architectures of table 2 with language modeling."""
    first, shared, half, language_model, prefix = rows = rows_of_the_paper(MODELING)
    leads = {
        (one, other, column): gap
        for one, other in itertools.permutations(rows, 2)
        for column, gap in enumerate(score_gaps(MODELING, one, MODELING, other))
        if exceeds(gap)
    }
    english_german = len(shown_scores(MODELING, first)) - 1
    assert set(leads) == {(name, language_model, english_german) for name in (first, shared)}
    assert_none_contradicts(MODELING, 2)
    averages = {name: fmean(glue_average(MODELING, name)) for name in rows}
    assert min(averages, key=averages.__getitem__) == shared
    gaps = list(itertools.chain.from_iterable(modeling_gaps().values()))
    assert all(is_within(gap) for gap in gaps)
    assert sum(gap.value > 0 for gap in gaps) > len(gaps) / 2
    denoising = rows_of_the_paper(ARCHITECTURES).values()
    for row, other in zip(rows.values(), denoising, strict=True):
        assert paper(row, 2, GLUE) < paper(other, 2, GLUE)
    losses = {name: held_out(MODELING, name) for name in rows}
    below = {name: welch(losses[name], losses[prefix]) for name in (first, shared, half)}
    assert all(exceeds(gap) for gap in below.values())
    assert parameters_of(MODELING, first) > parameters_of(MODELING, prefix)
    return [
        f"At most {settings_of(MODELING).pretrain.inputs_length} tokens",
        f"is {interval(leads[first, language_model, english_german])} BLEU below the encoder",
        f"{interval(leads[shared, language_model, english_german])} below shared",
        f"{interval(below[first], 2)} nats a target token below",
    ]


def repeats() -> list[str]:
    """The repeats of table 9."""
    rows = rows_of_the_paper(REPEATS)
    none, few, some, many, most = rows
    trained = {name: last_losses(REPEATS, "pretrain", name) for name in rows}
    losses = {name: held_out(REPEATS, name) for name in rows}
    for fewer, more in itertools.pairwise(rows):
        assert exceeds(welch(trained[fewer], trained[more])), (fewer, more)
        assert exceeds(welch(losses[more], losses[fewer])), (fewer, more)
    in_paper = [paper(row, 9, GLUE) for row in rows.values()]
    assert in_paper == sorted(in_paper, reverse=True)
    assert not is_told_apart(in_paper[0], in_paper[1], GLUE)
    pretrain = settings_of(REPEATS).pretrain
    step = pretrain.batch_size * pretrain.inputs_length
    falls = {
        (key, name): difference(REPEATS, key, none, name)
        for key in (SST2, QQP, EN_DE)
        for name in (few, some, many, most)
    }
    assert_none_contradicts(REPEATS, 9)
    beyond = {where for where, fall in falls.items() if exceeds(fall)}
    assert beyond == {(SST2, some), (SST2, many), (EN_DE, most)}
    untrained = scores_by_experiment(SCALING)["no_pretraining", SST2]
    below_none = welch(untrained, scores_by_experiment(REPEATS)[many, SST2])
    assert exceeds(below_none)
    better = [difference(REPEATS, key, few, none) for key in (SST2, EN_DE)]
    assert all(is_within(gap) for gap in better)
    return [
        f"reads {tokens_read(pretrain):,} tokens",
        f"A step reads {step:,} tokens",
        f"of {unique_tokens(many):,} or {unique_tokens(most)} tokens",
        f"lasts {2**35 // 4096 // 2**16} steps",
        f"from {fmean(trained[none]):.2f} nats a target token to {fmean(trained[most]):.2f}",
        f"from {fmean(losses[none]):.2f} to {fmean(losses[most]):.2f}",
        f"is {fmean(held_out(REPEATS, most, 0)):.2f} already after "
        f"{pretrain.validation_every_steps} steps",
        f"SST-2 is {interval(falls[SST2, some])} points lower with",
        f"and {interval(falls[SST2, many])} with 1,024",
        f"also {interval(below_none)} below no",
        f"With 4,096 its {interval(falls[SST2, most])} are",
        f"with 4,096 only, by {interval(falls[EN_DE, most])} BLEU",
        f"{interval(better[0])} points in SST-2 and {interval(better[1])} BLEU better",
        f"{interval(welch(losses[few], losses[none]), 3)} higher",
        f"they cost {in_paper[0] - in_paper[1]:.2f} in GLUE",
    ]


def methods() -> list[str]:
    """The fine-tuning methods of table 10."""
    adapters = [name for name in METHODS if name.startswith("adapters_")]
    for whole, name in itertools.product(("all_parameters", "gradual_unfreezing"), adapters):
        assert exceeds(difference(ADAPTERS, EN_DE, whole, name))
    best, *_, worst = sorted(adapters, key=lambda name: -mean_of(ADAPTERS, name, EN_DE))
    leads = [difference(ADAPTERS, EN_DE, "all_parameters", name) for name in (best, worst)]
    gradual = difference(ADAPTERS, EN_DE, "all_parameters", "gradual_unfreezing")
    assert is_within(gradual)
    (trivial,) = {row.baseline for row in rows_of(ADAPTERS) if row.task == "wmt_en_de"}
    losses = {name: last_losses(ADAPTERS, "finetune", name) for name in METHODS}
    narrow, *wider = [extremes(losses[f"adapters_{width}"], 2) for width in WIDTHS]
    others = [f"{loss} with {width:,}" for loss, width in zip(wider, WIDTHS[1:], strict=True)]
    settings = settings_of(ADAPTERS)
    missing = paper("All parameters", 10, EN_DE) - paper("Gradual unfreezing", 10, EN_DE)
    return [
        f"pre-trainings of {settings.pretrain.steps:,} steps",
        f"rate, {settings.finetune.learning_rate.factor:g}, which was not tuned",
        f"{interval(leads[0])} ({best.removeprefix('adapters_')} features) to "
        f"{interval(leads[1])} BLEU ({worst.removeprefix('adapters_')})",
        f"{interval(gradual)} BLEU below",
        f"in the paper {missing:.2f}.",
        f"trivial answer of {trivial:.2f} BLEU",
        f"{narrow} nats a target token with {WIDTHS[0]} features, {', '.join(others)}, "
        f"and {extremes(losses['all_parameters'], 2)} with all parameters",
    ]


LEAST_LIMIT, LARGEST_LIMIT = "multi_k16", "multi_k21"


def mixing() -> list[str]:
    """The mixtures of table 11."""
    training = experiment_settings(MIXING, LARGEST_LIMIT).finetune
    longer = settings_of(MIXING).finetune.groups["wmt_en_de"]["finetune.steps"]
    assert training.steps == settings_of(MIXING).pretrain.steps + longer
    return [
        f"have together: {training.steps:,}, of {training.batch_size} rows",
        *mixing_in_translation(),
        *mixing_in_glue(),
    ]


def drawn(node: str) -> dict[str, int]:
    """Return task -> examples that a fine-tuning drew."""
    counts: dict[str, int] = manifest(MIXING, "finetune", node)["counters"]["drawn"]
    return counts


def mixing_in_translation() -> list[str]:
    rows = rows_of_the_paper(MIXING, 11)
    first, equal, *others = rows
    scores = scores_by_experiment(MIXING)
    assert scores[first, EN_DE] == scores_by_experiment(ARCHITECTURES)["baseline", EN_DE]
    in_paper = {name: paper(row, 11, EN_DE) for name, row in rows.items()}
    assert max(in_paper, key=in_paper.__getitem__) == first
    assert min(in_paper, key=in_paper.__getitem__) == equal
    leads = [difference(MIXING, EN_DE, name, first) for name in others]
    assert all(exceeds(lead) for lead in leads)
    assert is_within(difference(MIXING, EN_DE, equal, first))
    assert all(exceeds(difference(MIXING, EN_DE, name, equal)) for name in others)
    assert is_within(difference(MIXING, EN_DE, LARGEST_LIMIT, LEAST_LIMIT))
    assert [
        (one, other)
        for one, other in itertools.permutations([equal, *others], 2)
        if exceeds(difference(MIXING, EN_DE, one, other)) and in_paper[one] < in_paper[other]
    ] == [("multi_k18", "multi_t4")]
    untrained = scores_by_experiment(SCALING)["no_pretraining", EN_DE]
    gain = welch(scores[LARGEST_LIMIT, EN_DE], untrained)
    assert exceeds(gain)
    examples = [drawn(node)["wmt_en_de"] for node in (LARGEST_LIMIT, f"{first}_wmt_en_de")]
    return [
        f"by {min(lead.value for lead in leads):.1f} to {max(lead.value for lead in leads):.1f} "
        "BLEU; in the paper",
        f"{interval(gain)} above the {fmean(untrained):.1f} without pre-training",
        f"It drew {examples[0]:,} examples of English–German (seed 0), the baseline's "
        f"fine-tuning {examples[1]:,}",
        f"from {mean_of(MIXING, LEAST_LIMIT, EN_DE):.1f} with `{LEAST_LIMIT}` to "
        f"{mean_of(MIXING, LARGEST_LIMIT, EN_DE):.1f} with `{LARGEST_LIMIT}`",
    ]


def odd_answers(task: str, experiment: str) -> list[float]:
    """Return the percentage of answers that are none of a task's, of each seed."""
    rows = {row.arm: row for row in rows_of(MIXING) if row.task == task and row.runs == 1}
    found = [rows[arm] for arm in nodes(experiment)]
    return [100 * row.invalid / row.examples for row in found if row.invalid is not None]


def mixing_in_glue() -> list[str]:
    rows = rows_of_the_paper(MIXING, 11)
    first, equal, *others = rows
    in_paper = {name: paper(row, 11, GLUE) for name, row in rows.items()}
    assert min(in_paper, key=in_paper.__getitem__) == equal
    glue = {name: glue_average(MIXING, name) for name in rows}
    lost = {name: welch(glue[first], glue[name]) for name in (equal, *others)}
    beyond = {name: gap for name, gap in lost.items() if exceeds(gap)}
    assert list(beyond) == ["multi_k18", "multi_k19", LARGEST_LIMIT]
    assert [name for name in others if exceeds(welch(glue[equal], glue[name]))] == list(beyond)
    small = ("glue_rte", "glue_stsb")
    assert {odd for task in small for odd in odd_answers(task, LARGEST_LIMIT)} == {100}
    odd = [odd for task in small for odd in odd_answers(task, equal)]
    (trivial,) = {row.baseline for row in rows_of(MIXING) if row.task == "glue_sst2"}
    assert trivial is not None
    sst2 = [scores_by_experiment(MIXING)[name, SST2] for name in (equal, *others)]
    assert all(abs(fmean(values) - trivial) <= student_margin(values) for values in sst2)
    means = sorted(map(fmean, sst2))
    costs = sorted(beyond.values(), key=lambda gap: gap.value)
    rte = [drawn(node)["glue_rte"] for node in (LARGEST_LIMIT, equal)]
    return [
        f"from {fmean(glue[LEAST_LIMIT]):.1f} with `{LEAST_LIMIT}` to "
        f"{fmean(glue[LARGEST_LIMIT]):.1f} with `{LARGEST_LIMIT}`",
        f"{interval(costs[0])} to {interval(costs[-1])} points",
        f"draws RTE {rte[0]} times in place of {rte[1]:,}",
        f"with `{equal}` at most {max(odd):.0f} % are neither",
        f"SST-2 has {means[0]:.1f} to {means[-1]:.1f} with mixtures, and {trivial:.1f} with",
    ]


def first_rate(study: str, name: str) -> float:
    return experiment_settings(study, name).pretrain.learning_rate.factor


def recipes() -> list[str]:
    adamw = experiment_settings(RECIPES, "adamw_cosine").pretrain
    gap = recipe_gaps("adamw_cosine")
    assert fmean(gap) > student_margin(gap)
    for name in ("per_layer_bias", "rotary", "swiglu"):
        assert abs(fmean(recipe_gaps(name))) < student_margin(recipe_gaps(name)), name
    assert shown_scores(RECIPES, "baseline") == shown_scores(ARCHITECTURES, "baseline")
    gains = {
        name: score_gaps(RECIPES, name, RECIPES, "baseline")
        for name in rows_of_the_paper(RECIPES)
        if name != "baseline"
    }
    beyond = [
        (name, number)
        for name, found in gains.items()
        for number, gain in enumerate(found)
        if not is_within(gain)
    ]
    assert beyond == [("adamw_cosine", 0), ("swiglu", 3)]
    assert sum(map(len, gains.values())) == 20
    sst2, qqp, _, bleu = map(signed_interval, gains[MIXTURE])
    work = [
        step_flops(settings.model, settings.pretrain, embedding_rows=settings.vocab.embedding_rows)
        for settings in (experiment_settings(RECIPES, name) for name in (MIXTURE, "baseline"))
    ]
    rate = f"{adamw.learning_rate.final_factor:.0e}".replace("e-0", "e-")
    return [
        f"after {adamw.steps:,} steps of pre-training",
        f"cosine from {first_rate(RECIPES, 'adamw_cosine'):g}, the others Adafactor with an "
        f"inverse square root from {first_rate(RECIPES, 'baseline'):g}",
        f"SwiGLU gains {interval(gains['swiglu'][3])} BLEU, and AdamW loses "
        f"{interval(negative(gains['adamw_cosine'][0]))} points in SST-2",
        f"{sst2} points in SST-2, {qqp} in QQP and {bleu} BLEU",
        f"{work[0] / work[1]:.1f} times the operations",
        f"a cosine to {rate} in {adamw.steps:,} steps",
        "at 1.953 against 1.995, after 65,536 steps",  # nanoT5's own page
        f"by {extremes((-gap for gap in recipe_gaps('swiglu')), 3)}",
    ]
