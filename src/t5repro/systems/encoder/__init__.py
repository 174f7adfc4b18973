"""BERT, RoBERTa, ALBERT and SpanBERT: an encoder and heads.

They answer as all networks of labels (`systems.label_answers`).
"""
