"""The systems before T5: objective, optimizers, rates and losses of pre-training and fine-tuning.

The run states steps, batch and lengths, so that systems compare at equal compute. The network
is the published base, unless `use` names another size. Each value is from the released code of the
system, or from its paper where a comment says so.
"""

from typing import Any

from t5repro.config.presets.preset import Preset
from t5repro.config.tree import merge
from t5repro.task_groups import DOUBLED_TASKS

ENCODER_DEFAULTS: dict[str, Any] = {
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


def _encoder(
    source: str, *, size: str, pretrain: dict[str, Any], finetune: dict[str, Any] | None = None
) -> Preset:
    """Return the preset of an encoder: the settings that all share, changed."""
    values: dict[str, Any] = {}
    merge(values, ENCODER_DEFAULTS)
    merge(values, {"pretrain": pretrain, "finetune": finetune or {}})
    return Preset(values, source, uses=(f"sizes/{size}",))


BERT_PRETRAINING: dict[str, Any] = {
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
}

PRESETS = {
    "bert": _encoder(
        "Devlin et al., 2019; google-research/bert", size="bert_base", pretrain=BERT_PRETRAINING
    ),
    "roberta": _encoder(
        "Liu et al., 2019; fairseq",
        size="roberta_base",
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
        "Lan et al., 2020; google-research/albert",
        size="albert_base",
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
        "Joshi et al., 2020; facebookresearch/SpanBERT",
        size="spanbert_base",
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
    "mt_dnn": _encoder(
        "Liu et al., 2019; namisan/mt-dnn v0.1",
        size="bert_base",
        pretrain=BERT_PRETRAINING,
        # All tasks together; `finetune.task_dropout` of CoLA, 0.05, belongs to the run.
        finetune={
            "batches": "tasks",
            "pair_head": "san",  # answer_opt 1
            "turn_dropout": 0.1,  # answer_mem_drop_p
            "pair_order": "reversed",
            "long_rows": "drop",
            "optimizer": "adamax_mt_dnn",
            "learning_rate": {"schedule": "bert_linear", "factor": 5e-5, "warmup_share": 0.1},
        },
    ),
    "structbert": _encoder(
        "Wang et al., 2020; alibaba/AliceMind",
        size="structbert_base",
        pretrain={
            **BERT_PRETRAINING,
            "masked_lm": {
                **BERT_PRETRAINING["masked_lm"],
                "pair_task": "sentence_structure",
                "shuffle_share": 0.05,  # trigrams, section 2.2
            },
            # A tenth of the updates; the code of pre-training was not released.
            "learning_rate": {**BERT_PRETRAINING["learning_rate"], "warmup_share": 0.1},
        },
    ),
    "electra": _encoder(
        "Clark et al., 2020; google-research/electra",
        size="electra_base",
        pretrain={
            "masked_lm": {
                "rows": "electra_segments",
                "pair_task": "none",
                "unit": "piece",
                "short_row_share": 0.05,
                "mask_share": 0.85,  # the others stay as they are
                "random_share": 0,
                "copies": 0,  # masks are drawn in the step
            },
            "optimizer": "adam_bert",
            "max_grad_norm": 1,  # of both networks together
            # 10,000 of 766,000 updates; large has 2e-4 and small 5e-4.
            "learning_rate": {"schedule": "bert_linear", "factor": 2e-4, "warmup_share": 0.013},
        },
        finetune={
            "layer_decay": 0.8,  # 0.9 of large
            "number_scale": 5,  # of STS-B
            "doubled_tasks": [*DOUBLED_TASKS],
            "learning_rate": {"factor": 1e-4},  # 5e-5 of large
        },
    ),
    "xlnet": _encoder(
        "Yang et al., 2019; zihangdai/xlnet",
        size="xlnet_base",
        pretrain={
            "objective": "permutation_lm",
            # AdamWeightDecayOptimizer, without bias correction; the rates are the paper's.
            "optimizer": "adam_bert",
            "adam_epsilon": 1e-6,
            "max_grad_norm": 1,  # clip
            # 40,000 of 500,000 updates, to min_lr_ratio of the peak.
            "learning_rate": {
                "schedule": "linear",
                "factor": 4e-4,
                "warmup_share": 0.08,
                "final_factor": 4e-7,
            },
        },
        finetune={
            "optimizer": "adam_gpt",  # tf.train.AdamOptimizer, since weight_decay is 0
            "adam_epsilon": 1e-8,
            "weight_decay": 0,
            # The README's command for STS-B: 120 of 1,200 updates, to min_lr_ratio of the peak.
            "learning_rate": {
                "schedule": "linear",
                "factor": 5e-5,
                "warmup_share": 0.1,
                "final_factor": 0,
            },
        },
    ),
    "gpt": Preset(
        {
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
        "Radford et al., 2018; openai/finetune-transformer-lm",
        uses=("sizes/gpt",),
    ),
}
