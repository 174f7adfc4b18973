"""Training: devices, loss, optimizer, and the loop around `keras.Model.fit`."""
