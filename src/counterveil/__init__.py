"""Counterveil: differentially private causal inference."""
