"""From a fine-tuned model to the page that a person reads: predict, score, report.

`predict` writes what the model answers, `scores` measures it, `published` knows what the paper
measured, `table` sets the numbers side by side; `sections` and `corpus` prepare what the page
says, `charts` draws, `report` writes page and CSV.
"""
