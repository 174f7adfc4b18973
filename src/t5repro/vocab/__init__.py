"""The SentencePiece vocabulary and the corpus as ids (paper section 2.2).

Entry modules of the rules: `sample` (`vocab_sample`) draws text from the corpus, `train` (`vocab`)
makes the model from it, `encode` (`tokens`) writes the corpus as files of ids. They share
`corpus`, which reads the pages of `c4`. Later stages import only `vocabulary` (text to ids and
back), `token_files` (the files of ids) and `special_ids`, so that a change of the trainer does not
rerun them. A SavedModel runs the same model in tensorflow-text.
"""
