"""Survival, incidence and distribution functions from released tables: curves, tests, ratios and quantiles."""
