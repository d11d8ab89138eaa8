"""Weighted sums of outcomes with public weights, and how far one outcome moves them and their variances."""
