"""A trained model as a folder for the Hugging Face Hub, with a model card, signature and upload.

`publish.weights` writes weights and vocabulary; this package adds what only the records of a run
know: which model an arm has, its data, settings, scores and hashes.
"""
