"""Effects of several arms against a reference, arms and covariates being public."""
