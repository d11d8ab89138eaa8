"""Attacks on our own releases: the list of audited methods, replay, and the gallery of claims that fail."""
