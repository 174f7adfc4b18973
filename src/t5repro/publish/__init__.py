"""Foreign formats: weights of other libraries, SavedModel, leaderboard files."""
