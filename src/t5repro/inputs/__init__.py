"""Batches for training, from the ids of the corpus and the examples of tasks.

Loaders: `pretraining` (the corpus under an objective), `finetuning` (a mixture of tasks),
`corpus_mixture` (tasks and corpus). Parts: `packing` cuts documents into segments and places them
in rows, `row_index` finds the rows of a step, `task_mixture` draws the examples of a row,
`batches` builds arrays of fixed shape. `systems/step_audit` answers which documents a step read,
`document_steps` which steps read a document. Everything is NumPy: the engine that trains decides
nothing of a batch.

The batch of step n is a function of the data, the settings, the seed and n. Pre-training imports
neither tasks nor metrics: an edit of them must not rerun it.
"""
