"""Logistic regression, matching, products, splits and compiled loops; nothing of privacy."""
