"""BERT, RoBERTa, ALBERT and SpanBERT: an encoder and heads.

Their answers are those of all networks of labels (`systems.label_answers`).
"""
