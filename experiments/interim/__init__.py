"""Planned looks: how often the intervals of all looks cover together."""
