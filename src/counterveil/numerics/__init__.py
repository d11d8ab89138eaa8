"""Logistic regression, matching, products and splits; nothing of privacy."""
