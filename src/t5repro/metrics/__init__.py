"""What a score is: pure functions from answers and predictions to numbers (paper section 2.4).

All values are percentages, as the paper prints them. To add a metric, add a function here and
name it in the task that reports it.
"""
