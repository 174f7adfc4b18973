"""Pre-training and fine-tuning (paper sections 2.4, 3.1.2 and 3.5).

`pretrain`, `finetune` and `preflight` are the entry modules of the rules of these names. Each
imports its own inputs only, so an edit of a task or a metric does not rerun pre-training. `loop`
is the training itself, shared by both.
"""
