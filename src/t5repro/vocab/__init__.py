"""The SentencePiece vocabulary and the corpus as ids (paper section 2.2).

`train` draws the sample and trains the pieces; `encode` turns text into ids and back. Neither
needs TensorFlow: inside tf.data the same model is run by tensorflow-text (`inputs/pipeline.py`).
"""
