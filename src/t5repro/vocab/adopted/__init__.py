"""Vocabularies of BERT, RoBERTa, GPT-2, GPT, ALBERT and XLNet, from the files of Hugging Face.

`files` is the entry: it reads the files of a vocabulary (`piece_files`, `options`), makes the
definition that the library tokenizers runs (`forms`) and compares it with `tokenizer.json`
(`comparison`).
"""
