"""Formats of other projects: published weights, SavedModels, leaderboard submissions.

One module per format, one command for each in the command line. To add a format, add both. A folder
for the Hugging Face Hub, its card and its signature are in `hub`; weights of other libraries are
read in `model.foreign_weights`.
"""
