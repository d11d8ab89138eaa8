"""Effects as functions of the covariates and at queries."""
