"""Intervals that hold for several contrasts at once. Proof: simultaneous.proof.md."""

from __future__ import annotations


def level_of_each(level: float, count: int) -> float:
    """Return the level at which each of `count` contrasts must hold for all to hold together (Šidák)."""
    return float(level ** (1.0 / count))


def adjusted_p(p: float, count: int) -> float:
    """Return the p-value of one of `count` contrasts, adjusted for looking at all of them (Šidák)."""
    return float(1.0 - (1.0 - p) ** count)
