"""Counts and sums by public cells: exact matching, histograms, cut points."""
