"""BERT, RoBERTa, ALBERT, SpanBERT and StructBERT: an encoder and heads.

Their answers are those of all networks of labels (`systems.label_answers`).
"""
