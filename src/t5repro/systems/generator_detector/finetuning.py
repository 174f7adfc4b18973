"""The fine-tuning of ELECTRA's detector, on the rows and losses of any encoder."""

from dataclasses import replace

from t5repro.systems.encoder.finetuning import FINETUNING as ENCODER

FINETUNING = replace(ENCODER, family="detector")
