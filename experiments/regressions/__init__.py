"""Coverage and standard errors of regressions from released moments."""
