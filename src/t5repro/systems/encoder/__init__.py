"""BERT, RoBERTa, ALBERT and SpanBERT: an encoder and heads."""
