"""T5: an encoder and a decoder, with weights of their own or shared; the loss is `TextLoss`."""
