"""Intervals that hold for several contrasts at once. Proof: simultaneous.proof.md."""

from __future__ import annotations

from math import expm1, log1p


def level_of_each(level: float, count: int) -> float:
    """Return the level at which each of `count` contrasts must hold for all to hold together (Šidák)."""
    # Rounded to one, a level would ask for everything: the largest double below it is as near as levels get.
    return min(float(level ** (1.0 / count)), 1.0 - 2.0**-53)


def adjusted_p(p: float, count: int) -> float:
    """Return the p-value of one of `count` contrasts, adjusted for looking at all of them (Šidák)."""
    # 1 - (1 - p)^count without losing the digits of a small p.
    return 1.0 if p >= 1 else -expm1(count * log1p(-p))
