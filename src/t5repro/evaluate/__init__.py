"""Evaluation of a fine-tuned model (paper section 2.4).

`predict` writes the model's answers, `score` computes the metrics, `checkpoint_selection` finds the
best kept checkpoint of each group of tasks. The package `report` shows the results.
"""
