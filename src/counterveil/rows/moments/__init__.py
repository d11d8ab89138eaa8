"""Moments of private records, clipped scores of released models, and how far one record moves them."""
