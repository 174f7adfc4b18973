"""XLNet: an encoder that predicts pieces in any order, with a memory of the text before a row."""
