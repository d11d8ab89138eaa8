"""Scores, inverse weights and sums by cell of private records; nothing of privacy."""
