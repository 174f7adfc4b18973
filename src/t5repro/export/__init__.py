"""Standard documents made from manifests and records, one module per standard."""
