"""Whether scores may be compared with the paper's: model, data and steps must be its own.

What an experiment changes is what its row of the paper changes, so the settings of the run count,
before these changes.
"""

from collections.abc import Sequence

from t5repro.config.experiments import settings_of_experiment
from t5repro.config.schema import Settings
from t5repro.report.experiments import flatten

MODEL = (
    "model.d_model",
    "model.d_ff",
    "model.d_kv",
    "model.num_heads",
    "model.num_encoder_layers",
    "model.num_decoder_layers",
    "vocab.vocab_size",
)
STEPS = (
    "pretrain.steps",
    "pretrain.batch_size",
    "pretrain.inputs_length",
    "pretrain.targets_length",
    "finetune.steps",
    "finetune.batch_size",
    "finetune.inputs_length",
    "finetune.targets_length",
)
DATA = ("evaluate.max_examples",)
PAPER_PAGES = 364_868_892  # of the paper's C4 (D-025)
NEAR_PAGES = 0.1  # relative; a crawl that is fetched later lacks some pages


def has_corpus_of_run(settings: Settings, arm: str) -> bool:
    """Return whether an arm has the corpus of the run, by the settings of `c4` and `corpus`."""
    resolved = settings_of_experiment(settings, arm)
    return (resolved.c4, resolved.corpus) == (settings.c4, settings.corpus)


def departures(settings: Settings, pages: Sequence[int]) -> list[str]:
    """Return how a run departs from the paper's model, data and steps; empty if it does not.

    Args:
        settings: of the run.
        pages: number of pages of each of its corpora, without those that an experiment changes.
    """
    run_values, paper_values = flatten(settings), flatten(Settings())
    texts = []
    for topic, names in (("model", MODEL), ("steps", STEPS), ("data", DATA)):
        changed = [
            f"{name} {run_values[name]} instead of {paper_values[name]}"
            for name in names
            if run_values[name] != paper_values[name]
        ]
        if topic == "data":
            # The number of pages does not show whose text it is.
            changed += ["files of corpus.files instead of the crawl"] * bool(settings.corpus.files)
            changed += [
                f"a corpus of {count:,} pages instead of {PAPER_PAGES:,}"
                for count in pages
                if abs(count - PAPER_PAGES) > NEAR_PAGES * PAPER_PAGES
            ]
        if changed:
            texts.append(f"{topic} ({', '.join(changed)})")
    return texts
