"""Whether a released variance shares noise with its estimate: if so, it must not make the site's weight."""

from __future__ import annotations

from counterveil.estimators.result import Result
from counterveil.privacy import Unit

# Smooth noise: the variance is a release of its own, unless both are divided by a released share of people.
_SMOOTH = "smooth sensitivity"
_DIVISORS = ("share of the estimand's people (released)", "share in strata that lack an arm (released)")


def separate_noise(result: Result) -> bool:
    """Return whether estimate and variance are releases with noises of their own.

    So it is wherever outcomes alone are private. At record level most estimators make both from the same
    released numbers (a squared estimate in the variance, a common divisor); only those known not to are named.
    """
    if result.guarantee.unit is Unit.OUTCOME:
        return True
    return result.method.endswith(_SMOOTH) and not any(name in result.details for name in _DIVISORS)
