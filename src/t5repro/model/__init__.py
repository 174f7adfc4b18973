"""T5 in Keras 3: layers, the encoder-decoder, its published sizes, decoding, weight files."""
