"""Variances, quantiles and intervals; knows nothing of privacy."""
