"""The checks of parameters that several mechanisms share; none of them ever sees a private value."""

from __future__ import annotations

from fractions import Fraction

from counterveil.errors import ParameterError, shown
from counterveil.privacy import Number, exact


def positive_sensitivity(value: Number) -> Fraction:
    """Return the sensitivity as an exact rational, or raise CV-P100."""
    sensitivity = exact(value, "sensitivity")
    if sensitivity <= 0:
        raise ParameterError(
            "CV-P100",
            "the sensitivity must be positive",
            expected="sensitivity > 0",
            got=f"sensitivity={shown(value)}",
            fix="pass the proved bound on how far one person can move the statistic",
        )
    return sensitivity


def positive_epsilon(value: Number) -> Fraction:
    """Return epsilon as an exact rational, or raise CV-P101."""
    epsilon = exact(value, "epsilon")
    if epsilon <= 0:
        raise ParameterError(
            "CV-P101",
            "the epsilon of a mechanism must be positive",
            expected="epsilon > 0",
            got=f"epsilon={shown(value)}",
            fix="pass a positive epsilon; typical values for one release lie between 0.1 and 5",
        )
    return epsilon
