"""Coverage, size and length of differences of quantiles."""
