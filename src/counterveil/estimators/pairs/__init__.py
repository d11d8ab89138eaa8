"""Covariates are public, treatment and outcome of a row are private together."""
