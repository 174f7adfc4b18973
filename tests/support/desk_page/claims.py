"""The numbers that docs/desk_study.md says of set-up, compute, power and data."""

from pathlib import Path
from statistics import fmean

from study_results import (
    ARCHITECTURES,
    EN_DE,
    GLUE,
    MODELING,
    OBJECTIVES,
    QQP,
    QQP_F1,
    REPEATS,
    SCALING,
    SST2,
    STUDY,
    difference,
    exceeds,
    experiment_settings,
    held_out,
    is_within,
    last_losses,
    manifest,
    mean_of,
    negative,
    paper,
    parameters_of,
    records_of,
    rows_of,
    scores_by_experiment,
    settings_of,
)

from desk_page.score_tables import PRETRAINED, gains, powers, scaling, scaling_table
from desk_page.text import extremes, interval, title_of
from t5repro.config.load import load_settings
from t5repro.config.sections.pretrain import PretrainSettings
from t5repro.estimate.power import POWER
from t5repro.model.sizes import parameter_count
from t5repro.report.order_statistics import WelchDifference, welch
from t5repro.report.titles import UNDEFINED


def summary() -> list[str]:
    _, (_, few), *_, (_, many) = scaling_steps().items()
    assert exceeds(gains(SST2)[-1])
    assert all(exceeds(negative(gains(key)[1])) for key in (SST2, EN_DE))
    assert all(exceeds(negative(gap)) for gap in gains(EN_DE))
    assert max(gap.value for gap in gains(EN_DE)) == gains(EN_DE)[-1].value
    return [
        f"network of {parameters_of(STUDY, 'baseline') / 1e6:.1f} million parameters",
        f"{few} steps lower SST-2 and English–German beyond the spread, {many:,} steps raise",
        f"{interval(gains(SST2)[-1])} points",
        f"loses {interval(loss_of_translation())} BLEU",
        f"gains {interval(gain_of_bert_style())} BLEU over none",
    ]


def scaling_steps() -> dict[str, int]:
    """Return experiment -> its steps of pre-training."""
    return {
        name: experiment_settings(SCALING, name).pretrain.steps for name in scaling().experiments
    }


def loss_of_translation() -> WelchDifference:
    """Return what English-German loses by the pre-training of the first study."""
    loss = difference(STUDY, EN_DE, "no_pretraining", "baseline")
    assert exceeds(loss)
    return loss


def gain_of_bert_style() -> WelchDifference:
    """Return English-German after BERT-style pre-training, minus that without pre-training."""
    assert settings_of(OBJECTIVES).finetune == settings_of(STUDY).finetune
    gain = welch(
        scores_by_experiment(OBJECTIVES)["bert_style", EN_DE],
        scores_by_experiment(STUDY)["no_pretraining", EN_DE],
    )
    assert exceeds(gain)
    return gain


def tokens_read(pretrain: PretrainSettings) -> int:
    """Return the tokens of text that a pre-training reads, repeated ones as well."""
    return pretrain.steps * pretrain.batch_size * pretrain.inputs_length


