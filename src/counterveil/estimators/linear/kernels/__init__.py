"""Weights of matching and weighting, worked out from public columns; nothing of privacy."""
