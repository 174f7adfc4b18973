"""BERT, RoBERTa, ALBERT, SpanBERT and StructBERT: an encoder and heads.

They answer as all networks of labels (`systems.label_answers`).
"""
