"""Formats of other projects: published weights, SavedModels, leaderboard submissions.

One module per format, one command for each in the command line. To add a format, add both.
"""
