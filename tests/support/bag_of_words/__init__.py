"""A toy of a seventh system: labels from the mean of the embedded ids of a row."""
