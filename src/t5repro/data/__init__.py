"""Raw inputs: bring them into place and prove that they are the files the run file names."""
