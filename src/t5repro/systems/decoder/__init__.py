"""Language models that write text: a decoder only, causal or with a visible prefix."""
