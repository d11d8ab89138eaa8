"""Sums over rows whose treatment and outcomes are private together and whose covariates are public."""
