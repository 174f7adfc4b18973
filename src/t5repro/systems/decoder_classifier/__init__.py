"""GPT on labels: a decoder and a linear layer on the last position of a row."""
