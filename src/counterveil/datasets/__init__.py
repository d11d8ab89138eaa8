"""Loaders and generators of example data."""
