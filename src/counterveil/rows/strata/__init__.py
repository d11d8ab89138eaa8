"""Counts and sums of outcomes by public cells of the covariates."""
