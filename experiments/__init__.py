"""Experiments: each folder prints the figures that the documentation quotes."""
