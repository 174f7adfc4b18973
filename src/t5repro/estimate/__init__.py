"""The cost of a run before it runs: work, time, memory and disk of every node."""