def set_up() -> list[str]:
    study, tokens = settings_of(STUDY), manifest(STUDY, "tokens")["counters"]
    train, validation = tokens["train"], tokens["validation"]
    published = load_settings({})  # the defaults are the paper's baseline
    pretrain, finetune, model = study.pretrain, study.finetune, study.model
    assert tokens_read(published.pretrain) == 2**35
    assert model.num_encoder_layers == model.num_decoder_layers == 2
    rows = {
        task: manifest(STUDY, "tasks", task)["counters"]["train"]["rows"]
        for task in study.tasks.names
    }
    training = [f"{rows[task]:,} of {title_of(task)}" for task in study.tasks.names]
    below = [
        row.value < row.baseline
        for one in (SCALING, STUDY, OBJECTIVES, ARCHITECTURES, MODELING, REPEATS)
        for row in rows_of(one)
        if (row.task, row.metric, row.runs) == ("glue_qqp", "f1", 1)
        if row.value is not None and row.baseline is not None
    ]
    assert below.count(True) > len(below) / 2
    rates = published.pretrain.learning_rate, pretrain.learning_rate
    assert published.pretrain.optimizer == pretrain.optimizer == "adafactor"
    return [
        f"2^35 tokens | {train['tokens']:,} tokens of English in {train['documents']:,} documents",
        f"sees at most {tokens_read(pretrain) / 1e6:.1f} million",
        f"{validation['documents']:,} documents, {validation['tokens']:,} tokens",
        f"losses are of {pretrain.validation_batches * pretrain.batch_size} rows",
        f"{published.vocab.vocab_size:,}, four languages | {study.vocab.vocab_size:,}",
        f"{parameter_count(published.model) / 1e6:.0f} million parameters",
        f"{parameters_of(STUDY, 'baseline') / 1e6:.1f} million: width {model.d_model}",
        f"{published.pretrain.steps:,} steps of {published.pretrain.batch_size} x "
        f"{published.pretrain.inputs_length} | {pretrain.steps:,} steps of {pretrain.batch_size} x "
        f"{pretrain.inputs_length}",
        f"from {rates[0].factor / rates[0].warmup_steps ** 0.5:g} | the same from "
        f"{rates[1].factor:g}, warm-up of {rates[1].warmup_steps / pretrain.steps:.0%}"[:-1],
        f"| {published.pretrain.dropout_rate} | {pretrain.dropout_rate:g}",
        f"{published.finetune.steps:,} steps at {published.finetune.learning_rate.factor:g}",
        f"{finetune.steps:,} steps, and English–German, "
        f"{finetune.groups['wmt_en_de']['finetune.steps']} steps, of {finetune.batch_size} each; "
        f"cosine from {finetune.learning_rate.factor:g}",
        f"Of training: {', '.join(training[:-1])} and {training[-1]}",
        f"at most {finetune.mixture_limit:,}",
        f"its first {study.evaluate.max_examples:,} rows",
        f"of {round(2 / 0.05)} pairs",  # two of them have an interval of 95 % without zero
    ]


def worth() -> list[str]:
    """What pre-training is worth."""
    losses = {index: held_out(STUDY, "baseline", index) for index in (0, -1)}
    finetuned = [last_losses(STUDY, "finetune", name, "wmt_en_de") for name in PRETRAINED]
    assert max(finetuned[0]) < min(finetuned[1])
    means = [mean_of(STUDY, "baseline", key) for key in (SST2, QQP)]
    trivial = {f"{row.task}.{row.metric}": row.baseline for row in rows_of(STUDY)}
    gaps = [difference(STUDY, key, "baseline", "no_pretraining") for key in (SST2, QQP)]
    assert all(is_within(gap) for gap in gaps)
    study, pretrain = settings_of(STUDY), settings_of(STUDY).pretrain
    times = tokens_read(load_settings({}).pretrain) / tokens_read(pretrain)
    return [
        f"{extremes(losses[0], 2)} (three seeds) after {pretrain.validation_every_steps:,} steps",
        f"{extremes(losses[-1], 2)} after {pretrain.steps:,}",
        f"to {means[0]:.0f} and {means[1]:.0f} %",
        f"{trivial[SST2]:.0f} and {trivial[QQP]:.0f} %)",
        f"{interval(gaps[0])} and {interval(gaps[1])}",
        f"{paper('Baseline average', 16, SST2):.1f} against "
        f"{paper('No pre-training', 16, SST2):.1f} in SST-2",
        f"costs {interval(loss_of_translation())} BLEU",
        f"({extremes(finetuned[0], 2)} against {extremes(finetuned[1], 2)} nats a target token)",
        f"{paper('Baseline average', 1, EN_DE)} against {paper('No pre-training', 1, EN_DE)}.",
        f"these {study.finetune.groups['wmt_en_de']['finetune.steps']} steps at a rate of "
        f"{study.finetune.learning_rate.factor:g}",
        f"reach {mean_of(OBJECTIVES, 'bert_style', EN_DE):.1f} BLEU",
        f"{tokens_read(pretrain) / 1e6:.1f} million tokens, 1/{round(times, -2):,.0f} of",
    ]


