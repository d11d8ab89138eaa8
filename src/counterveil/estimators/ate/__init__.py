"""Average treatment effects, one estimator a file."""
