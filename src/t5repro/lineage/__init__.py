"""Which code a stage runs, and what proves it."""
