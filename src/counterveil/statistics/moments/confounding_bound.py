"""A declared bound on confounding: what an interval that adjusts for little or nothing is widened by."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

from counterveil.numerics.public_choices import LEAST_SHARE
from counterveil.results.result import Result

# Confounding is bounded by kappa sd(y) / (this times sd(t)).
LEFT_OF_TREATMENT = 0.75


def inner_share(share: float) -> float:
    """Return a share treated, away from 0 and 1."""
    return min(max(share, float(LEAST_SHARE)), 1 - float(LEAST_SHARE))


def bounded(plain: Result, kappa: float, sd: float, share: float, condition: str) -> Result:
    """Return a comparison with kappa sd(y) / (0.75 sd(t)) added at both ends of its interval.

    `sd` stands for sd(y) and `share` for the share treated; both come from released numbers, so that what
    is added costs nothing.
    """
    bound = kappa * sd / (LEFT_OF_TREATMENT * sqrt(share * (1 - share)))
    details: dict[str, float | str] = {"adjusted": False, "kappa": kappa, "confounding_bound": bound}
    return replace(
        plain,
        uncertainty=replace(plain.uncertainty, bias=bound),
        not_covered=(
            f"CONFOUNDING beyond the declared kappa = {kappa:g}",
            *(text for text in plain.not_covered if not text.startswith("CONFOUNDING")),
        ),
        details=details | plain.details,
        interval_of=None,
        condition=condition,
    )
