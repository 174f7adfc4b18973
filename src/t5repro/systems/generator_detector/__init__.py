"""ELECTRA: a generator replaces masked pieces, a detector tells them from the original ones.

Fine-tuning continues the detector. It has the losses and answers of an encoder.
"""
