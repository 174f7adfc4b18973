"""ELECTRA: a generator replaces masked pieces, a detector tells them from the original ones.

Fine-tuning continues the detector. Its losses and answers are those of an encoder.
"""
