"""Noise: one mechanism a file, its proof beside it."""
