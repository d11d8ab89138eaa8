"""Coverage of survival differences and restricted means, size of the log-rank test, error on the NCCTG lung data."""
