"""Coverage and width of the intervals for effects pooled over sites."""