def compute() -> list[str]:
    """Loss and scores over compute."""
    series, settings = scaling(), settings_of(SCALING)
    steps = list(scaling_steps().values())
    english_german = settings.finetune.groups["wmt_en_de"]
    means = {
        key: [mean_of(SCALING, name, key) for name in ("no_pretraining", *series.experiments)]
        for key in (SST2, QQP, EN_DE)
    }
    assert {values.index(min(values)) for values in means.values()} == {2}  # the second compute
    fall = {key: f"from {values[0]:.1f} to {values[2]:.1f}" for key, values in means.items()}
    losses = [held_out(SCALING, name) for name in series.experiments]
    assert exceeds(gains(SST2)[-1])
    assert exceeds(gains(QQP)[-1])
    assert all(exceeds(negative(gap)) for gap in gains(EN_DE))
    assert exceeds(negative(gains(SST2)[1]))
    assert is_within(gains(QQP)[1])
    assert exceeds(negative(gains(QQP)[0]))
    assert all(is_within(gap) for gap in gains(QQP_F1))
    worth_from = {(row[0], row[1]): row[-1] for row in scaling_table()}
    assert worth_from["SST-2", "accuracy"] == series.operations[-1]
    assert worth_from["QQP", "F1"] == UNDEFINED
    for key in means:
        assert paper("Baseline average", 16, key) > paper("No pre-training", 16, key)
    return [
        f"after {steps[0]:,} to {steps[-1]:,} steps, a factor of {steps[-1] // steps[0]}",
        f"{settings.finetune.steps} steps, English–German for {english_german['finetune.steps']} "
        f"from a rate of {english_german['finetune.learning_rate.factor']}",
        f"none | {' | '.join(series.operations)} | worth from",
        f"from {fmean(losses[0]):.2f} nats a target token to {fmean(losses[-1]):.2f}",
        f"{series.law}.",
        f"after {steps[1]} steps",
        f"SST-2 has fallen {fall[SST2]}",
        f"English–German {fall[EN_DE]} BLEU",
        f"accuracy of QQP {fall[QQP]}",
        f"after {steps[0]} steps it is {interval(negative(gains(QQP)[0]))} lower",
        f"After {steps[-1]:,} steps SST-2 has gained {interval(gains(SST2)[-1])} points",
        f"accuracy {interval(gains(QQP)[-1])}",
        f"lacks {interval(negative(gains(EN_DE)[-1]))} BLEU",
        f"{settings_of(STUDY).finetune.steps:,} steps of fine-tuning",
        f"gains {interval(difference(STUDY, SST2, 'baseline', 'no_pretraining'))}",
    ]


def power() -> list[str]:
    """Which tables a desk can tell apart."""
    seeds = [
        entry.seeds(0.5)
        for entry in powers()
        if entry.table in range(5, 9) and entry.column == GLUE
    ]
    found = sorted(number for number in seeds if number)
    return [f"a probability of {POWER:.0%}"[:-1], f"need {found[0]} to {found[-1]} seeds a row"]


def data() -> list[str]:
    bytes_of = {
        name: file.bytes
        for record in records_of(STUDY).values()
        if record.rule == "corpus" and record.end
        for file in record.end.inputs
        if (name := Path(file.path).name).endswith(".jsonl")
    }
    return [
        f"{sum(bytes_of.values()) / 1e6:.0f} MB of documentation",
        f"({bytes_of['en.jsonl'] / 1e6:.0f} MB in English)",
    ]
