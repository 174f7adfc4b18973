"""The recipes of the systems before T5: what `system: NAME` sets.

A recipe has the objective, the optimizer, its schedule and the losses of a system, each value with
its source; steps, batch and lengths are those of the run, so that systems compare at equal compute.
Without `model.published`, the network is the published base. To add a system, add an entry.

Sources: the released code of GPT (openai/finetune-transformer-lm), BERT (google-research/bert),
RoBERTa and SpanBERT (fairseq, facebookresearch/SpanBERT), ALBERT (google-research/albert), and
their papers.
"""

import copy
from collections.abc import Mapping
from typing import Any

from t5repro.config.tree import merge
from t5repro.errors import SettingsError, nearest

OF_ENCODERS: dict[str, Any] = {
    "pretrain": {
        "objective": "masked_lm",
        "noise_density": 0.15,
        "z_loss": 0,
        "loss_normaliser": "target_tokens",
        "dropout_rate": 0.1,
        "weight_decay": 0.01,
    },
    "finetune": {
        "optimizer_state": "fresh",
        "z_loss": 0,
        "loss_normaliser": "target_tokens",
        "dropout_rate": 0.1,
        "weight_decay": 0.01,
        "max_grad_norm": 1,
        "optimizer": "adam_bert",
        # BERT's command for MRPC, and the default of `warmup_proportion`.
        "learning_rate": {"schedule": "bert_linear", "factor": 2e-5, "warmup_share": 0.1},
    },
}


def _encoder(**changes: Any) -> dict[str, Any]:
    """Return the recipe of an encoder with other values than those that all share."""
    recipe = copy.deepcopy(OF_ENCODERS)
    merge(recipe, changes)
    return recipe


SYSTEMS: dict[str, dict[str, Any]] = {
    "bert": _encoder(
        model={"published": "bert_base"},
        pretrain={
            "masked_lm": {
                "rows": "segment_pair",
                "pair_task": "next_sentence",
                "unit": "piece",
                "short_row_share": 0.1,  # short_seq_prob
                "copies": 10,  # dupe_factor
            },
            "optimizer": "adam_bert",
            "max_grad_norm": 1,  # clip_by_global_norm
            # 10,000 of 1,000,000 updates (appendix A.2).
            "learning_rate": {"schedule": "bert_linear", "factor": 1e-4, "warmup_share": 0.01},
        },
    ),
    "roberta": _encoder(
        model={"published": "roberta_base"},
        pretrain={
            "masked_lm": {
                "rows": "full_sentences",
                "pair_task": "none",
                "unit": "piece",
                "mask_special_pieces": True,  # the mask follows PrependToken
                "copies": 0,  # masks are drawn anew
            },
            "optimizer": "adam_fairseq",
            "adam_beta2": 0.98,
            "adam_epsilon": 1e-6,
            "max_grad_norm": 0,  # clip-norm 0.0
            # The released base recipe: 10,000 of 125,000 updates.
            "learning_rate": {"schedule": "linear", "factor": 5e-4, "warmup_share": 0.08},
        },
        finetune={
            "classifier_dropout": 0,  # pooler-dropout 0.0
            "optimizer": "adam_fairseq",
            "adam_beta2": 0.98,
            "adam_epsilon": 1e-6,
            "weight_decay": 0.1,
            "max_grad_norm": 0,
            "learning_rate": {"schedule": "linear", "factor": 1e-5, "warmup_share": 0.06},
        },
    ),
    "albert": _encoder(
        model={"published": "albert_base"},
        pretrain={
            "masked_lm": {
                "rows": "segment_pair",
                "pair_task": "sentence_order",
                "unit": "ngram",
                "short_row_share": 0.1,
                "copies": 40,  # dupe_factor
            },
            "optimizer": "lamb",
            "max_grad_norm": 1,
            # 3,125 of 125,000 updates.
            "learning_rate": {"schedule": "bert_linear", "factor": 1.76e-3, "warmup_share": 0.025},
        },
        finetune={"classifier_dropout": 0.1},  # classifier_dropout_prob of all versions
    ),
    "spanbert": _encoder(
        model={"published": "spanbert_base"},
        pretrain={
            "masked_lm": {
                "rows": "doc_sentences",
                "pair_task": "none",
                "unit": "span",
                "boundary_weight": 1,
            },
            "optimizer": "adam_fairseq",
            "adam_epsilon": 1e-8,
            "max_grad_norm": 1,
            # 10,000 of 2,400,000 updates, to 1e-9.
            "learning_rate": {
                "schedule": "linear",
                "factor": 1e-4,
                "warmup_share": 0.0042,
                "final_factor": 1e-9,
            },
        },
        # warmup_linear of its fine-tuning
        finetune={"learning_rate": {"schedule": "linear"}},
    ),
    "gpt": {
        "model": {"published": "gpt"},
        "pretrain": {
            "objective": "lm",
            "z_loss": 0,
            "loss_normaliser": "target_tokens",
            "dropout_rate": 0.1,
            "optimizer": "adam_gpt",
            "adam_epsilon": 1e-8,
            "weight_decay": 0.01,
            "max_grad_norm": 1,
            "learning_rate": {
                "schedule": "cosine",
                "factor": 2.5e-4,
                # The share of its fine-tuning: the paper has 2,000 of an unstated number.
                "warmup_share": 0.002,
                "warmup_start": 0,
            },
        },
        "finetune": {
            "optimizer_state": "fresh",
            "z_loss": 0,
            "loss_normaliser": "target_tokens",
            "dropout_rate": 0.1,
            "optimizer": "adam_gpt",
            "adam_epsilon": 1e-8,
            "weight_decay": 0.01,
            "max_grad_norm": 1,
            "learning_rate": {"schedule": "gpt_linear", "factor": 6.25e-5},
            "answers": "labels",
            "lm_weight": 0.5,  # lm_coef
        },
    },
}


def system_recipe(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that `system` sets in a tree of settings.

    Raises:
        SettingsError: the system is unknown.
    """
    name = tree.get("system")
    if not name:
        return {}
    if name not in SYSTEMS:
        suggestion = nearest(str(name), SYSTEMS)
        raise SettingsError(f"system is {name!r}; systems are {sorted(SYSTEMS)}{suggestion}")
    return copy.deepcopy(SYSTEMS[name])
