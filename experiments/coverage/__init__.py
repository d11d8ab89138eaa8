"""Coverage and width of the intervals for randomised trials."""
