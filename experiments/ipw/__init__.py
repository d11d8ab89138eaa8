"""How the defaults of inverse probability weighting were chosen."""
